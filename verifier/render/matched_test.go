package render

import (
	"slices"
	"strings"
	"testing"
)

const resource = "apiVersion: example.invalid/v1\nkind: Model\nmetadata: {name: m}\nspec: {template: {spec: {image: 'example.invalid/api:1'}}}\n"

// TestKustomizeUnmatched has every entry that matches nothing, and its twin.
func TestKustomizeUnmatched(t *testing.T) {
	const add = "  patch: '[{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": 2}]'\n"
	const base = "resources: [deployment.yaml, service.yaml]\n"
	class := "patch-matched-nothing warn kustomization.yaml:3"
	for name, test := range map[string]struct {
		kustomization string
		files
		want []string
	}{
		"patch of a name":                    {kustomization: base + "patches:\n- target: {kind: Deployment, name: apii}\n" + add, want: []string{"patch-matched-nothing fail kustomization.yaml:3"}},
		"twin: patch of a name":              {kustomization: base + "patches:\n- target: {kind: Deployment, name: api}\n" + add},
		"patch of the name with its prefix":  {kustomization: "namePrefix: x-\n" + base + "patches:\n- target: {name: x-api}\n" + add, want: []string{"patch-matched-nothing fail kustomization.yaml:4"}},
		"twin: prefix from the base":         {kustomization: "resources: [base]\npatches:\n- target: {name: x-api}\n" + add, files: files{"base/kustomization.yaml": "namePrefix: x-\nresources: [service.yaml]\n", "base/service.yaml": service}},
		"patch of a class":                   {kustomization: base + "patches:\n- target: {kind: StatefulSet}\n" + add, want: []string{class}},
		"patch of a pattern":                 {kustomization: base + "patches:\n- target: {kind: Deployment, name: b.*}\n" + add, want: []string{class}},
		"twin: patch of a pattern":           {kustomization: base + "patches:\n- target: {kind: Deployment, name: a.*}\n" + add},
		"patch of a label":                   {kustomization: base + "patches:\n- target: {labelSelector: 'x=y'}\n" + add, want: []string{class}},
		"twin: label by an earlier patch":    {kustomization: base + "patches:\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, labels: {x: y}}}'\n- target: {labelSelector: 'x=y'}\n" + add},
		"twin: patch that deletes":           {kustomization: base + "patches:\n- target: {kind: Deployment}\n  patch: '{apiVersion: v1, kind: X, metadata: {name: x}, $patch: delete}'\n"},
		"patch that deletes":                 {kustomization: base + "patches:\n- target: {kind: StatefulSet}\n  patch: '{apiVersion: v1, kind: X, metadata: {name: x}, $patch: delete}'\n", want: []string{class}},
		"twin: patched, then deleted":        {kustomization: base + "patches:\n- target: {kind: Deployment}\n" + add + "- target: {name: api, kind: Deployment}\n  patch: '{apiVersion: v1, kind: X, metadata: {name: x}, $patch: delete}'\n"},
		"patchesJson6902":                    {kustomization: base + "patchesJson6902:\n- target: {version: v1, kind: Service, name: apii}\n" + add, want: []string{"patch-matched-nothing fail kustomization.yaml:3"}},
		"twin: patchesJson6902":              {kustomization: base + "patchesJson6902:\n- target: {version: v1, kind: Service, name: api}\n" + add},
		"patch without a target":             {kustomization: base + "patches:\n- patch: '{apiVersion: v1, kind: Service, metadata: {name: apii}}'\n", want: []string{"patch-matched-nothing fail kustomization.yaml:3"}},
		"patchesStrategicMerge":              {kustomization: base + "patchesStrategicMerge:\n- p.yaml\n", files: files{"p.yaml": "\napiVersion: v1\nkind: Service\nmetadata: {name: apii}\n"}, want: []string{"patch-matched-nothing fail kustomization.yaml:3"}},
		"twin: patchesStrategicMerge":        {kustomization: base + "patchesStrategicMerge:\n- p.yaml\n", files: files{"p.yaml": "\napiVersion: v1\nkind: Service\nmetadata: {name: api}\n"}},
		"replicas":                           {kustomization: base + "replicas:\n- {name: apii, count: 2}\n", want: []string{"patch-matched-nothing fail kustomization.yaml:3"}},
		"twin: replicas":                     {kustomization: base + "replicas:\n- {name: api, count: 2}\n"},
		"image":                              {kustomization: base + "images:\n- {name: api, newTag: v2}\n", want: []string{class}},
		"twin: image":                        {kustomization: base + "images:\n- {name: example.invalid/api, newTag: v2}\n"},
		"twin: image by its digest":          {kustomization: base + "images:\n- {name: example.invalid/api, digest: 'sha256:00'}\n"},
		"twin: the tag that it has":          {kustomization: base + "images:\n- {name: example.invalid/api, newTag: '1'}\n"},
		"twin: two image entries in a chain": {kustomization: base + "images:\n- {name: example.invalid/api, newName: x, newTag: '2'}\n- {name: x, newTag: '3'}\n"},
		"image of a custom resource":         {kustomization: "resources: [cr.yaml]\nimages:\n- {name: example.invalid/api, newTag: v2}\n", want: []string{class}},
		"twin: image field that is configured": {kustomization: "resources: [cr.yaml]\nimages:\n- {name: example.invalid/api, newTag: v2}\nconfigurations: [c.yaml]\n",
			files: files{"c.yaml": "images:\n- {path: spec/template/spec/image, kind: Model}\n"}},
		"twin: image of the base set anew": {kustomization: "resources: [base]\nimages:\n- {name: example.invalid/api, newTag: v3}\n",
			files: files{"base/kustomization.yaml": "resources: [d.yaml]\nimages: [{name: example.invalid/api, newTag: v2}]\n", "base/d.yaml": deployment}},
		"image in a base": {kustomization: "resources: [base]\n",
			files: files{"base/kustomization.yaml": "resources: [d.yaml]\nimages: [{name: api, newTag: v2}]\n", "base/d.yaml": deployment}, want: []string{"patch-matched-nothing warn base/kustomization.yaml:2"}},
		"twin: image in a component": {kustomization: base + "components: [c]\nimages: [{name: example.invalid/api, newTag: v3}]\n",
			files: files{"c/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nimages: [{name: example.invalid/api, newTag: v2}]\n"}},
		"image in a component": {kustomization: base + "components: [c]\n",
			files: files{"c/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nimages: [{name: api, newTag: v2}]\n"}, want: []string{"patch-matched-nothing warn c/kustomization.yaml:3"}},
		"replacement": {kustomization: base + "replacements:\n- sourceValue: x\n  targets: [{select: {kind: StatefulSet}, fieldPaths: [metadata.name]}]\n", want: []string{class}},
		"replacement in a file": {kustomization: base + "replacements:\n- path: r.yaml\n", files: files{"r.yaml": "- sourceValue: x\n  targets: [{select: {kind: StatefulSet}, fieldPaths: [metadata.name]}]\n"},
			want: []string{class}},
		"twin: replacement": {kustomization: base + "replacements:\n- source: {kind: Deployment, name: api}\n  targets: [{select: {kind: Service}, fieldPaths: [metadata.name]}]\n- path: r.yaml\n",
			files: files{"r.yaml": "sourceValue: x\ntargets: [{select: {kind: Service}, fieldPaths: [metadata.name]}]\n"}},
		"namespace":                {kustomization: "resources: [ns.yaml]\n\nnamespace: shop\n", files: files{"ns.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: []\n"}, want: []string{class}},
		"twin: namespace":          {kustomization: base + "namespace: shop\n"},
		"twin: namespace set anew": {kustomization: "resources: [base]\nnamespace: shop\n", files: files{"base/kustomization.yaml": "resources: [s.yaml]\nnamespace: other\n", "base/s.yaml": service}},
		"twin: empty target":       {kustomization: base + "patches:\n- target: {}\n  patch: '[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": 2}]'\n"},
		"twin: through a link": {kustomization: "resources: [here]\n", files: files{"here": "-> far/base",
			"far/base/kustomization.yaml": "resources: [s.yaml]\nnamespace: x\npatches:\n- target: {kind: Service}\n" + add, "far/base/s.yaml": service}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := files{"kustomization.yaml": test.kustomization, "service.yaml": service, "deployment.yaml": deployment, "cr.yaml": resource}
			for file, text := range test.files {
				tree[file] = text
			}
			set, findings := render(t, tree, Options{})
			var got []string
			for _, f := range findings {
				got = append(got, f.Code+" "+string(f.Severity)+" "+f.Origin.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("findings %q %v, want %q", got, findings, test.want)
			}
			if text := string(canonicalSet(set)); strings.Contains(text, probeName) || strings.Contains(text, originMark) {
				t.Errorf("marks are left in %s", text)
			}
			for _, o := range set.Objects {
				if strings.HasSuffix(o.Origin.File, "kustomization.yaml") {
					t.Errorf("the origin of %s is lost", o.ID)
				}
			}
		})
	}
}

// TestKustomizeTooManyInDoubt asks of as many entries as there is time for, and tells of the rest.
func TestKustomizeTooManyInDoubt(t *testing.T) {
	tree := files{"service.yaml": service, "kustomization.yaml": "resources: [service.yaml]\nimages:\n" + strings.Repeat("- {name: nope, newTag: v2}\n", 300)}
	_, findings := render(t, tree, Options{})
	last := findings[len(findings)-1]
	if len(findings) < 20 || len(findings) > 299 || last.Severity != "info" || !strings.Contains(last.Message, "was not asked") {
		t.Errorf("%d findings, the last is %v", len(findings), last)
	}
}
