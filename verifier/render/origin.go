package render

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// finder locates the source of kustomize's objects. Kustomize can note origins itself, and then notes
// every transformation too, which takes longer than the build.
type finder struct {
	req  request
	all  []kustomizationFile
	docs map[string][]decoded
}

// resources are the files that the kustomizations name as such.
func (f *finder) resources() []string {
	var files []string
	for _, k := range f.all {
		for _, name := range k.includes {
			if _, ok := f.req.Files[name]; ok {
				files = append(files, name)
			}
		}
	}
	return files
}

// mark notes in every object of the resources where it comes from. A file with a list or with
// something else than objects stays as it is.
func (f *finder) mark(files map[string][]byte) {
	for _, name := range f.resources() {
		var text []byte
		for _, d := range f.read(name) {
			content := contents(d.json)
			if kind, _ := content["kind"].(string); kind == "" || strings.HasSuffix(kind, "List") {
				text = nil
				break
			}
			content[originMark] = name
			text = append(append(text, "---\n"...), append(canonical(content), '\n')...)
		}
		if text != nil {
			files[name] = text
		}
	}
}

// origin is the document that an object comes from and its fields' lines there, and takes the mark
// away; for a generated object it is the entry in the kustomization file. Where neither is known it
// is the top file.
func (f *finder) origin(content map[string]any, top string) (evidence.Origin, map[string]int) {
	metadata, _ := content["metadata"].(map[string]any)
	kind, _ := content["kind"].(string)
	name, _ := metadata["name"].(string)
	file, _ := content[originMark].(string)
	delete(content, originMark)
	if file != "" {
		origin, lines, _ := f.within(file, kind, name)
		return origin, lines
	}
	for _, k := range f.all {
		if origin, lines := f.generated(k.name, kind, name); lines != nil {
			return origin, lines
		}
	}
	best, origin, lines := 1, evidence.Origin{File: top, Line: 1}, map[string]int(nil)
	for _, file := range f.resources() {
		if o, l, score := f.within(file, kind, name); score > best {
			best, origin, lines = score, o, l
		}
	}
	return origin, lines
}

// within is the document of a file that looks most like an object, and how much it does.
func (f *finder) within(file, kind, name string) (evidence.Origin, map[string]int, int) {
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
		return evidence.Origin{File: file, Line: 1}, nil, 0
	}
	return evidence.Origin{File: file, Line: from.at(best.node)}, from.fields(best.node), score
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

func (f *finder) read(file string) []decoded {
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
func (f *finder) generated(file, kind, name string) (evidence.Origin, map[string]int) {
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
