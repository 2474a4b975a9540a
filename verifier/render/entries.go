package render

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// entry is one part of a kustomization that is there to match something.
type entry struct {
	file string
	line int
	// field is the key that it stands under, in lower case, index its place in that list, and target
	// that of one target of a replacement.
	field         string
	index, target int
	content       map[string]any
	// named says that it names one object, which somebody expects to be there.
	named bool
}

// matching are the fields whose entries match objects and of which kustomize says nothing when they
// match none. It fails by itself for patches that name their object in the patch, and for replicas.
var matching = []string{"patches", "patchesjson6902", "images", "replacements", "namespace"}

// kustomization is one kustomization file of a build.
type kustomizationFile struct {
	name, dir string
	content   map[string]any
	node      *yaml.Node
	includes  []string // folders
}

// reached are the kustomizations of a build, each before those that it names. Files that cannot be
// read are left to kustomize.
func reached(req request) []kustomizationFile {
	var all []kustomizationFile
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if to, ok := req.Links[dir]; ok {
			dir = to
		}
		name := topFile(request{Root: dir, Files: req.Files})
		data, ok := req.Files[name]
		if !ok || seen[dir] {
			return
		}
		seen[dir] = true
		d, err := decode(document{line: 1, text: data})
		content, isMap := numbers(d.json).(map[string]any)
		if err != nil || !isMap {
			return
		}
		k := kustomizationFile{name: name, dir: dir, content: content, node: d.node}
		for _, field := range []string{"resources", "bases", "components"} {
			for _, item := range list(content, field) {
				if text, ok := item.(string); ok {
					k.includes = append(k.includes, path.Join(dir, text))
				}
			}
		}
		all = append(all, k)
		for _, next := range k.includes {
			visit(next)
		}
	}
	visit(req.Root)
	return all
}

// key is how a kustomization writes a field; kustomize reads keys in any case.
func key(content map[string]any, field string) string {
	for k := range content {
		if strings.EqualFold(k, field) {
			return k
		}
	}
	return field
}

func list(content map[string]any, field string) []any {
	items, _ := content[key(content, field)].([]any)
	return items
}

// line is that of item i under a field, or of the field itself, or 1.
func (k kustomizationFile) line(field string, i int) int {
	if k.node == nil {
		return 1
	}
	for at := 0; at+1 < len(k.node.Content); at += 2 {
		if name, value := k.node.Content[at], k.node.Content[at+1]; strings.EqualFold(name.Value, field) {
			if value.Kind == yaml.SequenceNode && i < len(value.Content) {
				return value.Content[i].Line
			}
			return name.Line
		}
	}
	return 1
}

// entries are all that may have matched nothing without a word.
func entries(req request, all []kustomizationFile) []entry {
	var found []entry
	for _, k := range all {
		for _, field := range matching {
			if text, _ := k.content[key(k.content, field)].(string); field == "namespace" && text != "" {
				found = append(found, entry{file: k.name, line: k.line(field, 0), field: field, content: map[string]any{"namespace": text}})
			}
			for i, item := range list(k.content, field) {
				content, _ := item.(map[string]any)
				e := entry{file: k.name, line: k.line(field, i), field: field, index: i, content: content}
				target, _ := content["target"].(map[string]any)
				switch {
				case field == "replacements":
					found = append(found, replacements(req, k, e)...)
				case field == "images" || target != nil:
					name, _ := target["name"].(string)
					e.named = name != "" && regexp.QuoteMeta(name) == strings.ReplaceAll(name, ".", `\.`)
					found = append(found, e)
				}
			}
		}
	}
	return found
}

// replacements are the targets of one entry, which may name a file with several replacements.
func replacements(req request, k kustomizationFile, e entry) []entry {
	several := []any{e.content}
	file, isPath := e.content["path"].(string)
	if isPath {
		file = path.Join(k.dir, file)
		data, err := sigsyaml.YAMLToJSON(req.Files[file])
		if err != nil {
			return nil
		}
		value := numbers(data)
		if many, ok := value.([]any); ok {
			several = many
		} else {
			several = []any{value}
		}
	}
	var found []entry
	for _, one := range several {
		content, _ := one.(map[string]any)
		targets, _ := content["targets"].([]any)
		for _, t := range targets {
			e.content, _ = t.(map[string]any)
			if e.target = len(found); e.content["select"] != nil {
				found = append(found, e)
			}
		}
	}
	return found
}

// selects says in words what an entry is to match.
func (e entry) selects() string {
	var selector map[string]any
	switch e.field {
	case "namespace":
		return "object that has a namespace"
	case "images":
		return fmt.Sprintf("image %v", e.content["name"])
	case "replacements":
		selector, _ = e.content["select"].(map[string]any)
	default:
		selector, _ = e.content["target"].(map[string]any)
	}
	var words []string
	for _, key := range []string{"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"} {
		if selector[key] != nil {
			words = append(words, fmt.Sprintf("%s %v", key, selector[key]))
		}
	}
	return "object of " + strings.Join(words, ", ")
}

// finding says that the entry matched nothing. A patch of one object that is not there is a mistake;
// one for a class of objects, an image or a target may be written for more than this set.
func (e entry) finding() evidence.Finding {
	f := evidence.Finding{Code: "patch-matched-nothing", Severity: evidence.Warn, Object: e.file, Field: fmt.Sprintf("%s[%d]", e.field, e.index),
		Origin: evidence.Origin{File: e.file, Line: e.line}, Message: "there is no " + e.selects() + " where it could apply", Do: "correct what it names, or remove it"}
	if e.named && strings.HasPrefix(e.field, "patches") {
		f.Severity = evidence.Fail
	}
	if e.field == "namespace" {
		f.Field = e.field
	}
	return f
}

// blame makes kustomize's own error about an entry one that names the entry's line.
func blame(req request, text string, f *evidence.Finding) {
	all := reached(req)
	at := func(k kustomizationFile, code string, line int) {
		f.Code, f.Origin = code, evidence.Origin{File: k.name, Line: line}
	}
	for _, k := range all {
		if strings.Contains(text, "no matches for Id ") {
			for _, field := range []string{"patchesstrategicmerge", "patches"} {
				for i, item := range list(k.content, field) {
					if k.patches(req, item, text) {
						at(k, "patch-matched-nothing", k.line(field, i))
						return
					}
				}
			}
		}
		for i, item := range list(k.content, "replicas") {
			content, _ := item.(map[string]any)
			if strings.HasPrefix(text, fmt.Sprintf("resource with name %v does not match ", content["name"])) || strings.Contains(text, fmt.Sprintf(": resource with name %v does not match ", content["name"])) {
				at(k, "patch-matched-nothing", k.line("replicas", i))
				return
			}
		}
	}
	quoted := quotedText.FindAllStringSubmatch(text, -1)
	unknown := unknownField.FindStringSubmatch(text)
	for _, k := range all {
		for _, item := range list(k.content, "configurations") {
			name := path.Join(k.dir, fmt.Sprint(item))
			if d, err := decode(document{line: 1, text: req.Files[name]}); unknown != nil && err == nil {
				if n := lookUp(d.node, unknown[1], true, 0); n != nil {
					f.Origin = evidence.Origin{File: name, Line: n.Line}
					return
				}
			}
		}
		switch n := (*yaml.Node)(nil); {
		case unknown != nil:
			if n = lookUp(k.node, unknown[1], true, 0); n != nil {
				at(k, f.Code, n.Line)
				return
			}
		case f.Origin.File == k.name && f.Origin.Line == 0:
			for _, q := range quoted {
				if n = lookUp(k.node, q[1], false, 0); n != nil {
					at(k, f.Code, n.Line)
					return
				}
			}
		}
	}
}

var (
	quotedText   = regexp.MustCompile(`'([^']+)'`)
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
)

// patches tells whether an entry without a target holds the patch that an error is about.
func (k kustomizationFile) patches(req request, item any, text string) bool {
	inline, file := "", ""
	switch item := item.(type) {
	case string:
		inline, file = item, item
	case map[string]any:
		if item["target"] != nil {
			return false
		}
		inline, _ = item["patch"].(string)
		file, _ = item["path"].(string)
	}
	data := []byte(inline)
	if named, ok := req.Files[path.Join(k.dir, file)]; ok && file != "" {
		data = named
	}
	docs, _ := split(data) // kustomize has read it
	return slices.ContainsFunc(docs, func(doc document) bool {
		d, err := decode(doc)
		content, _ := numbers(d.json).(map[string]any)
		metadata, _ := content["metadata"].(map[string]any)
		return err == nil && strings.Contains(text, fmt.Sprintf("no matches for Id %v.", content["kind"])) &&
			strings.Contains(text, fmt.Sprintf("/%v.", metadata["name"]))
	})
}

// lookUp finds a key, or a scalar that is no key, anywhere below a node.
func lookUp(n *yaml.Node, text string, isKey bool, depth int) *yaml.Node {
	if n == nil || depth > 100 {
		return nil
	}
	for i, c := range n.Content {
		if c.Kind == yaml.ScalarNode && c.Value == text && isKey == (n.Kind == yaml.MappingNode && i%2 == 0) {
			return c
		}
		if found := lookUp(c, text, isKey, depth+1); found != nil {
			return found
		}
	}
	return nil
}
