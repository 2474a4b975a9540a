package closure

import (
	"maps"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// world is what is there once the set is applied.
type world struct {
	target string
	// objects are the set's own, under IDs with their effective namespace.
	objects map[evidence.ID]*evidence.Object
	// produced are objects that a controller makes from one in the set, or that the run creates.
	produced map[evidence.ID]supply
	// inputs are declared to come from outside the repository.
	inputs map[evidence.ID]scenario.Input
	// crds are the CustomResourceDefinitions of the set by the group and kind they define.
	crds map[[2]string]*evidence.Object
	// names are the names of the set's objects by group, kind and namespace, for suggestions.
	names map[evidence.ID][]string
}

// supply is where a thing comes from.
type supply struct {
	state evidence.ReferenceState
	by    string
}

func newWorld(set *evidence.Set, opts Options) *world {
	w := &world{
		target:   opts.Target,
		objects:  map[evidence.ID]*evidence.Object{},
		produced: map[evidence.ID]supply{},
		inputs:   map[evidence.ID]scenario.Input{},
		crds:     map[[2]string]*evidence.Object{},
		names:    map[evidence.ID][]string{},
	}
	for _, input := range opts.Inputs {
		w.inputs[input.ID(opts.Target)] = input
	}
	for _, name := range opts.Created {
		w.produced[evidence.ID{Kind: "Namespace", Name: name}] = supply{evidence.Given, "the run creates it"}
	}
	for i := range set.Objects {
		object := &set.Objects[i]
		if object.Group == crdGroup && object.Kind == crdKind {
			spec := node{value: object.Content}.at("spec")
			w.crds[[2]string{spec.at("group").text(), spec.at("names", "kind").text()}] = object
		}
	}
	for i := range set.Objects {
		object := &set.Objects[i]
		id := object.ID
		id.Namespace = w.namespace(object)
		w.objects[id] = object
		shelf := id
		shelf.Name = ""
		w.names[shelf] = append(w.names[shelf], id.Name)
		for _, producer := range producers {
			if producer.matches(id) {
				for _, made := range producer.made(node{value: object.Content}, id.Namespace) {
					if _, twice := w.produced[made]; !twice {
						w.produced[made] = supply{evidence.Made, object.ID.String()}
					}
				}
			}
		}
	}
	return w
}

// namespace is where the object lives: nowhere for cluster-scoped kinds, else what it names or the
// target. Custom resources have the scope that their CRD in the set declares; without one they are
// taken as namespaced, but for a few that references name.
func (w *world) namespace(object *evidence.Object) string {
	if evidence.BuiltInGroup(object.Group) {
		if clusterScoped[object.Kind] {
			return ""
		}
	} else if crd := w.crds[[2]string{object.Group, object.Kind}]; crd != nil {
		if (node{value: crd.Content}).at("spec", "scope").text() == "Cluster" {
			return ""
		}
	} else if clusterWide[evidence.ID{Group: object.Group, Kind: object.Kind}] {
		return ""
	}
	if object.Namespace != "" {
		return object.Namespace
	}
	return w.target
}

// find tells where a thing comes from; the object is nil when it is not one of the set.
func (w *world) find(id evidence.ID) (*evidence.Object, supply) {
	if object, ok := w.objects[id]; ok {
		return object, supply{state: evidence.InSet}
	}
	if input, ok := w.inputs[id]; ok {
		return nil, supply{evidence.Input, input.Reason}
	}
	if from, ok := w.produced[id]; ok {
		return nil, from
	}
	if reason, ok := alwaysThere(id); ok {
		return nil, supply{evidence.Given, reason}
	}
	return nil, supply{state: evidence.Missing}
}

// suggest names a near miss of the same kind, or nothing.
func (w *world) suggest(id evidence.ID) string {
	shelf := id
	shelf.Name = ""
	if near := nearest(id.Name, w.names[shelf]); near != "" {
		return didYouMean(near)
	}
	var elsewhere []string
	for other := range w.objects {
		if other.Group == id.Group && other.Kind == id.Kind && other.Name == id.Name {
			elsewhere = append(elsewhere, other.Namespace)
		}
	}
	if len(elsewhere) == 0 {
		return ""
	}
	slices.Sort(elsewhere)
	return "; one of this name is in namespace " + strings.Join(elsewhere, ", ")
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}

// nearest is the name that is at most two edits away, the first in order among equals.
func nearest(name string, names []string) string {
	best, distance := "", 3
	for _, other := range slices.Sorted(slices.Values(names)) {
		if d := edits(name, other); d < distance && d < len(name) && d < len(other) {
			best, distance = other, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes; 3 stands for three and more.
func edits(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], 3)
}

// dataFields hold the keys of ConfigMaps and Secrets.
var dataFields = []string{"data", "binaryData", "stringData"}

func keysOf(object *evidence.Object) []string {
	var keys []string
	for _, field := range dataFields {
		data, _ := object.Content[field].(map[string]any)
		keys = slices.AppendSeq(keys, maps.Keys(data))
	}
	return keys
}

// hasData is false for objects that are declared empty, for a controller to fill.
func hasData(object *evidence.Object) bool { return len(keysOf(object)) > 0 }

func hasKey(object *evidence.Object, key string) bool { return slices.Contains(keysOf(object), key) }
