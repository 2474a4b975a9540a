package render

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// finder locates the source of kustomize's objects by the origins that kustomize notes.
type finder struct {
	req  request
	docs map[string][]decoded
}

// origin is the document that an object comes from and its fields' lines there; for a generated
// object the entry in the kustomization file. Where neither is known it is the top file.
func (f finder) origin(content map[string]any, top string) (evidence.Origin, map[string]int) {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	var note struct{ Path, ConfiguredIn string }
	kind, _ := content["kind"].(string)
	name, _ := metadata["name"].(string)
	if text == "" || sigsyaml.Unmarshal([]byte(text), &note) != nil {
		return evidence.Origin{File: top, Line: 1}, nil
	}
	if note.Path == "" {
		return f.generated(f.file(note.ConfiguredIn), kind, name)
	}
	file := f.file(note.Path)
	best, score := item{}, 0
	var from decoded
	for _, d := range f.read(file) {
		document, _ := numbers(d.json).(map[string]any)
		for _, i := range flatten(document, d.node, "") {
			if s := likeness(i, kind, name); s > score {
				best, score, from = i, s, d
			}
		}
	}
	if score == 0 {
		return evidence.Origin{File: file, Line: 1}, nil
	}
	return evidence.Origin{File: file, Line: from.at(best.node)}, from.fields(best.node)
}

// likeness ranks a source object: a name may have gained a prefix, a suffix and a hash.
func likeness(i item, kind, name string) int {
	if i.content["kind"] != kind {
		return 0
	}
	metadata, _ := i.content["metadata"].(map[string]any)
	source, _ := metadata["name"].(string)
	switch {
	case source == name:
		return 1 << 20
	case source != "" && strings.Contains(name, source):
		return 1 + len(source)
	}
	return 1
}

// file is the path in the tree of one that kustomize states from the top folder.
func (f finder) file(noted string) string {
	name := path.Join(f.req.Root, noted)
	for from, to := range f.req.Links {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			return path.Join(to, rest)
		}
	}
	return name
}

func (f finder) read(file string) []decoded {
	if all, ok := f.docs[file]; ok {
		return all
	}
	var all []decoded
	docs, _ := split(f.req.Files[file]) // kustomize has read it; without positions only the line is lost
	for _, doc := range docs {
		if d, err := decode(doc); err == nil && d.node != nil {
			all = append(all, d)
		}
	}
	f.docs[file] = all
	return all
}

// generated finds the entry of a generator, and for each key of the data the line that names it.
func (f finder) generated(file, kind, name string) (evidence.Origin, map[string]int) {
	field := strings.ToLower(kind) + "generator"
	for _, d := range f.read(file) {
		if d.node.Kind != yaml.MappingNode {
			continue
		}
		var best *yaml.Node
		longest := -1
		for i := 0; i+1 < len(d.node.Content); i += 2 {
			if strings.ToLower(d.node.Content[i].Value) != field {
				continue
			}
			for _, entry := range d.node.Content[i+1].Content {
				if n := child(entry, "name"); n != nil && strings.Contains(name, n.Value) && len(n.Value) > longest {
					best, longest = entry, len(n.Value)
				}
			}
		}
		if best == nil {
			continue
		}
		lines := map[string]int{}
		for _, list := range []string{"files", "literals"} {
			if n := child(best, list); n != nil {
				for _, entry := range n.Content {
					key, _, both := strings.Cut(entry.Value, "=")
					if !both {
						key = path.Base(entry.Value)
					}
					lines[evidence.FieldPath("data", key)] = d.at(entry)
				}
			}
		}
		return evidence.Origin{File: file, Line: d.at(best)}, lines
	}
	return evidence.Origin{File: file, Line: 1}, nil
}
