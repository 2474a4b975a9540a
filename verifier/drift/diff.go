package drift

import (
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// delta is one difference between what Git makes of the object and what it is.
type delta struct {
	path      path
	change    string // changed, removed (from live), added (to live)
	git, live any
}

// bookkeeping are the metadata that the server writes and nobody declares.
var bookkeeping = map[string]bool{"managedFields": true, "resourceVersion": true, "generation": true, "uid": true, "creationTimestamp": true, "selfLink": true}

// diff compares two states of one object as the same server wrote them. Status is no declaration.
func diff(git, live map[string]any, keys map[string][]string) []delta {
	d := &differ{keys: keys}
	d.compare(nil, git, live)
	return d.deltas
}

type differ struct {
	keys   map[string][]string
	deltas []delta
}

func (d *differ) compare(p path, git, live any) {
	if undeclarable(p) {
		return
	}
	gitMap, isMap := git.(map[string]any)
	liveMap, bothMaps := live.(map[string]any)
	if isMap && bothMaps {
		d.compareMaps(p, gitMap, liveMap)
		return
	}
	gitList, isList := git.([]any)
	liveList, bothLists := live.([]any)
	if isList && bothLists {
		d.compareLists(p, gitList, liveList)
		return
	}
	if !reflect.DeepEqual(git, live) {
		d.deltas = append(d.deltas, delta{slices.Clone(p), "changed", git, live})
	}
}

func (d *differ) compareMaps(p path, git, live map[string]any) {
	names := map[string]bool{}
	for name := range git {
		names[name] = true
	}
	for name := range live {
		names[name] = true
	}
	for _, name := range sorted(names) {
		inner := append(slices.Clone(p), fieldpath.PathElement{FieldName: &name})
		g, inGit := git[name]
		l, inLive := live[name]
		switch {
		case inGit && inLive:
			d.compare(inner, g, l)
		case inGit:
			d.lone(inner, "removed", g, nil)
		default:
			d.lone(inner, "added", nil, l)
		}
	}
}

// lone records a field that only one side has: a map as each of its fields, so that an empty one
// counts for nothing, anything else as it is. Bookkeeping is nobody's declaration.
func (d *differ) lone(p path, change string, git, live any) {
	if undeclarable(p) {
		return
	}
	gitMap, inGit := git.(map[string]any)
	liveMap, inLive := live.(map[string]any)
	if inGit || inLive {
		d.compareMaps(p, gitMap, liveMap)
		return
	}
	d.deltas = append(d.deltas, delta{p, change, git, live})
}

// undeclarable is true for status and for the metadata that the server keeps.
func undeclarable(p path) bool {
	return len(p) == 1 && p.under("status") || len(p) == 2 && p.under("metadata") && bookkeeping[*p[1].FieldName]
}

func (d *differ) compareLists(p path, git, live []any) {
	if names := d.keys[shape(p)]; len(names) > 0 {
		d.compareKeyed(p, names, git, live)
		return
	}
	if len(git) == len(live) {
		for i := range git {
			d.compare(append(slices.Clone(p), fieldpath.PathElement{Index: &i}), git[i], live[i])
		}
		return
	}
	d.deltas = append(d.deltas, delta{slices.Clone(p), "changed", git, live})
}

func (d *differ) compareKeyed(p path, names []string, git, live []any) {
	item := func(v any) (fieldpath.PathElement, string) {
		m, _ := v.(map[string]any)
		var key value.FieldList
		for _, name := range names {
			key = append(key, value.Field{Name: name, Value: value.NewValueInterface(m[name])})
		}
		key.Sort()
		e := fieldpath.PathElement{Key: &key}
		return e, e.String()
	}
	in := map[string]any{}
	for _, l := range live {
		_, key := item(l)
		in[key] = l
	}
	var gitOrder, liveOrder []string
	seen := map[string]bool{}
	for _, g := range git {
		e, key := item(g)
		seen[key] = true
		inner := append(slices.Clone(p), e)
		if l, ok := in[key]; ok {
			gitOrder = append(gitOrder, key)
			d.compare(inner, g, l)
		} else {
			d.deltas = append(d.deltas, delta{inner, "removed", g, nil})
		}
	}
	for _, l := range live {
		e, key := item(l)
		if seen[key] {
			liveOrder = append(liveOrder, key)
		} else {
			d.deltas = append(d.deltas, delta{append(slices.Clone(p), e), "added", nil, l})
		}
	}
	if !slices.Equal(gitOrder, liveOrder) {
		d.deltas = append(d.deltas, delta{slices.Clone(p), "changed", gitOrder, liveOrder})
	}
}

func sorted(set map[string]bool) []string {
	var list []string
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
