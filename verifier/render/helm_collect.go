package render

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// chartFileEntry is Helm's type of a file in a chart.
type chartFileEntry = common.File

// collect puts the set together as an install would send it: what crds/ holds as it stands, the hooks
// of an install before and after, and between them everything else.
func (h *helmRender) collect(c *chart.Chart, rendered map[string]string, hooks []*helmrelease.Hook, manifests []releaseutil.Manifest) {
	used := map[part]head{}
	for _, m := range manifests {
		used[part{m.Name, m.Content}] = headOf(*m.Head)
	}
	for _, hook := range hooks {
		used[part{hook.Path, hook.Manifest}] = head{kind: hook.Kind, name: hook.Name}
	}
	origins := h.origins(rendered, used)
	run := slices.Clone(hooks)
	slices.SortStableFunc(run, func(a, b *helmrelease.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})

	var out bytes.Buffer // as helm template --include-crds prints it
	write := func(name, text string) { fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, text) }
	for _, crd := range c.CRDObjects() {
		write(crd.Filename, string(crd.File.Data))
		h.crd(crd)
	}
	h.hooks(run, helmrelease.HookPreInstall, origins)
	for _, m := range manifests {
		write(m.Name, m.Content)
		h.objects(m.Content, origins[part{m.Name, m.Content}])
	}
	h.hooks(run, helmrelease.HookPostInstall, origins)
	text := strings.TrimSpace(out.String())
	out.Reset()
	out.WriteString(text + "\n")
	for _, hook := range hooks {
		write(hook.Path, hook.Manifest)
		h.list(hook, origins[part{hook.Path, hook.Manifest}])
	}
	if h.req.YAML {
		h.answer.YAML = out.Bytes()
	}
}

// crd adds the objects of a file in crds/, which is no template.
func (h *helmRender) crd(crd chart.CRD) {
	file := h.source(crd.File.Data)
	p := plainFile{name: file, lines: h.req.Lines && !archived(file)}
	p.read(crd.File.Data)
	if archived(file) {
		for i := range p.objects {
			p.objects[i].Origin.Line = 0
		}
	}
	h.answer.Objects = append(h.answer.Objects, p.objects...)
	h.answer.Findings = append(h.answer.Findings, p.findings...)
}

// hooks adds the hooks of one event, those that have both before the rest.
func (h *helmRender) hooks(hooks []*helmrelease.Hook, event helmrelease.HookEvent, origins map[part]evidence.Origin) {
	for _, hook := range hooks {
		before := slices.Contains(hook.Events, helmrelease.HookPreInstall)
		if slices.Contains(hook.Events, event) && (event == helmrelease.HookPreInstall || !before) {
			h.objects(hook.Manifest, origins[part{hook.Path, hook.Manifest}])
		}
	}
}

// list says of a hook what was done with it.
func (h *helmRender) list(hook *helmrelease.Hook, at evidence.Origin) {
	var events, policies []string
	installs := false
	for _, e := range hook.Events {
		events = append(events, e.String())
		installs = installs || e == helmrelease.HookPreInstall || e == helmrelease.HookPostInstall
	}
	for _, p := range hook.DeletePolicies {
		policies = append(policies, string(p))
	}
	text := fmt.Sprintf("hook %s, weight %d: %s/%s ", strings.Join(events, ", "), hook.Weight, hook.Kind, hook.Name)
	switch {
	case !installs:
		text += "is left out, for an install does not run it"
	case len(policies) > 0:
		text += "is part of the set; it is applied and not deleted, though its delete policy is " + strings.Join(policies, ", ")
	default:
		text += "is part of the set"
	}
	h.skip(at.File, text)
}

// objects adds what one rendered document holds.
func (h *helmRender) objects(text string, at evidence.Origin) {
	var d decoded
	var err error
	if d.json, err = sigsyaml.YAMLToJSONStrict([]byte(text)); err != nil { // or a key stands twice
		if d, err = decode(document{1, []byte(text)}); err != nil {
			h.refuse("render-failed", at.File, at.Line, "what the template gives cannot be read: "+err.Error(), "")
			return
		}
	}
	if bytes.Equal(d.json, []byte("null")) {
		return
	}
	for _, f := range d.repeated(at.File) {
		f.Origin, f.Object, f.Severity = at, at.File, evidence.Warn
		f.Message = fmt.Sprintf("the key %s stands twice in what the template gives; the last counts", f.Field)
		h.answer.Findings = append(h.answer.Findings, f)
	}
	content, _ := numbers(d.json).(map[string]any)
	for _, i := range flatten(content, d.node, "") {
		if why := malformed(i.content); why != "" {
			h.refuse("render-failed", at.File, at.Line, strings.TrimSpace(i.where+" "+why), "")
			continue
		}
		h.answer.Objects = append(h.answer.Objects, object{JSON: canonical(i.content), Origin: at})
	}
}
