package drift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// path is a field path in the API server's own terms: names, list items by key, by value or by index.
type path fieldpath.Path

// String writes spec.containers[name=app].env[name=X]; names with dots are quoted.
func (p path) String() string {
	var b strings.Builder
	for _, e := range p {
		switch {
		case e.FieldName != nil && strings.ContainsAny(*e.FieldName, ".[]\"' /"):
			fmt.Fprintf(&b, "[%s]", strconv.Quote(*e.FieldName))
		case e.FieldName != nil:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(*e.FieldName)
		case e.Key != nil:
			var pairs []string
			for _, f := range *e.Key {
				pairs = append(pairs, fmt.Sprintf("%s=%v", f.Name, f.Value.Unstructured()))
			}
			fmt.Fprintf(&b, "[%s]", strings.Join(pairs, ","))
		case e.Value != nil:
			fmt.Fprintf(&b, "[=%v]", (*e.Value).Unstructured())
		case e.Index != nil:
			fmt.Fprintf(&b, "[%d]", *e.Index)
		}
	}
	return b.String()
}

// plain is the part of the path up to the first list, as evidence.Object.At takes it.
func (p path) plain() []any {
	var steps []any
	for _, e := range p {
		if e.FieldName == nil {
			break
		}
		steps = append(steps, *e.FieldName)
	}
	return steps
}

// within tells whether p is outer or lies inside it.
func (p path) within(outer path) bool {
	return len(p) >= len(outer) && fieldpath.Path(p[:len(outer)]).Equals(fieldpath.Path(outer))
}

// under tells whether the path begins with these names.
func (p path) under(names ...string) bool {
	if len(p) < len(names) {
		return false
	}
	for i, name := range names {
		if p[i].FieldName == nil || *p[i].FieldName != name {
			return false
		}
	}
	return true
}

// mayHoldSecret is true for every part of a Secret whose value could be, or repeat, a secret.
func (p path) mayHoldSecret() bool {
	return !(p.under("metadata") && !p.under("metadata", "annotations")) && !p.under("type") && !p.under("immutable")
}

// lookup finds the value at the path.
func (p path) lookup(content any) (any, bool) {
	for _, e := range p {
		switch {
		case e.FieldName != nil:
			m, ok := content.(map[string]any)
			if !ok {
				return nil, false
			}
			if content, ok = m[*e.FieldName]; !ok {
				return nil, false
			}
		default:
			list, ok := content.([]any)
			if !ok {
				return nil, false
			}
			i := slices.IndexFunc(list, func(item any) bool { return matches(e, item) })
			if e.Index != nil {
				i = *e.Index
			}
			if i < 0 || i >= len(list) {
				return nil, false
			}
			content = list[i]
		}
	}
	return content, true
}

func matches(e fieldpath.PathElement, item any) bool {
	switch {
	case e.Key != nil:
		m, ok := item.(map[string]any)
		if !ok {
			return false
		}
		for _, f := range *e.Key {
			if !value.Equals(value.NewValueInterface(m[f.Name]), f.Value) {
				return false
			}
		}
		return true
	case e.Value != nil:
		return value.Equals(value.NewValueInterface(item), *e.Value)
	}
	return false
}

// entry is one managedFields entry.
type entry struct {
	owner
	operation, subresource string
	fields                 *fieldpath.Set
}

// owner is who wrote a field, and when.
type owner struct{ manager, subresource, time string }

type owners []entry

// manager is ours: Git's fields are applied under this name, by server-side apply.
const manager = "rebuild-check"

func (e entry) ours() bool {
	return e.manager == manager && e.operation == "Apply" && e.subresource == ""
}

// readOwners decodes metadata.managedFields. An entry that cannot be decoded is nobody's and owns
// metadata.managedFields, so that it is told and nothing is hidden behind it.
func readOwners(content map[string]any) owners {
	meta, _ := content["metadata"].(map[string]any)
	list, _ := meta["managedFields"].([]any)
	var result owners
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		e := entry{owner: owner{text("manager"), text("subresource"), text("time")}, operation: text("operation"), subresource: text("subresource")}
		e.fields = &fieldpath.Set{}
		encoded, err := json.Marshal(m["fieldsV1"])
		if err != nil || e.fields.FromJSON(bytes.NewReader(encoded)) != nil {
			e.fields, e.operation = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "managedFields")), ""
		}
		result = append(result, e)
	}
	return result
}

// of is the owner of a changed field: the latest writer other than Git.
func (o owners) of(p path) owner {
	var found owner
	for _, e := range o {
		if e.ours() || e.time < found.time {
			continue
		}
		// Leaves: who made a map does not own what others put into it.
		e.fields.Leaves().Iterate(func(q fieldpath.Path) {
			if path(q).within(p) || p.within(path(q)) {
				found = e.owner
			}
		})
	}
	return found
}

type foreignField struct {
	path  path
	owner owner
}

// foreign lists the fields that others own and Git does not: the outermost ones, an added list item
// once and not each field in it.
func (o owners) foreign() []foreignField {
	ours := fieldpath.NewSet()
	for _, e := range o {
		if e.ours() {
			ours = ours.Union(e.fields)
		}
	}
	var list []foreignField
	for _, e := range o {
		if e.ours() {
			continue
		}
		var paths []path
		e.fields.Difference(ours).Iterate(func(p fieldpath.Path) {
			q := path(p.Copy())
			status := e.subresource == "status" && q.under("status") // what the cluster reports is no declaration
			whole := len(q) == 2 && (q.under("metadata", "annotations") || q.under("metadata", "labels"))
			if !status && !whole { // annotations and labels are told one by one
				paths = append(paths, q)
			}
		})
		slices.SortStableFunc(paths, func(a, b path) int { return len(a) - len(b) })
		var outer []path
		for _, p := range paths {
			if !slices.ContainsFunc(outer, func(q path) bool { return p.within(q) }) && !ours.Has(fieldpath.Path(p)) {
				outer = append(outer, p)
			}
		}
		for _, p := range outer {
			list = append(list, foreignField{p, e.owner})
		}
	}
	return list
}

// listKeys learns from the server's own field paths which lists are keyed, and by what: the path
// with its list steps taken out, to the names of the keys.
func listKeys(contents ...map[string]any) map[string][]string {
	keys := map[string][]string{}
	for _, content := range contents {
		for _, e := range readOwners(content) {
			e.fields.Iterate(func(p fieldpath.Path) {
				for i, step := range p {
					if step.Key == nil {
						continue
					}
					var names []string
					for _, f := range *step.Key {
						names = append(names, f.Name)
					}
					keys[shape(path(p[:i]))] = names
				}
			})
		}
	}
	return keys
}

func shape(p path) string {
	var names []string
	for _, e := range p {
		if e.FieldName != nil {
			names = append(names, *e.FieldName)
		} else {
			names = append(names, "[]")
		}
	}
	return strings.Join(names, "\x00")
}

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
