package closure

import (
	"maps"
	"slices"
)

// node is a value inside an object and the path to it. Steps into what is not there give a node
// without a value, so a chain needs no checks on the way.
type node struct {
	value any
	path  []any
}

func (n node) at(steps ...string) node {
	for _, step := range steps {
		parent, _ := n.value.(map[string]any)
		n = node{value: parent[step], path: append(slices.Clone(n.path), step)}
	}
	return n
}

// items lists the entries of a list.
func (n node) items() []node {
	list, _ := n.value.([]any)
	nodes := make([]node, len(list))
	for i, value := range list {
		nodes[i] = node{value: value, path: append(slices.Clone(n.path), i)}
	}
	return nodes
}

// fields lists the values of a map, by key.
func (n node) fields() []node {
	object, _ := n.value.(map[string]any)
	var nodes []node
	for _, key := range slices.Sorted(maps.Keys(object)) {
		nodes = append(nodes, n.at(key))
	}
	return nodes
}

// each lists the entries of the lists that steps lead to, through lists on the way.
func (n node) each(steps ...string) []node {
	nodes := []node{n}
	for _, step := range steps {
		var next []node
		for _, parent := range nodes {
			next = append(next, parent.at(step).items()...)
		}
		nodes = next
	}
	return nodes
}

// text is the string there, or "".
func (n node) text() string {
	text, _ := n.value.(string)
	return text
}

// or is the string there, or fallback when there is none or an empty one.
func (n node) or(fallback string) string {
	if text := n.text(); text != "" {
		return text
	}
	return fallback
}

func (n node) isTrue() bool { return n.value == true }
func (n node) exists() bool { return n.value != nil }

// key is the last step of the path, when it is one into a map.
func (n node) key() string {
	key, _ := n.path[len(n.path)-1].(string)
	return key
}
