package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ConfigFile is where a revision may say what of it is rendered, at its root.
const ConfigFile = "rebuild-check.yaml"

const (
	configAPI  = "rebuild-check.dev/v1alpha1"
	configKind = "RebuildCheck"
	// MaxConfig is the size limit of the file in bytes.
	MaxConfig = 64 << 10
	maxPaths  = 100
	maxNodes  = 20
)

// Config is what a revision says about its own rebuild. It names what is rendered and where it goes;
// limits and what is allowed are not for the revision to say.
type Config struct {
	// Paths are rendered in their order and make one set; none means the command line's path.
	Paths []Path
	// Namespace takes objects that name none; empty means that the file does not say.
	Namespace string
	// Nodes is how many the cluster has; 0 means that the file does not say.
	Nodes int
	// Inputs are what may come from outside the repository.
	Inputs []Input
}

// Path is one folder or file of the revision to render.
type Path struct {
	// Path is slash-separated, from the root of the repository; "." is the root.
	Path string
	// Renderer is "plain", "kustomize" or "helm"; empty is detected.
	Renderer string
	// Values are files of the revision, from its root, Set is KEY=VALUE, and Release the name of the
	// release: all three are for charts only.
	Values, Set []string
	Release     string
}

var (
	renderers     = []string{"plain", "kustomize", "helm"}
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	releaseName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,51}[a-z0-9])?$`)
)

// ParseConfig reads a config file strictly: unknown and repeated fields are mistakes, and so are
// anchors. All mistakes are reported at once, each with file and line.
func ParseConfig(file string, data []byte) (Config, error) {
	r := &configReader{file: file}
	if len(data) > MaxConfig {
		return Config{}, fmt.Errorf("%s: the file is over the limit of %d bytes", file, MaxConfig)
	}
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%s:1: the file is empty: want apiVersion %s, kind %s", file, configAPI, configKind)
	} else if err != nil {
		return Config{}, fmt.Errorf("%s: reading the YAML: %w", file, err)
	}
	if err := decoder.Decode(&more); err == nil {
		r.wrong(&more, "", "a second document; want one")
	} else if !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%s: reading the YAML: %w", file, err)
	}
	config := r.config(doc.Content[0])
	if len(r.mistakes) > 0 {
		return Config{}, errors.Join(r.mistakes...)
	}
	return config, nil
}

type configReader struct {
	file     string
	mistakes []error
}

func (r *configReader) wrong(n *yaml.Node, field, format string, args ...any) {
	if field != "" {
		format = field + ": " + format
	}
	r.mistakes = append(r.mistakes, fmt.Errorf("%s:%d: "+format, append([]any{r.file, max(n.Line, 1)}, args...)...))
}

func (r *configReader) config(n *yaml.Node) Config {
	var c Config
	api, kind := "", ""
	r.mapping(n, "", map[string]func(*yaml.Node, string){
		"apiVersion": func(n *yaml.Node, field string) { api = r.oneOf(n, field, configAPI) },
		"inputs":     func(n *yaml.Node, field string) { c.Inputs = r.inputs(n, field) },
		"kind":       func(n *yaml.Node, field string) { kind = r.oneOf(n, field, configKind) },
		"namespace":  func(n *yaml.Node, field string) { c.Namespace = r.matching(n, field, namespaceName, "a namespace") },
		"nodes": func(n *yaml.Node, field string) {
			var err error
			if c.Nodes, err = strconv.Atoi(n.Value); err != nil || n.Tag != "!!int" || c.Nodes < 1 || c.Nodes > maxNodes {
				r.wrong(n, field, "want a whole number from 1 to %d", maxNodes)
			}
		},
		"paths": func(n *yaml.Node, field string) { c.Paths = r.paths(n, field) },
	})
	for _, missing := range []struct{ name, got, want string }{{"apiVersion", api, configAPI}, {"kind", kind, configKind}} {
		if n.Kind == yaml.MappingNode && missing.got == "" && !has(n, missing.name) {
			r.wrong(n, "", "%s is missing: want %s", missing.name, missing.want)
		}
	}
	return c
}

func (r *configReader) paths(n *yaml.Node, field string) []Path {
	var paths []Path
	items := r.items(n, field)
	if n.Kind == yaml.SequenceNode && (len(items) == 0 || len(items) > maxPaths) {
		r.wrong(n, field, "want 1 to %d paths", maxPaths)
		return nil
	}
	seen := map[string]int{}
	for i, item := range items {
		field := fmt.Sprintf("%s[%d]", field, i)
		var p Path
		r.mapping(item, field, map[string]func(*yaml.Node, string){
			"path":     func(n *yaml.Node, field string) { p.Path = r.place(n, field) },
			"renderer": func(n *yaml.Node, field string) { p.Renderer = r.oneOf(n, field, renderers...) },
			"release":  func(n *yaml.Node, field string) { p.Release = r.matching(n, field, releaseName, "a release name") },
			"values": func(n *yaml.Node, field string) {
				for i, item := range r.items(n, field) {
					p.Values = append(p.Values, r.place(item, fmt.Sprintf("%s[%d]", field, i)))
				}
			},
			"set": func(n *yaml.Node, field string) {
				for i, item := range r.items(n, field) {
					text := r.text(item, fmt.Sprintf("%s[%d]", field, i))
					if !strings.Contains(text, "=") {
						r.wrong(item, fmt.Sprintf("%s[%d]", field, i), "want KEY=VALUE")
					}
					p.Set = append(p.Set, text)
				}
			},
		})
		if item.Kind != yaml.MappingNode {
			continue
		}
		if !has(item, "path") {
			r.wrong(item, field, "path is missing")
		} else if line, twice := seen[p.Path+"\x00"+p.Release]; twice && p.Path != "" {
			r.wrong(item, field, "path %s is also in line %d", p.Path, line)
		} else {
			seen[p.Path+"\x00"+p.Release] = item.Line
		}
		if (p.Renderer == "plain" || p.Renderer == "kustomize") && (has(item, "values") || has(item, "set") || has(item, "release")) {
			r.wrong(item, field, "values, set and release are for charts; the renderer is %s", p.Renderer)
		}
		paths = append(paths, p)
	}
	return paths
}

// mapping calls the reader of every field, and reports fields that have none or stand twice.
func (r *configReader) mapping(n *yaml.Node, at string, fields map[string]func(*yaml.Node, string)) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, at, "want a mapping of fields")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		field := strings.TrimPrefix(at+"."+name.Value, ".")
		read, known := fields[name.Value]
		line, twice := seen[name.Value]
		switch {
		case name.Kind != yaml.ScalarNode || !known:
			known := make([]string, 0, len(fields))
			for field := range fields {
				known = append(known, field)
			}
			slices.Sort(known)
			r.wrong(name, at, "there is no field %q; known are: %s", name.Value, strings.Join(known, ", "))
		case twice:
			r.wrong(name, field, "it stands in line %d already", line)
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.wrong(value, field, "anchors and aliases are not read here; write it out")
		default:
			read(value, field)
		}
		seen[name.Value] = name.Line
	}
}

func has(n *yaml.Node, field string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			return true
		}
	}
	return false
}

func (r *configReader) items(n *yaml.Node, field string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, field, "want a list")
		return nil
	}
	return n.Content
}

func (r *configReader) text(n *yaml.Node, field string) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		r.wrong(n, field, "want a text; put it in quotes where it looks like something else")
		return ""
	}
	return n.Value
}

func (r *configReader) oneOf(n *yaml.Node, field string, known ...string) string {
	text := r.text(n, field)
	if text != "" && !slices.Contains(known, text) {
		r.wrong(n, field, "want %s, not %q", strings.Join(known, " or "), text)
	}
	return text
}

func (r *configReader) matching(n *yaml.Node, field string, form *regexp.Regexp, what string) string {
	text := r.text(n, field)
	if text != "" && !form.MatchString(text) {
		r.wrong(n, field, "%q is not %s as Kubernetes allows it", text, what)
	}
	return text
}

// place is a path inside the repository.
func (r *configReader) place(n *yaml.Node, field string) string {
	text := r.text(n, field)
	if text == "" {
		return ""
	}
	clean := path.Clean(text)
	if path.IsAbs(text) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(text, "\\\x00") {
		r.wrong(n, field, "%q is not a path inside the repository", text)
	}
	return clean
}
