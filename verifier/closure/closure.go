// Package closure finds what a set needs by name and does not hold, and what in it is refused. It
// reads the set alone: no cluster, no network, no clock.
package closure

import (
	"cmp"
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// Options say what the run brings along.
type Options struct {
	// Created are the namespaces that the run itself creates.
	Created []string
	// Target is the namespace of objects that name none. Empty means that it is not known, and then
	// its existence is not checked.
	Target string
	// Inputs are declared to come from outside the repository.
	Inputs []scenario.Input
}

// need is one thing that an object needs by name.
type need struct {
	// code of the finding when the thing is missing.
	code string
	id   evidence.ID
	// key inside the thing, empty when the whole is needed; keyField leads to it.
	key      string
	keyField []any
	// field leads to the name inside the object that needs it.
	field    []any
	severity evidence.Severity
	message  string
	do       string
	// optional is true when the object does without the thing.
	optional bool
}

// Missing lists everything that the objects of the set need by name and that is neither in the set nor
// made from it, nor always there by a rule of rules.go; it also lists the encrypted objects and the
// built-in versions that Kubernetes has removed. One finding stands for one missing thing, needing
// object and field. The order is that of evidence.SortFindings.
func Missing(set *evidence.Set, opts Options) []evidence.Finding {
	return Findings(set, Graph(set, opts))
}

// Findings are those of Missing, derived from the set's own graph.
func Findings(set *evidence.Set, graph []evidence.Reference) []evidence.Finding {
	var findings []evidence.Finding
	for i := range set.Objects {
		findings = append(findings, encrypted(&set.Objects[i])...)
		findings = append(findings, removed(&set.Objects[i])...)
	}
	for _, reference := range graph {
		if reference.Finding != nil {
			findings = append(findings, *reference.Finding)
		}
	}
	return sorted(findings)
}

// Graph lists everything that the objects of the set need by name, and where each comes from. The
// order is that of evidence.SortReferences.
func Graph(set *evidence.Set, opts Options) []evidence.Reference {
	world := newWorld(set, opts)
	var graph []evidence.Reference
	for i := range set.Objects {
		object := &set.Objects[i]
		for _, need := range world.needs(object) {
			graph = append(graph, world.judge(object, need))
		}
	}
	evidence.SortReferences(graph)
	return slices.CompactFunc(graph, func(a, b evidence.Reference) bool {
		return a.Object == b.Object && a.Key == b.Key && a.NeededBy == b.NeededBy && a.Field == b.Field
	})
}

// needs applies every extractor to one object.
func (w *world) needs(object *evidence.Object) []need {
	ns := w.namespace(object)
	var needs []need
	add := func(n need) {
		if n.id.Name != "" {
			needs = append(needs, n)
		}
	}
	for _, pod := range object.PodSpecs() {
		for _, extract := range podExtractors {
			extract(pod, ns, add)
		}
	}
	root := node{value: object.Content}
	for _, rule := range objectExtractors {
		if rule.matches(object.ID) {
			rule.extract(root, ns, add)
		}
	}
	w.ownNeeds(object, ns, add)
	return needs
}

// judge decides whether a need is met, and by whom.
func (w *world) judge(object *evidence.Object, n need) evidence.Reference {
	reference := evidence.Reference{
		Object: n.id, Key: n.key, NeededBy: object.ID,
		Field: evidence.FieldPath(n.field...), Origin: object.At(n.field...), Optional: n.optional,
	}
	finding := evidence.Finding{
		Code: n.code, Severity: cmp.Or(n.severity, evidence.Fail), Object: n.id.String(), NeededBy: object.ID.String(),
		Message: cmp.Or(n.message, "not in the repository"), Do: n.do,
	}
	if n.key != "" {
		finding.Object += " key " + n.key
	}
	there, source := w.find(n.id)
	reference.State, reference.By = source.state, source.by
	switch {
	case source.state == evidence.Input && w.inputs[n.id].Gives(n.key):
		return reference
	case source.state == evidence.Input && w.inputs[n.id].Stubbed:
		finding.Code, reference.Field, reference.Origin = "missing-key", evidence.FieldPath(n.keyField...), object.At(n.keyField...)
		finding.Message, finding.Do = "declared as an input, and its stub has no such key", "add the key to its stub in "+scenario.ConfigFile
	case source.state == evidence.Input:
		finding.Message, finding.Do = "declared as an input ("+source.by+"), and the run was given none", "add stub: to the input in "+scenario.ConfigFile
	case source.state == evidence.Missing:
		if finding.Do == "" {
			finding.Do = "add it to the repository" + w.suggest(n.id)
		}
	case n.key == "" || there == nil || !hasData(there) || hasKey(there, n.key):
		return reference
	default:
		reference.State, reference.By = evidence.Missing, ""
		reference.Field, reference.Origin = evidence.FieldPath(n.keyField...), object.At(n.keyField...)
		finding.Code = "missing-key"
		finding.Message = n.id.String() + " is in the repository, this key is not in it"
		finding.Do = "add the key to " + n.id.Kind + " " + n.id.Name + didYouMean(nearest(n.key, keysOf(there)))
	}
	finding.Field, finding.Origin = reference.Field, reference.Origin
	if !n.optional {
		reference.Finding = &finding
	}
	return reference
}

// sorted orders findings fully and drops repeated ones.
func sorted(findings []evidence.Finding) []evidence.Finding {
	slices.SortStableFunc(findings, func(a, b evidence.Finding) int {
		return slices.Compare(
			[]string{a.NeededBy, a.Field, a.Origin.File},
			[]string{b.NeededBy, b.Field, b.Origin.File})
	})
	evidence.SortFindings(findings)
	type identity struct{ code, object, needer, field string }
	seen := map[identity]bool{}
	return slices.DeleteFunc(findings, func(f evidence.Finding) bool {
		id := identity{f.Code, f.Object, f.NeededBy, f.Field}
		twice := seen[id]
		seen[id] = true
		return twice
	})
}
