package render

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// maxLines bounds the field positions that are kept of one object.
const maxLines = 5000

// object is one rendered object as the child answers it.
type object struct {
	// JSON is the object itself with its keys sorted, nil where only the origins were asked for; it is
	// sent behind the rest, and Size is its length.
	JSON   []byte `json:"-"`
	Size   int
	ID     evidence.ID
	Hash   string
	Origin evidence.Origin
	Lines  map[string]int `json:",omitempty"`
}

// decoded is a document as kubectl understands it, and its nodes for positions. node is nil where
// only kubectl's own decoder can read the text.
type decoded struct {
	json []byte
	node *yaml.Node
	line int // of the document's text
}

// decode reads a document the way kubectl does: YAML 1.1 by sigs.k8s.io/yaml. Where the positions
// cannot be had, that decoder has to look for repeated keys itself.
func decode(d document) (decoded, error) {
	var node yaml.Node
	result := decoded{line: d.line}
	convert := sigsyaml.YAMLToJSON
	if yaml.Unmarshal(d.text, &node) != nil {
		convert = sigsyaml.YAMLToJSONStrict
	} else if len(node.Content) > 0 {
		result.node = node.Content[0]
	}
	var err error
	if result.json, err = convert(d.text); err != nil {
		return result, fmt.Errorf("line %d: %w", d.line, shift(err, d.line))
	}
	return result, nil
}

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// shift makes the line numbers of a YAML error count from the start of the file.
func shift(err error, line int) error {
	return fmt.Errorf("%s", yamlLine.ReplaceAllStringFunc(err.Error(), func(text string) string {
		var n int
		fmt.Sscanf(text, "line %d", &n)
		return fmt.Sprintf("line %d", n+line-1)
	}))
}

// at is the line of a node in its file.
func (d decoded) at(n *yaml.Node) int {
	if n == nil {
		return d.line
	}
	return d.line + n.Line - 1
}

// repeated finds keys that stand twice in one mapping.
func (d decoded) repeated(file string) []evidence.Finding {
	var findings []evidence.Finding
	var visit func(n *yaml.Node, where []any, depth int)
	visit = func(n *yaml.Node, where []any, depth int) {
		if n == nil || depth > 1000 {
			return
		}
		first := map[string]int{}
		for i, c := range n.Content {
			step := any(i)
			if n.Kind == yaml.MappingNode {
				if i%2 == 0 {
					if line, ok := first[c.Value]; ok && c.Kind == yaml.ScalarNode && len(findings) < 100 {
						field := evidence.FieldPath(append(where[:len(where):len(where)], c.Value)...)
						findings = append(findings, evidence.Finding{Code: "duplicate-key", Severity: evidence.Fail, Field: field,
							Origin:  evidence.Origin{File: file, Line: d.at(c)},
							Message: fmt.Sprintf("the key %s stands twice, in line %d and in line %d; only the last would count", field, line, d.at(c)), Do: "remove one"})
					}
					first[c.Value] = d.at(c)
					continue
				}
				step = n.Content[i-1].Value
			}
			visit(c, append(where[:len(where):len(where)], step), depth+1)
		}
	}
	visit(d.node, nil, 0)
	return findings
}

// fields maps every field below n to its line: that of the key in a mapping, that of the item in a
// sequence. Aliases and merge keys count where they are written.
func (d decoded) fields(n *yaml.Node) map[string]int {
	lines := map[string]int{}
	var visit func(n *yaml.Node, where []any, depth int)
	put := func(where []any, n *yaml.Node) bool {
		field := evidence.FieldPath(where...)
		if _, ok := lines[field]; ok || len(lines) >= maxLines {
			return false
		}
		lines[field] = d.at(n)
		return true
	}
	visit = func(n *yaml.Node, where []any, depth int) {
		if depth > 100 || len(lines) >= maxLines {
			return
		}
		where = where[:len(where):len(where)]
		switch n.Kind {
		case yaml.AliasNode:
			visit(n.Alias, where, depth+1)
		case yaml.SequenceNode:
			for i, item := range n.Content {
				if put(append(where, i), item) {
					visit(item, append(where, i), depth+1)
				}
			}
		case yaml.MappingNode:
			var merges []*yaml.Node
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				if key.Tag == "!!merge" {
					merges = append(merges, value)
				} else if put(append(where, key.Value), key) {
					visit(value, append(where, key.Value), depth+1)
				}
			}
			for _, value := range merges {
				if value.Kind == yaml.SequenceNode {
					for _, one := range value.Content {
						visit(one, where, depth+1)
					}
				} else {
					visit(value, where, depth+1)
				}
			}
		}
	}
	if n != nil {
		visit(n, nil, 0)
	}
	return lines
}

// item is one object of a document: the document itself, or an item of a list in it.
type item struct {
	content map[string]any
	node    *yaml.Node
	where   string // items[2].items[0], empty for the document itself
}

// flatten gives the objects of a document, with lists replaced by their items as kubectl does: an
// item of a typed list takes the kind from the list where it has none.
func flatten(content map[string]any, node *yaml.Node, where string) []item {
	kind, _ := content["kind"].(string)
	list := content["apiVersion"]
	items, isList := content["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		if kind == "List" && content["items"] == nil {
			return nil
		}
		return []item{{content, node, where}}
	}
	var all []item
	nodes := child(node, "items")
	for i, one := range items {
		here := fmt.Sprintf("items[%d]", i)
		if where != "" {
			here = where + "." + here
		}
		var n *yaml.Node
		if nodes != nil && nodes.Kind == yaml.SequenceNode && i < len(nodes.Content) {
			if n = nodes.Content[i]; n.Kind == yaml.AliasNode {
				n = n.Alias
			}
		}
		content, ok := one.(map[string]any)
		if ok && content["kind"] == nil && content["apiVersion"] == nil && kind != "List" {
			content["kind"], content["apiVersion"] = strings.TrimSuffix(kind, "List"), list
		}
		if !ok {
			all = append(all, item{nil, n, here})
			continue
		}
		all = append(all, flatten(content, n, here)...)
	}
	return all
}
