package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// probeName marks what an entry matched. As a field of an object it is followed by the entry's number.
const probeName = "rebuild-check-probe"

// maxProbes bounds the probes of one build, and probedBytes what is rendered, all in all, by the
// builds of their own that entries get; an entry that such a build has to go through first takes the
// time of entryCost bytes.
const (
	maxProbes   = 500
	probedBytes = 16 << 20
	entryCost   = 4 << 10
)

// prober finds the entries that matched nothing. Kustomize selects by names that objects had on the
// way, which its result does not show; so kustomize itself is asked. In the run for the origins every
// patch and replacement is preceded by a probe with the same target, which leaves a field behind.
// What stays in doubt, since a later step may have hidden it, gets a build that ends with its probe.
type prober struct {
	req     request
	all     []kustomizationFile
	entries []entry
	seen    map[int]bool
}

func newProber(req request) *prober {
	p := &prober{req: req, all: reached(req), seen: map[int]bool{}}
	p.entries = entries(req, p.all)
	return p
}

// probe is an entry for the same list that only marks what e matches.
func (e entry) probe(mark string) any {
	switch e.field {
	case "images":
		return map[string]any{"name": e.content["name"], "newName": mark}
	case "replacements":
		target := map[string]any{"select": e.content["select"], "fieldPaths": []any{mark}, "options": map[string]any{"create": true}}
		if e.content["reject"] != nil {
			target["reject"] = e.content["reject"]
		}
		return map[string]any{"sourceValue": "x", "targets": []any{target}}
	}
	return map[string]any{"target": e.content["target"], "patch": `[{"op": "add", "path": "/` + mark + `", "value": "x"}]`}
}

// noted are the files with the probes of all entries for which that does not change the result.
func (p *prober) noted() map[string][]byte {
	files := maps.Clone(p.req.Files)
	type place struct {
		file, field string
		index       int
	}
	numbers := map[place][]int{}
	for n, e := range p.entries[:min(len(p.entries), maxProbes)] {
		at := place{e.file, e.field, e.index}
		numbers[at] = append(numbers[at], n)
	}
	for _, k := range p.all {
		content, changed := maps.Clone(k.content), false
		for _, field := range []string{"patches", "patchesjson6902", "replacements"} {
			var items []any
			for i, item := range list(k.content, field) {
				for _, n := range numbers[place{k.name, field, i}] {
					items, changed = append(items, p.entries[n].probe(probeName+"-"+strconv.Itoa(n))), true
				}
				items = append(items, item)
			}
			if items != nil {
				content[key(content, field)] = items
			}
		}
		if changed {
			files[k.name] = canonical(content)
		}
	}
	return files
}

// take removes the probes' fields from an object and remembers them.
func (p *prober) take(content map[string]any) {
	for field := range content {
		if number, ok := strings.CutPrefix(field, probeName+"-"); ok {
			n, _ := strconv.Atoi(number)
			p.seen[n] = true
			delete(content, field)
		}
	}
}

// unmatched are the findings about the entries that no object of the result speaks for.
func (p *prober) unmatched(objects []object) []evidence.Finding {
	texts := map[string]bool{}
	bytes := 0
	for _, o := range objects {
		scalars(contents(o.JSON), texts)
		bytes += len(o.JSON)
	}
	var findings []evidence.Finding
	left, doubt := probedBytes, []entry(nil)
	for n, e := range p.entries {
		if p.seen[n] || texts[e.result()] {
			continue
		}
		if left <= 0 {
			doubt = append(doubt, e)
		} else if left -= bytes + 64<<10 + e.index*entryCost; !p.matches(e) {
			findings = append(findings, e.finding())
		}
	}
	if len(doubt) > 0 {
		f := doubt[0].finding()
		f.Severity, f.Message, f.Do = evidence.Info, fmt.Sprintf("whether this entry and %d more apply to something was not asked: too many are in doubt", len(doubt)-1), ""
		findings = append(findings, f)
	}
	return findings
}

// result is a text that shows in an object when the entry did what it is for; a probe's name, which
// never does, where there is none.
func (e entry) result() string {
	switch e.field {
	case "namespace":
		return e.content["namespace"].(string)
	case "images":
		text := e.content["newName"]
		if text == nil {
			text = e.content["name"]
		}
		if digest := e.content["digest"]; digest != nil {
			return fmt.Sprintf("%v@%v", text, digest)
		}
		if tag := e.content["newTag"]; tag != nil {
			return fmt.Sprintf("%v:%v", text, tag)
		}
	}
	return probeName
}

// matches builds the kustomization of an entry up to the entry, with its probe instead. A component
// has no objects of its own, so the ones that include it are built. A build that fails proves nothing.
func (p *prober) matches(e entry) bool {
	k := p.all[slices.IndexFunc(p.all, func(k kustomizationFile) bool { return k.name == e.file })]
	content := maps.Clone(k.content)
	if e.field == "namespace" {
		content[key(content, e.field)] = probeName
	} else {
		before := slices.Clone(list(content, e.field)[:e.index])
		content[key(content, e.field)] = append(before, e.probe(probeName))
	}
	later := matching[slices.Index(matching, e.field)+1:]
	if e.field == "namespace" {
		later = nil
	}
	for _, field := range append([]string{"replicas", "vars"}, later...) {
		if field != "namespace" {
			delete(content, key(content, field))
		}
	}
	files := maps.Clone(p.req.Files)
	files[k.name] = canonical(content)
	for _, root := range p.roots(k, map[string]bool{}) {
		set, err := kustomize(request{Root: root, Files: files, Links: p.req.Links})
		if err != nil {
			return true
		}
		text, err := set.AsYaml()
		if err != nil || strings.Contains(string(text), probeName) {
			return true
		}
	}
	return false
}

// roots are the folders to build for a kustomization to have its objects.
func (p *prober) roots(k kustomizationFile, seen map[string]bool) []string {
	kind, _ := k.content[key(k.content, "kind")].(string)
	if kind != "Component" || seen[k.dir] {
		return []string{k.dir}
	}
	seen[k.dir] = true
	var roots []string
	for _, other := range p.all {
		for _, dir := range other.includes {
			if to, ok := p.req.Links[dir]; ok {
				dir = to
			}
			if dir == k.dir {
				roots = append(roots, p.roots(other, seen)...)
			}
		}
	}
	return roots
}

// scalars collects every text of an object.
func scalars(v any, texts map[string]bool) {
	switch v := v.(type) {
	case string:
		texts[v] = true
	case []any:
		for _, item := range v {
			scalars(item, texts)
		}
	case map[string]any:
		for _, item := range v {
			scalars(item, texts)
		}
	}
}
