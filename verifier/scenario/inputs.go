package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const (
	maxInputs = 100
	// Placeholder is the value of a key for which a stub names none.
	Placeholder = "rebuild-check-stub"
)

// Input is a Secret or ConfigMap that may come from outside the repository, and why.
type Input struct {
	Kind, Name string
	// Namespace is empty for the one that objects go to that name none.
	Namespace string
	// Keys are those that it holds beside the ones of its stub.
	Keys   []string
	Reason string
	// Stubbed is true when the run may put a stub in its place, Stub the stub's keys and texts. A stub
	// of no texts has every key that the set asks for.
	Stubbed bool
	Stub    map[string]string
	Origin  evidence.Origin
}

// ID is what the input stands for, where target takes objects that name no namespace.
func (i Input) ID(target string) evidence.ID {
	id := evidence.ID{Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
	if id.Namespace == "" {
		id.Namespace = target
	}
	return id
}

// Gives tells whether a stub of the input has the key; no key stands for the whole.
func (i Input) Gives(key string) bool {
	_, named := i.Stub[key]
	return i.Stubbed && (key == "" || len(i.Stub) == 0 || named || slices.Contains(i.Keys, key))
}

var (
	objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	dataKey    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)
)

func (r *configReader) inputs(n *yaml.Node, field string) []Input {
	items := r.items(n, field)
	if len(items) > maxInputs {
		r.wrong(n, field, "want at most %d inputs", maxInputs)
		return nil
	}
	var inputs []Input
	seen := map[evidence.ID]int{}
	for i, item := range items {
		field := fmt.Sprintf("%s[%d]", field, i)
		input := Input{Origin: evidence.Origin{File: r.file, Line: item.Line}}
		r.mapping(item, field, map[string]func(*yaml.Node, string){
			"kind":      func(n *yaml.Node, field string) { input.Kind = r.oneOf(n, field, "Secret", "ConfigMap") },
			"name":      func(n *yaml.Node, field string) { input.Name = r.matching(n, field, objectName, "a name") },
			"namespace": func(n *yaml.Node, field string) { input.Namespace = r.matching(n, field, namespaceName, "a namespace") },
			"reason": func(n *yaml.Node, field string) {
				if input.Reason = strings.TrimSpace(r.text(n, field)); input.Reason == "" && n.Value != "" {
					r.wrong(n, field, "want a text that says why it is not in the repository")
				}
			},
			"keys": func(n *yaml.Node, field string) {
				for i, item := range r.items(n, field) {
					input.Keys = append(input.Keys, r.matching(item, fmt.Sprintf("%s[%d]", field, i), dataKey, "a key"))
				}
			},
			"stub": func(n *yaml.Node, field string) { input.Stub, input.Stubbed = r.stub(n, field), true },
		})
		if item.Kind != yaml.MappingNode {
			continue
		}
		for _, name := range []string{"kind", "name", "reason"} {
			if !has(item, name) {
				r.wrong(item, field, "%s is missing", name)
			}
		}
		if line, twice := seen[input.ID("")]; twice && input.Name != "" {
			r.wrong(item, field, "%s %s is also in line %d", input.Kind, input.Name, line)
		}
		seen[input.ID("")] = item.Line
		inputs = append(inputs, input)
	}
	return inputs
}

// stub is true, or the texts of keys.
func (r *configReader) stub(n *yaml.Node, field string) map[string]string {
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!bool" || n.Value != "true" {
			r.wrong(n, field, "want true, or a text for each key")
		}
		return nil
	}
	texts := map[string]string{}
	known := map[string]func(*yaml.Node, string){}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if !dataKey.MatchString(key) {
			r.wrong(n.Content[i], field, "%q is not a key as Kubernetes allows it", key)
		}
		known[key] = func(n *yaml.Node, field string) { texts[key] = r.text(n, field) }
	}
	if r.mapping(n, field, known); len(texts) == 0 {
		r.wrong(n, field, "want true, or a text for each key")
	}
	return texts
}

// StubKeys are the keys and texts of a stub that must have those that the set asks for.
func (i Input) StubKeys(asked []string) map[string]string {
	texts := map[string]string{}
	for _, key := range slices.Concat(i.Keys, asked) {
		texts[key] = Placeholder
	}
	maps.Copy(texts, i.Stub)
	return texts
}
