package drift

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

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
