package closure

import (
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// Inputs compares what is declared to come from outside with what does: input-unused for a declared
// input that nothing needs, input-undeclared for a Secret that an ExternalSecret of the set fetches from
// outside the cluster. The order is that of evidence.SortFindings.
func Inputs(set *evidence.Set, graph []evidence.Reference, opts Options) []evidence.Finding {
	w := newWorld(set, opts)
	var findings []evidence.Finding
	for _, input := range opts.Inputs {
		id := input.ID(opts.Target)
		used := func(r evidence.Reference) bool { return r.State == evidence.Input && r.Object == id }
		if !slices.ContainsFunc(graph, used) && !w.fetched(id) {
			findings = append(findings, evidence.Finding{
				Code: "input-unused", Severity: evidence.Warn, Object: id.String(), Origin: input.Origin,
				Message: "declared as an input, and nothing needs it from outside the repository", Do: "remove it from the inputs",
			})
		}
	}
	for i := range set.Objects {
		object := &set.Objects[i]
		id, ref, outside := w.fetches(object)
		if _, declared := w.inputs[id]; !outside || declared {
			continue
		}
		findings = append(findings, evidence.Finding{
			Code: "input-undeclared", Severity: evidence.Fail, Object: id.String(), NeededBy: object.ID.String(),
			Field: evidence.FieldPath(ref.path...), Origin: object.At(ref.path...),
			Message: "its values come from outside the repository", Do: "declare it under inputs: in " + scenario.ConfigFile + ", with a reason and a stub",
		})
	}
	return sorted(findings)
}

// fetches tells whether an object of the set is one whose controller fetches a Secret from outside the
// cluster: an ExternalSecret whose store is in the set and of a provider that is neither a fake nor the
// cluster itself (https://external-secrets.io/latest/provider/fake/). A store that is not in the set
// is missing, and told as that.
func (w *world) fetches(object *evidence.Object) (id evidence.ID, ref node, outside bool) {
	if object.Group != externalGroup || object.Kind != "ExternalSecret" {
		return id, ref, false
	}
	root, ns := node{value: object.Content}, w.namespace(object)
	ref = root.at("spec", "secretStoreRef", "name")
	store := evidence.ID{Group: externalGroup, Kind: root.at("spec", "secretStoreRef", "kind").or("SecretStore"), Namespace: ns, Name: ref.text()}
	if clusterWide[evidence.ID{Group: store.Group, Kind: store.Kind}] {
		store.Namespace = ""
	}
	if there := w.objects[store]; there != nil {
		for _, provider := range (node{value: there.Content}).at("spec", "provider").fields() {
			outside = outside || provider.key() != "fake" && provider.key() != "kubernetes"
		}
	}
	id = evidence.ID{Kind: "Secret", Namespace: ns, Name: root.at("spec", "target", "name").or(object.Name)}
	return id, ref, outside
}

// fetched tells whether an object of the set fetches the Secret from outside.
func (w *world) fetched(id evidence.ID) bool {
	for _, object := range w.objects {
		if target, _, outside := w.fetches(object); outside && target == id {
			return true
		}
	}
	return false
}

// Stubs are what the run puts in the place of inputs that are declared with a stub; with explain also
// in the place of Secrets, ConfigMaps and keys that are missing. Covered are the findings that such a
// stub lets the run pass. A stub of an object of the set adds keys to it.
func Stubs(graph []evidence.Reference, opts Options, explain bool) (stubs []evidence.Stub, covered []evidence.Finding) {
	declared := map[evidence.ID]scenario.Input{}
	for _, input := range opts.Inputs {
		declared[input.ID(opts.Target)] = input
	}
	asked := map[evidence.ID][]string{}
	excused := map[evidence.ID]bool{}
	var order []evidence.ID
	for _, r := range graph {
		missing := explain && r.Finding != nil && r.Finding.Severity == evidence.Fail &&
			slices.Contains([]string{"missing-secret", "missing-configmap", "missing-key"}, r.Finding.Code)
		if !missing && (r.State != evidence.Input || !declared[r.Object].Stubbed) {
			continue
		}
		if missing {
			covered = append(covered, *r.Finding)
			excused[r.Object] = true
		}
		if _, seen := asked[r.Object]; !seen {
			order = append(order, r.Object)
			asked[r.Object] = nil
		}
		if r.Key != "" && (missing || declared[r.Object].Gives(r.Key)) && !slices.Contains(asked[r.Object], r.Key) {
			asked[r.Object] = append(asked[r.Object], r.Key)
		}
	}
	for _, id := range order {
		input, ok := declared[id]
		stub := evidence.Stub{Object: id, Reason: input.Reason, Origin: input.Origin, Explain: excused[id], Texts: input.StubKeys(asked[id])}
		if !ok || excused[id] {
			stub.Reason = "missing, and stubbed by --explain-all"
		}
		stubs = append(stubs, stub)
	}
	slices.SortFunc(stubs, func(a, b evidence.Stub) int { return a.Object.Compare(b.Object) })
	return stubs, covered
}
