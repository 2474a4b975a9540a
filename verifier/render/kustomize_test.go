package render

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const deployment = `# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata:
      labels: {app: api}
    spec:
      containers:
      - name: api
        image: example.invalid/api:1
        env:
        - name: MODE
          valueFrom: {configMapKeyRef: {name: settings, key: mode}}
`

const service = "apiVersion: v1\nkind: Service\nmetadata: {name: api}\nspec: {ports: [{port: 80}]}\n"

func layouts() map[string]struct {
	files
	path string
} {
	type layout = struct {
		files
		path string
	}
	base := files{
		"base/kustomization.yaml": "resources: [deployment.yaml, service.yaml]\nconfigMapGenerator:\n- name: settings\n  literals:\n  - mode=fast\n  files: [key.txt=data.txt]\n",
		"base/deployment.yaml":    deployment,
		"base/service.yaml":       service,
		"base/data.txt":           "some\ndata\n",
	}
	with := func(more files) files {
		all := files{}
		for _, f := range []files{base, more} {
			for name, text := range f {
				all[name] = text
			}
		}
		return all
	}
	return map[string]layout{
		"base and overlay": {with(files{
			"overlays/prod/kustomization.yml": "namePrefix: prod-\nnamespace: shop\nresources: [../../base]\nimages: [{name: example.invalid/api, newTag: '2'}]\npatches:\n- path: patch.yaml\n",
			"overlays/prod/patch.yaml":        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec: {replicas: 3}\n",
			"unrelated/broken":                "-> nowhere",
		}), "overlays/prod"},
		"one folder": {files{
			"kustomize/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - service.yaml\n  - deployment.yaml\n",
			"kustomize/deployment.yaml":    deployment,
			"kustomize/service.yaml":       service,
		}, "kustomize"},
		"components": {with(files{
			"feature/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - {op: add, path: /spec/replicas, value: 2}\n",
			"feature/extra.yaml":         "apiVersion: v1\nkind: Secret\nmetadata: {name: extra}\nstringData: {k: v}\n",
			"app/kustomization.yaml":     "resources: [../base]\ncomponents: [../feature]\ntransformers: [labels.yaml]\n",
			"app/labels.yaml":            "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\nlabels: {team: a}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
		}), "app"},
		"odd names": {files{"a dir/kustomization.yaml": "resources: ['b+c@d.e/f g', service.yaml]\n", "a dir/service.yaml": service,
			"a dir/b+c@d.e/f g/kustomization.yaml": "configMapGenerator: [{name: x, files: ['k=m n.txt']}]\n", "a dir/b+c@d.e/f g/m n.txt": "text"}, "a dir"},
		"root of the tree": {files{"kustomization.yaml": "resources: [service.yaml]\n", "service.yaml": service}, ""},
	}
}

// TestKustomizeParity compares with a build on a real disk, by the same library and kubectl's options.
func TestKustomizeParity(t *testing.T) {
	for name, layout := range layouts() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range layout.files {
				if strings.HasPrefix(text, "-> ") {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			options := krusty.MakeDefaultOptions()
			options.Reorder = krusty.ReorderOptionUnspecified
			built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, layout.path))
			if err != nil {
				t.Fatal(err)
			}
			want, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			set, findings := render(t, layout.files, Options{Path: layout.path, Raw: &got})
			if len(findings) != 0 || set.Renderer != Kustomize || len(set.Objects) != built.Size() {
				t.Errorf("set %v, findings %v; want %d objects", ids(set), findings, built.Size())
			}
			if string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(string(canonicalSet(set)), originMark) {
				t.Error("the origin annotation is left in the objects")
			}
		})
	}
}

func canonicalSet(set *evidence.Set) []byte {
	var all []byte
	for _, o := range set.Objects {
		all = append(all, canonical(o.Content)...)
	}
	return all
}

func TestKustomizeOrigins(t *testing.T) {
	layout := layouts()["base and overlay"]
	set, _ := render(t, layout.files, Options{Path: layout.path})
	got := ids(set)
	want := []string{
		"ConfigMap/shop/prod-settings-f6hg6cbfdf base/kustomization.yaml:3",
		"Service/shop/prod-api base/service.yaml:1",
		"Deployment/shop/prod-api base/deployment.yaml:2",
	}
	got[0], want[0] = hashless(got[0]), hashless(want[0])
	if !slices.Equal(got, want) {
		t.Fatalf("objects %q, want %q", got, want)
	}
	d := set.Objects[2]
	if at := d.At("spec", "template", "spec", "containers", 0, "env", 0, "valueFrom", "configMapKeyRef", "name"); at.String() != "base/deployment.yaml:17" {
		t.Errorf("the reference is at %s", at)
	}
	if at := set.Objects[0].At("data", "key.txt"); at.String() != "base/kustomization.yaml:6" {
		t.Errorf("the generated key is at %s", at)
	}
	if spec := d.Content["spec"].(map[string]any); spec["replicas"] != int64(3) {
		t.Errorf("replicas is %T %v, want int64 3", spec["replicas"], spec["replicas"])
	}
}

func hashless(id string) string {
	name, place, _ := strings.Cut(id, " ")
	return name[:strings.LastIndex(name, "-")] + " " + place
}

// TestKustomizeAnnotationsSeen has a patch that can tell whether annotations are there: it must not
// make the two renders look different, and it must be rendered without ours.
func TestKustomizeAnnotationsSeen(t *testing.T) {
	set, findings := render(t, files{
		"kustomization.yaml": "resources: [service.yaml]\npatches:\n- target: {kind: Service}\n  patch: |\n    - {op: copy, from: /metadata/annotations, path: /spec/seen}\n",
		"service.yaml":       strings.Replace(service, "{name: api}", "{name: api, annotations: {a: b}}", 1),
	}, Options{})
	if len(findings) != 0 || len(set.Objects) != 1 || strings.Contains(string(canonicalSet(set)), originMark) {
		t.Fatalf("%v %s %v", ids(set), canonicalSet(set), findings)
	}
	set, findings = render(t, files{"kustomization.yaml": "buildMetadata: [originAnnotations]\nresources: [service.yaml]\n", "service.yaml": service}, Options{})
	if len(findings) != 0 || !strings.Contains(string(canonicalSet(set)), "path: service.yaml") {
		t.Errorf("an origin annotation that the user asked for is gone: %s %v", canonicalSet(set), findings)
	}
}

func TestKustomizeRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		files
		want string
	}{
		"remote base":              {files{"kustomization.yaml": "resources:\n- service.yaml\n- https://github.com/x/y//base?ref=main\n"}, "render-refused kustomization.yaml:3"},
		"ssh":                      {files{"kustomization.yaml": "resources: ['git@example.invalid:x/y.git']\n"}, "render-refused kustomization.yaml:1"},
		"short form":               {files{"kustomization.yaml": "bases: [github.com/x/y]\n"}, "render-refused kustomization.yaml:1"},
		"any case":                 {files{"kustomization.yaml": "\nReSources: ['ssh://x/y']\n"}, "render-refused kustomization.yaml:2"},
		"component":                {files{"kustomization.yaml": "components: ['https://x/y/z']\n"}, "render-refused kustomization.yaml:1"},
		"patch by URL":             {files{"kustomization.yaml": "patches:\n- path: https://x/y.yaml\n"}, "render-refused kustomization.yaml:2"},
		"generator file by URL":    {files{"kustomization.yaml": "configMapGenerator:\n- name: a\n  files:\n  - k=https://x/y\n"}, "render-refused kustomization.yaml:4"},
		"schema by URL":            {files{"kustomization.yaml": "openapi: {path: 'http://x/y'}\n"}, "render-refused kustomization.yaml:1"},
		"in a base":                {files{"kustomization.yaml": "resources: [base]\n", "base/kustomization.yaml": "\n\ncrds: ['https://x/y']\n"}, "render-refused base/kustomization.yaml:3"},
		"by an alias":              {files{"kustomization.yaml": "namePrefix: &a https://x/y\nresources: [*a]\n"}, "render-refused kustomization.yaml:1"},
		"helmCharts":               {files{"kustomization.yaml": "resources: [service.yaml]\nhelmCharts: [{name: x}]\n"}, "render-refused kustomization.yaml:2"},
		"helm inflation":           {files{"kustomization.yaml": "helmChartInflationGenerator: [{chartName: x}]\n"}, "render-refused kustomization.yaml:1"},
		"helm as a generator":      {files{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n"}, "render-refused g.yaml:2"},
		"plugin":                   {files{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: someteam/v1\nkind: Gen\nmetadata: {name: x}\n"}, "render-refused g.yaml:1"},
		"function":                 {files{"kustomization.yaml": "transformers: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: X\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run}\n"}, "render-refused g.yaml:6"},
		"plugin inline":            {files{"kustomization.yaml": "generators:\n- |\n  apiVersion: someteam/v1\n  kind: Gen\n"}, "render-refused kustomization.yaml:3"},
		"twin: URL as a value":     {files{"kustomization.yaml": "resources: [service.yaml]\nconfigMapGenerator:\n- {name: a, literals: ['u=https://x/y?ref=z']}\n"}, ""},
		"twin: URL in a patch":     {files{"kustomization.yaml": "resources: [service.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Service\n    metadata: {name: api, annotations: {path: 'https://x'}}\n"}, ""},
		"twin: folder like one":    {files{"kustomization.yaml": "resources: [service.yaml, a@b.c/d]\n", "a@b.c/d/kustomization.yaml": "resources: [x.yaml]\n", "a@b.c/d/x.yaml": strings.Replace(service, "name: api", "name: b", 1)}, ""},
		"twin: unrelated folder":   {files{"kustomization.yaml": "namespace: prod\nresources: [service.yaml]\n", "prod/kustomization.yaml": "resources: ['https://x/y']\n"}, ""},
		"error with file":          {files{"kustomization.yaml": "resources: [bad.yaml]\n", "bad.yaml": "a: b\n c: d\n"}, "render-failed bad.yaml:2"},
		"missing file":             {files{"kustomization.yaml": "resources: [nope.yaml]\n"}, "render-failed kustomization.yaml:1"},
		"unknown field":            {files{"kustomization.yaml": "namepsace: prod\nresources: [service.yaml]\n"}, "render-failed kustomization.yaml:1"},
		"unknown field, inside":    {files{"kustomization.yaml": "resources: [service.yaml]\npatches:\n- target: {kind: Service}\n  ptach: x\n"}, "render-failed kustomization.yaml:4"},
		"unknown in field spec":    {files{"kustomization.yaml": "resources: [service.yaml]\ntransformers: [t.yaml]\n", "t.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\nlabels: {a: b}\nfieldSpecs:\n- {path: metadata/labels, crete: true}\n"}, "field-ignored t.yaml:6"},
		"unknown in configuration": {files{"kustomization.yaml": "resources: [service.yaml]\nconfigurations: [c.yaml]\n", "c.yaml": "commonLabels:\n- path: metadata/labels\n  crete: true\n"}, "render-failed c.yaml:3"},
		"unknown list there":       {files{"kustomization.yaml": "resources: [service.yaml]\nconfigurations: [c.yaml]\n", "c.yaml": "comonLabels:\n- path: metadata/labels\n"}, "render-failed c.yaml:1"},
		"twin: field spec":         {files{"kustomization.yaml": "resources: [service.yaml]\ntransformers: [t.yaml]\nconfigurations: [c.yaml]\n", "t.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\nlabels: {a: b}\nfieldSpecs:\n- {path: metadata/labels, create: true}\n", "c.yaml": "nameReference:\n- kind: Model\n  group: x\n  fieldSpecs:\n  - {path: spec/model, kind: Deployment, group: apps, version: v1}\n"}, ""},
		"out of the repository":    {files{"kustomization.yaml": "resources: [../../../service.yaml]\n"}, "render-failed kustomization.yaml"},
		"endless":                  {files{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../a]\n"}, "render-failed kustomization.yaml:1"},
		"everything deleted":       {files{"kustomization.yaml": "resources: [service.yaml]\npatches:\n- patch: '{\"apiVersion\": v1, kind: Service, metadata: {name: api}, $patch: delete}'\n"}, "render-empty ."},
		"LFS pointer":              {files{"kustomization.yaml": "configMapGenerator: [{name: a, files: [m.bin]}]\n", "m.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"}, "missing-lfs-object m.bin:1"},
		"twin: LFS elsewhere":      {files{"kustomization.yaml": "resources: [service.yaml]\n", "m.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"}, ""},
		"submodule":                {files{"kustomization.yaml": "resources: [vendor/base]\n", "vendor": "submodule"}, "missing-submodule kustomization.yaml:1"},
		"twin: other submodule":    {files{"kustomization.yaml": "resources: [service.yaml]\n", "vendor": "submodule"}, ""},
		"link out":                 {files{"kustomization.yaml": "resources: [passwd.yaml]\n", "passwd.yaml": "-> /etc/passwd"}, "render-refused kustomization.yaml:1"},
		"twin: link in the tree":   {files{"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": "-> service.yaml"}, ""},
		"twin: linked base":        {files{"kustomization.yaml": "resources: [here]\n", "here": "-> far/away/base", "far/away/base/kustomization.yaml": "resources: [../other]\n", "far/away/other/kustomization.yaml": "resources: [s.yaml]\n", "far/away/other/s.yaml": service}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["service.yaml"] = service
			set, findings := render(t, test.files, Options{})
			got := codes(findings)
			if test.want == "" && (len(got) != 0 || len(set.Objects) == 0) || test.want != "" && !slices.Contains(got, test.want) {
				t.Errorf("findings %q %v, objects %v; want %q", got, findings, ids(set), test.want)
			}
			if test.want != "" && !strings.HasPrefix(test.want, "field-ignored") && len(set.Objects) != 0 {
				t.Errorf("objects %v beside a refusal", ids(set))
			}
		})
	}
}

// TestRemoteKinds says of what would be fetched whether it can move.
func TestRemoteKinds(t *testing.T) {
	for remote, want := range map[string]string{
		"https://example.invalid/x//base?ref=main":                                          "Git branch main",
		"https://example.invalid/x//base?ref=v1.2.3":                                        "Git tag v1.2.3, which can move",
		"https://example.invalid/x//base?version=2.0":                                       "Git tag 2.0, which can move",
		"git@example.invalid:x/y.git?ref=0123456789012345678901234567890123456789":          "fixed Git commit",
		"https://example.invalid/x?timeout=1s&ref=0123456789012345678901234567890123456789": "fixed Git commit",
		"https://example.invalid/x.git":                                                     "default branch",
		"github.com/x/y":                                                                    "default branch",
		"https://example.invalid/x.yaml":                                                    "over HTTP",
		"oci://example.invalid/x:1.0":                                                       "OCI tag 1.0, which can move",
		"oci://example.invalid/x@sha256:00":                                                 "OCI digest",
		"oci://example.invalid:5000/x":                                                      "OCI artifact without a tag",
	} {
		_, findings := render(t, files{"kustomization.yaml": "resources:\n- '" + remote + "'\n"}, Options{})
		if len(findings) != 1 || findings[0].Code != "render-refused" || findings[0].Origin.String() != "kustomization.yaml:2" || !strings.Contains(findings[0].Message, want) {
			t.Errorf("%s: %v, want %q", remote, findings, want)
		}
	}
}
