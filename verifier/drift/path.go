package drift

import (
	"fmt"
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
