package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// kustomizationNames are the file names that make a folder a kustomization.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func isKustomization(base string) bool {
	return base == kustomizationNames[0] || base == kustomizationNames[1] || base == kustomizationNames[2]
}

func kustomizationFiles(tree Tree, dir string) ([]string, error) {
	var found []string
	for _, base := range kustomizationNames {
		e, err := tree.Stat(path.Join(dir, base))
		if _, ok := treeFault(dir, err); ok || errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if e.Kind == "file" {
			found = append(found, path.Join(dir, base))
		}
	}
	return found, nil
}

// remote matches what kustomize would fetch, generously: a text that matches and is no path of the
// tree is refused.
var remote = regexp.MustCompile(`(?i)^git::|^gh:|^[a-z][a-z0-9+.-]*://|://|^[a-z0-9][\w.-]*@[^/]|^(www\.)?github\.com[:/]|[?&](ref|version)=`)

// Fields of a kustomization that name files or folders, in lower case because kustomize reads keys in
// any case. Those in folders may name other kustomizations, those in plugins configure programs.
var (
	pathFields = words("resources bases components crds configurations generators transformers validators patchesstrategicmerge path paths files envs env")
	folders    = words("resources bases components generators transformers validators")
	plugins    = words("generators transformers validators")
	fieldSpec  = words("path create group version kind")
	helmFields = words("helmcharts helmchartinflationgenerator helmglobals")
)

// leftOver warns of a key that kustomize drops without a word.
func (s *scanner) leftOver(key *yaml.Node, line int) {
	s.warnings = append(s.warnings, evidence.Finding{Code: "field-ignored", Severity: evidence.Warn, Object: s.file, Field: key.Value,
		Origin: evidence.Origin{File: s.file, Line: line + key.Line}, Message: "kustomize knows no " + key.Value + " in a field spec and ignores it", Do: "correct its name"})
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// kustomization collects the kustomization of a folder and everything that it names.
func (c *collector) kustomization(dir string, depth int) error {
	err := c.kustomizationFolder(dir, depth)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

func (c *collector) kustomizationFolder(dir string, depth int) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	if depth > MaxDepth {
		c.refuse("render-refused", dir, 0, fmt.Sprintf("kustomizations name each other deeper than the limit of %d", MaxDepth), "")
		return errLimit
	}
	names, err := kustomizationFiles(c.tree, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		e, err := c.tree.Stat(name)
		if err != nil {
			return err
		}
		if e.Size > MaxKustomization {
			c.refuse("render-refused", name, 0, fmt.Sprintf("the kustomization file is over the limit of %d bytes", MaxKustomization), "")
			return errLimit
		}
		if err := c.add(name, e); err != nil {
			return err
		}
		s := scanner{collector: c, file: name, dir: dir, depth: depth}
		if err := s.text(c.files[name], 0, ""); err != nil {
			return err
		}
	}
	return nil
}

// scanner walks one kustomization file, or the configuration of a generator or transformer in it.
type scanner struct {
	*collector
	file, dir string
	depth     int
	nested    int
	nodes     int
	plugin    bool // inside the configuration of a generator or transformer
}

// maxNodes bounds the walk of one file, in which aliases may repeat parts.
const maxNodes = 200000

// text scans one YAML text that starts after line of the file. Text that is not YAML is left to
// kustomize, whose error is the better one.
func (s *scanner) text(data []byte, line int, field string) error {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	if plugins[field] {
		defer func(was bool) { s.plugin = was }(s.plugin)
		s.plugin = true
		if s.scan {
			s.program(doc.Content[0], line)
		}
	}
	return s.node(doc.Content[0], field, line, 0)
}

// node visits a value; field is the nearest key above it.
func (s *scanner) node(n *yaml.Node, field string, line, depth int) error {
	if s.nodes++; s.nodes > maxNodes || depth > 1000 {
		s.refuse("render-refused", s.file, line+n.Line, fmt.Sprintf("the file has more than the limit of %d values", maxNodes), "")
		return errLimit
	}
	switch n.Kind {
	case yaml.AliasNode:
		return s.node(n.Alias, field, line, depth+1)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := s.node(item, field, line, depth+1); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			name := strings.ToLower(key.Value)
			if s.scan && s.nested == 0 && depth == 0 && helmFields[name] {
				s.refuse("render-refused", s.file, line+key.Line, key.Value+" runs a program that fetches charts; kustomize is not given one", "commit the rendered chart")
			}
			if s.plugin && field == "fieldspecs" && !fieldSpec[name] {
				s.leftOver(key, line)
			}
			if err := s.node(n.Content[i+1], name, line, depth+1); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return s.scalar(n, field, line)
	}
	return nil
}

func (s *scanner) scalar(n *yaml.Node, field string, line int) error {
	if strings.Contains(n.Value, "\n") {
		if s.nested++; s.nested > 3 {
			return nil
		}
		defer func() { s.nested-- }()
		if !plugins[field] {
			field = ""
		}
		return s.text([]byte(n.Value), line+n.Line, field)
	}
	defer func(known int) {
		for i := known; i < len(s.leftOut); i++ { // who names it; what a kustomization below names has its line already
			if f := &s.leftOut[i]; f.Origin.Line == 0 {
				f.Origin = evidence.Origin{File: s.file, Line: line + n.Line}
			}
		}
	}(len(s.leftOut))
	before, value, both := strings.Cut(n.Value, "=")
	exists, err := s.named(n.Value, field)
	if err == nil && both {
		var second bool
		second, err = s.named(value, field)
		exists = exists || second
	}
	if err != nil {
		return err
	}
	if s.scan && !exists && pathFields[field] && (s.nested == 0 || s.plugin) &&
		(remote.MatchString(n.Value) || both && remote.MatchString(value)) {
		if !both || remote.MatchString(before) {
			value = n.Value
		}
		s.refuse("render-refused", s.file, line+n.Line, fmt.Sprintf("%s names %q, which is not in the repository and would be fetched: %s", field, n.Value, remoteKind(value)), "copy it into the repository")
	}
	return nil
}

// named collects what a scalar names, if that is a path of the tree.
func (s *scanner) named(text, field string) (bool, error) {
	name := path.Join(s.dir, text)
	if text == "" || len(text) > 1024 || path.IsAbs(text) || name == ".." || strings.HasPrefix(name, "../") {
		return false, nil
	}
	e, err := s.tree.Stat(name)
	if err == nil && e.Kind == "submodule" && folders[field] {
		e, err = s.tree.Stat(name + "/.") // the folder in it; other fields may only look alike
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if f, ok := treeFault(name, err); ok {
		s.leftOut = append(s.leftOut, f)
		return true, nil
	} else if err != nil {
		return false, err
	}
	switch {
	case e.Kind == "submodule" && folders[field]:
		f, _ := treeFault(name, submodule{name})
		s.leftOut = append(s.leftOut, f)
	case e.Kind == "file":
		if err := s.add(name, e); err != nil {
			return true, err
		}
		if plugins[field] && e.Size <= MaxKustomization {
			inner := scanner{collector: s.collector, file: name, dir: s.dir, depth: s.depth, nested: 1}
			return true, inner.text(s.files[name], 0, field)
		}
	case e.Kind == "dir" && folders[field]:
		if e.Path != name {
			s.links[name] = e.Path
		}
		return true, s.kustomizationFolder(e.Path, s.depth+1)
	}
	return true, nil
}

// program refuses the configuration of a generator or transformer that is not kustomize's own.
func (s *scanner) program(n *yaml.Node, line int) {
	if n.Kind != yaml.MappingNode {
		return
	}
	why := ""
	at := n.Line
	api, kind := child(n, "apiVersion"), child(n, "kind")
	switch {
	case api == nil || kind == nil:
		return
	case strings.HasPrefix(kind.Value, "HelmChart"):
		why, at = kind.Value+" runs a program that fetches charts", kind.Line
	case api.Value != "builtin":
		why, at = fmt.Sprintf("%s %s is a program, and programs of the revision are not run", api.Value, kind.Value), api.Line
	}
	if a := child(child(n, "metadata"), "annotations"); a != nil {
		for i := 0; i+1 < len(a.Content); i += 2 {
			if key := a.Content[i]; key.Value == "config.kubernetes.io/function" || key.Value == "config.k8s.io/function" {
				why, at = "the annotation "+key.Value+" runs a program, and programs of the revision are not run", key.Line
			}
		}
	}
	if why != "" {
		s.findings = append(s.findings, evidence.Finding{Code: "render-refused", Severity: evidence.Fail, Object: s.file,
			Origin: evidence.Origin{File: s.file, Line: line + at}, Message: why, Do: "commit what it generates"})
	}
}

// child is the value of a mapping's key, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
