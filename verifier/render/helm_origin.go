package render

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// template is one template of a chart or of one below it.
type template struct {
	file  string // of the repository
	kinds map[string][]int
	text  []byte
}

var (
	kindLine = regexp.MustCompile(`(?m)^[ \t]*-?[ \t]*kind:[ \t]*(?:["']?(\w+)["']?|["']?\{\{.*)[ \t]*(?:#.*)?\r?$`)
	comment  = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
	getFile  = regexp.MustCompile(`\.Files\.(?:Get|GetBytes|Lines)\s+"([^"]+)"`)
)

// index notes where each template lies, and warns of files that a template reads and the chart lacks:
// Helm gives them as empty.
func (h *helmRender) index(c *chart.Chart) {
	for _, f := range c.Templates {
		t := &template{file: h.source(f.Data), text: f.Data, kinds: map[string][]int{}}
		line, at := 1, 0
		for _, m := range kindLine.FindAllSubmatchIndex(f.Data, -1) {
			line, at = line+bytes.Count(f.Data[at:m[1]], []byte("\n")), m[1]
			kind := "" // an expression
			if m[2] >= 0 {
				kind = string(f.Data[m[2]:m[3]])
			}
			t.kinds[kind] = append(t.kinds[kind], line)
		}
		h.templates[path.Join(c.ChartFullPath(), f.Name)] = t
		h.reads(c, t)
	}
	for _, sub := range c.Dependencies() {
		h.index(sub)
	}
}

func (h *helmRender) reads(c *chart.Chart, t *template) {
	text := comment.ReplaceAllFunc(t.text, func(c []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(c, []byte("\n"))) })
	for _, m := range getFile.FindAllSubmatchIndex(text, -1) {
		name := string(text[m[2]:m[3]])
		if slices.ContainsFunc(c.Files, func(f *chartFileEntry) bool { return f.Name == name }) {
			continue
		}
		h.reportAs(evidence.Warn, "chart-file-missing", t.file, bytes.Count(text[:m[2]], []byte("\n"))+1,
			fmt.Sprintf("the template reads %q, which is no file of the chart; Helm takes it for empty", name), "add the file, or name it as it stands in the chart")
	}
}

// line is where a template declares an object: the nth of its kind, or the one that has the name in
// plain text.
func (t *template) line(kind, name string, nth int) int {
	if archived(t.file) {
		return 0
	}
	lines := t.kinds[kind]
	if len(lines) == 0 {
		lines = t.kinds[""]
	}
	if len(lines) == 0 {
		return 1
	}
	text := strings.Split(string(t.text), "\n")
	for _, at := range lines {
		for _, near := range text[at-1 : min(at+12, len(text))] {
			if value, ok := strings.CutPrefix(strings.TrimSpace(near), "name:"); ok && strings.Trim(strings.TrimSpace(value), `"'`) == name {
				return at
			}
		}
	}
	return lines[min(nth, len(lines)-1)]
}

// part is one document that a template gave.
type part struct {
	file, text string
}

// head is what a document says of its object.
type head struct{ kind, name, hook string }

func headOf(h releaseutil.SimpleHead) head {
	if h.Metadata == nil {
		return head{kind: h.Kind}
	}
	return head{h.Kind, h.Metadata.Name, h.Metadata.Annotations[helmrelease.HookAnnotation]}
}

// origins finds where each document was declared, and lists those whose hook Helm does not know.
func (h *helmRender) origins(rendered map[string]string, used map[part]head) map[part]evidence.Origin {
	all := map[part]evidence.Origin{}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		t := h.templates[name]
		docs := releaseutil.SplitManifests(rendered[name])
		keys := slices.Collect(maps.Keys(docs))
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		count := map[string]int{}
		for _, key := range keys {
			p := part{name, docs[key]}
			object, known := used[p]
			if !known {
				var simple releaseutil.SimpleHead
				if sigsyaml.Unmarshal([]byte(p.text), &simple) != nil {
					continue
				}
				if object = headOf(simple); object.hook != "" {
					h.skip(t.file, fmt.Sprintf("hook %s: Helm does not know it and leaves out %s/%s", object.hook, object.kind, object.name))
				}
			}
			all[p] = evidence.Origin{File: t.file, Line: t.line(object.kind, object.name, count[object.kind])}
			count[object.kind]++
		}
	}
	return all
}

func (h *helmRender) skip(file, reason string) {
	h.answer.Skipped = append(h.answer.Skipped, evidence.Skipped{File: file, Reason: reason})
}
