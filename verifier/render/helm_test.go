package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const chartYAML = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"

// chartOf is a chart at the root with one ConfigMap, and more files; an empty text removes a file.
func chartOf(more files) files {
	all := files{"Chart.yaml": chartYAML, "templates/cm.yaml": settings("{{ .Release.Name }}", "v: '{{ .Values.v }}'"), "values.yaml": "v: one\n"}
	maps.Copy(all, more)
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

func settings(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  %s\n", name, data)
}

// pack makes a packed chart.
func pack(t *testing.T, name string, content files) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, file := range slices.Sorted(maps.Keys(content)) {
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o600, Size: int64(len(content[file]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func data(set *evidence.Set) string {
	var all []string
	for _, o := range set.Objects {
		all = append(all, fmt.Sprintf("%s %v", o.ID, o.Content["data"]))
	}
	return strings.Join(all, "; ")
}

func TestHelmRenders(t *testing.T) {
	set, findings := render(t, chartOf(files{"templates/NOTES.txt": "thanks {{ .Release.Name }}", "templates/_p.tpl": "{{ define \"x\" }}y{{ end }}"}), Options{})
	if len(findings) != 0 || set.Renderer != Helm || set.Version == "" {
		t.Fatalf("renderer %q %q, findings %v", set.Renderer, set.Version, findings)
	}
	if got := ids(set); !slices.Equal(got, []string{"ConfigMap/shop templates/cm.yaml:2"}) {
		t.Errorf("objects %q", got)
	}
	if set.Objects[0].Namespace != "" { // case 41: it goes to the run's namespace
		t.Errorf("namespace %q was added", set.Objects[0].Namespace)
	}
	if set.Place("target"); set.Objects[0].Namespace != "target" {
		t.Errorf("placed in %q", set.Objects[0].Namespace)
	}
}

func TestHelmOptions(t *testing.T) {
	tree := files{}
	for name, text := range chartOf(files{"templates/cm.yaml": settings("{{ .Release.Name }}",
		"v: '{{ .Values.v }} {{ .Values.w }} {{ .Release.Namespace }} {{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has \"x.io/v1\" }}'")}) {
		tree["apps/shop/"+name] = text
	}
	tree["envs/a.yaml"], tree["envs/b.yaml"] = "v: a\nw: a\n", "v: b\n"
	for name, test := range map[string]struct {
		opts Options
		want string
	}{
		"none":       {Options{}, "ConfigMap/shop map[v:one  default v1.37.0 false]"},
		"values":     {Options{ValuesFiles: []string{"envs/a.yaml", "envs/b.yaml"}}, "ConfigMap/shop map[v:b a default v1.37.0 false]"},
		"order":      {Options{ValuesFiles: []string{"envs/b.yaml", "envs/a.yaml"}}, "ConfigMap/shop map[v:a a default v1.37.0 false]"},
		"set":        {Options{ValuesFiles: []string{"envs/a.yaml"}, Set: []string{"v=set,w=20161216"}}, "ConfigMap/shop map[v:set 20161216 default v1.37.0 false]"},
		"release":    {Options{ReleaseName: "rel", Namespace: "ns"}, "ConfigMap/rel map[v:one  ns v1.37.0 false]"},
		"capability": {Options{KubeVersion: "1.30.2", APIVersions: []string{"x.io/v1"}}, "ConfigMap/shop map[v:one  default v1.30.2 true]"},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.Path = "apps/shop"
			set, findings := render(t, tree, test.opts)
			if got := data(set); len(findings) != 0 || got != test.want {
				t.Errorf("got %q %v, want %q", got, findings, test.want)
			}
		})
	}
	for name, opts := range map[string]Options{
		"no such values":  {Path: "apps/shop", ValuesFiles: []string{"envs/c.yaml"}},
		"values folder":   {Path: "apps/shop", ValuesFiles: []string{"envs"}},
		"values of plain": {Path: "envs", ValuesFiles: []string{"envs/a.yaml"}},
		"set of plain":    {Path: "envs", Set: []string{"a=b"}},
		"bad set":         {Path: "apps/shop", Set: []string{"a"}},
		"bad release":     {Path: "apps/shop", ReleaseName: "A_B"},
		"bad version":     {Path: "apps/shop", KubeVersion: "new"},
		"no chart":        {Path: "envs", Renderer: Helm},
		"a file":          {Path: "envs/a.yaml", Renderer: Helm},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong *PathError
			if _, _, err := Render(t.Context(), tree, opts); !errors.As(err, &wrong) {
				t.Errorf("error %v, want a *PathError", err)
			}
		})
	}
	both := chartOf(files{"kustomization.yaml": "resources: []\n"})
	if _, _, err := Render(t.Context(), both, Options{}); err == nil || !strings.Contains(err.Error(), "say which") {
		t.Errorf("a folder that is both: %v", err)
	}
	if set, findings := render(t, both, Options{Renderer: Helm}); len(set.Objects) != 1 {
		t.Errorf("twin: %v", findings)
	}
}

// TestHelmFindings has one line a fault, and its twin.
func TestHelmFindings(t *testing.T) {
	const uses = chartYAML + "dependencies:\n- name: sub\n  version: ^1.0.0\n  repository: https://example.invalid\n"
	sub := func(version string) string {
		return pack(t, "sub", files{"Chart.yaml": "apiVersion: v2\nname: sub\nversion: " + version + "\n", "templates/x.yaml": settings("sub", "a: b")})
	}
	lock := func(version string) string {
		return "dependencies:\n- name: sub\n  version: " + version + "\n  repository: https://example.invalid\ndigest: x\n"
	}
	folder := files{"Chart.yaml": uses, "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.2.0\n", "charts/sub/templates/x.yaml": settings("sub", "a: b")}
	schema := `{"type": "object", "properties": {"v": {"type": "string"}}}`
	lfs := "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
	for name, test := range map[string]struct {
		files
		want []string
	}{
		"missing dependency":           {files{"Chart.yaml": uses}, []string{"missing-chart-dependency Chart.yaml:5"}},
		"twin: packed":                 {files{"Chart.yaml": uses, "charts/sub-1.2.0.tgz": sub("1.2.0")}, nil},
		"twin: folder":                 {folder, nil},
		"missing, v1":                  {files{"Chart.yaml": "apiVersion: v1\nname: shop\nversion: 1.0.0\n", "requirements.yaml": "dependencies:\n- {name: sub, version: 1.x.x, repository: ''}\n"}, []string{"missing-chart-dependency requirements.yaml:2"}},
		"missing and switched off":     {files{"Chart.yaml": uses + "  condition: sub.enabled\n", "values.yaml": "sub: {enabled: false}\n"}, []string{"missing-chart-dependency Chart.yaml:5"}},
		"dependency too old":           {files{"Chart.yaml": uses, "charts/sub-0.9.0.tgz": sub("0.9.0")}, []string{"chart-dependency-version Chart.yaml:5"}},
		"not the locked one":           {files{"Chart.yaml": uses, "charts/sub-1.2.0.tgz": sub("1.2.0"), "Chart.lock": lock("1.3.0")}, []string{"chart-dependency-version Chart.yaml:5"}},
		"twin: the locked one":         {files{"Chart.yaml": uses, "charts/sub-1.2.0.tgz": sub("1.2.0"), "Chart.lock": lock("1.2.0")}, nil},
		"lock without it":              {files{"Chart.yaml": uses, "charts/sub-1.2.0.tgz": sub("1.2.0"), "Chart.lock": "dependencies: []\n"}, []string{"chart-dependency-version Chart.yaml:5"}},
		"twin: undeclared":             {files{"charts/sub-1.2.0.tgz": sub("1.2.0")}, nil},
		"missing below":                {files{"charts/sub/Chart.yaml": strings.Replace(uses, "name: shop", "name: mid", 1)}, []string{"missing-chart-dependency charts/sub/Chart.yaml:5"}},
		"packed chart is none":         {files{"charts/sub-1.2.0.tgz": "nothing"}, []string{"render-failed charts/sub-1.2.0.tgz"}},
		"packed chart is a pointer":    {files{"charts/sub-1.2.0.tgz": lfs}, []string{"missing-lfs-object charts/sub-1.2.0.tgz:1"}},
		"pointer that is read":         {files{"big.bin": lfs, "templates/f.yaml": settings("f", `x: {{ .Files.Get "big.bin" | quote }}`)}, []string{"missing-lfs-object big.bin:1"}},
		"twin: pointer elsewhere":      {files{"big.bin": lfs}, nil},
		"key twice in values":          {files{"values.yaml": "v: a\nimage: x\nimage: y\n"}, []string{"duplicate-key values.yaml:3"}},
		"twin: key in two mappings":    {files{"values.yaml": "v: {v: a}\n"}, nil},
		"key twice below":              {files{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "a: 1\na: 2\n"}, []string{"duplicate-key charts/sub/values.yaml:2"}},
		"key twice in a template":      {files{"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b, a: c}\n"}, []string{"duplicate-key templates/cm.yaml:2"}},
		"file that is not there":       {files{"templates/cm.yaml": settings("x", `v: {{ .Files.Get "no.txt" | quote }}`)}, []string{"chart-file-missing templates/cm.yaml:6"}},
		"twin: file that is there":     {files{"no.txt": "x", "templates/cm.yaml": settings("x", `v: {{ .Files.Get "no.txt" | quote }}`)}, nil},
		"twin: in a comment":           {files{"templates/cm.yaml": "{{/* .Files.Get \"no.txt\"\n*/}}\n" + settings("x", "v: y")}, nil},
		"values against the schema":    {files{"values.schema.json": schema, "values.yaml": "v: 3\n"}, []string{"render-failed values.schema.json"}},
		"twin: values meet the schema": {files{"values.schema.json": schema}, nil},
		"values of a chart below":      {files{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "v: 3\n", "charts/sub/values.schema.json": schema}, []string{"render-failed charts/sub/values.schema.json"}},
		"twin: they meet the schema":   {files{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "v: x\n", "charts/sub/values.schema.json": schema}, nil},
		"wrong Kubernetes":             {files{"Chart.yaml": chartYAML + "kubeVersion: '<1.30.0'\n"}, []string{"render-failed Chart.yaml:4"}},
		"twin: right Kubernetes":       {files{"Chart.yaml": chartYAML + "kubeVersion: '>=1.30.0-0'\n"}, nil},
		"library":                      {files{"Chart.yaml": chartYAML + "type: library\n"}, []string{"render-failed Chart.yaml"}},
		"parse error":                  {files{"templates/bad.yaml": "a: b\n{{ if }}\n"}, []string{"render-failed templates/bad.yaml:2"}},
		"failing template":             {files{"templates/bad.yaml": "a: b\n\n{{ fail \"no\" }}\n"}, []string{"render-failed templates/bad.yaml:3"}},
		"failing below":                {files{"charts/x/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/x/templates/b.yaml": "\n{{ required \"no\" .Values.z }}\n"}, []string{"render-failed charts/x/templates/b.yaml:2"}},
		"not YAML":                     {files{"templates/bad.yaml": "a: b\n c: d\n"}, []string{"render-failed templates/bad.yaml"}},
		"no kind":                      {files{"templates/bad.yaml": "apiVersion: v1\n"}, []string{"render-failed templates/bad.yaml:1"}},
		"twin: only a comment":         {files{"templates/bad.yaml": "# {{ .Values.v }}\n"}, nil},
		"nothing":                      {files{"templates/cm.yaml": ""}, []string{"render-empty ."}},
		"chart without a version":      {files{"Chart.yaml": "name: shop\n"}, []string{"render-failed Chart.yaml"}},
		"submodule":                    {files{"charts/sub": "submodule"}, []string{"missing-submodule charts/sub"}},
		"twin: ignored submodule":      {files{"vendor": "submodule", ".helmignore": "vendor\n"}, nil},
		"link out":                     {files{"templates/x.yaml": "-> /etc/passwd"}, []string{"render-refused templates/x.yaml"}},
		"twin: link in the tree":       {files{"templates/x.yaml": "-> ../x.yaml", "x.yaml": settings("other", "a: b")}, nil},
		"twin: linked folder":          {files{"charts/sub": "-> ../other", "other/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "other/templates/x.yaml": settings("other", "a: b"), ".helmignore": "other\n"}, nil},
		"link to nothing":              {files{"templates/x.yaml": "-> nowhere"}, []string{"render-failed templates/x.yaml"}},
		"bad ignore file":              {files{".helmignore": "a/**\n"}, []string{"render-failed .helmignore"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, findings := render(t, chartOf(test.files), Options{})
			got := codes(findings)
			if !slices.Equal(got, test.want) {
				t.Errorf("findings %q %v, want %q", got, findings, test.want)
			}
			if failed := slices.ContainsFunc(findings, func(f evidence.Finding) bool { return f.Severity == evidence.Fail }); failed == (len(set.Objects) > 0) {
				t.Errorf("objects %v beside %v", ids(set), findings)
			}
		})
	}
	_, findings := render(t, chartOf(files{"Chart.yaml": uses + "  condition: sub.enabled\n", "values.yaml": "sub: {enabled: false}\n"}), Options{})
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "switched off") {
		t.Errorf("the condition is not told: %v", findings)
	}
}

func TestHelmOrigins(t *testing.T) {
	inner := files{"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "templates/x.yaml": settings("{{ .Chart.Name }}-x", "a: b")}
	set, findings := render(t, chartOf(files{
		"Chart.yaml":                     chartYAML + "dependencies:\n- {name: odd, version: 1.0.0, alias: other}\n- {name: sub, version: 1.0.0}\n",
		"templates/cm.yaml":              settings("{{ .Release.Name }}-a", "v: x") + "---\n" + settings("{{ .Release.Name }}-b", "v: x") + "---\n{{ range list 1 2 }}\n" + settings("n{{ . }}", "v: x") + "---\n{{ end }}",
		"templates/helper.yaml":          `{{ include "made" . }}`,
		"templates/_h.tpl":               `{{ define "made" }}` + settings("made", "v: x") + "{{ end }}",
		"charts/folder/Chart.yaml":       "apiVersion: v2\nname: odd\nversion: 1.0.0\n",
		"charts/folder/templates/y.yaml": "\ufeff" + settings("{{ .Chart.Name }}-y", "a: b"),
		"charts/sub-1.0.0.tgz":           pack(t, "sub", inner),
	}), Options{})
	want := []string{
		"ConfigMap/made templates/helper.yaml:1", "ConfigMap/n1 templates/cm.yaml:17", "ConfigMap/n2 templates/cm.yaml:17", "ConfigMap/other-y charts/folder/templates/y.yaml:2",
		"ConfigMap/shop-a templates/cm.yaml:2", "ConfigMap/shop-b templates/cm.yaml:9", "ConfigMap/sub-x charts/sub-1.0.0.tgz",
	}
	if got := ids(set); len(findings) != 0 || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, findings, want)
	}
}

// TestHelmBOM: a byte order mark at the start of a template or of values is dropped, as Helm does.
func TestHelmBOM(t *testing.T) {
	sameAsHelm(t, chartOf(files{"templates/cm.yaml": "\ufeff" + settings("x", "v: '{{ .Values.v }}'"), "values.yaml": "\ufeffv: one\n"}), Options{})
}

// TestHelmNondeterministic is case 37: what changes is named by template and field, and what only
// looks as if it would change is quiet.
func TestHelmNondeterministic(t *testing.T) {
	secret := func(value string) string {
		return "{{/* one */}}\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  key: " + value + "\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"random":                {secret("{{ randAlphaNum 16 | b64enc }}"), "data.key"},
		"certificate":           {secret(`{{ $c := genCA "x" 1 }}{{ $c.Cert | b64enc }}`), "data.key"},
		"clock":                 {settings("c", "v: '{{ now | unixEpoch }}{{ now.Nanosecond }}'"), "data.v"},
		"uuid":                  {settings("c", "v: '{{ uuidv4 }}'"), "data.v"},
		"name":                  {settings("c-{{ randAlpha 9 | lower }}", "v: x"), ""},
		"twin: map order":       {settings("c", "v: '{{ range $k, $v := dict \"c\" 1 \"a\" 2 \"b\" 3 \"d\" 4 }}{{ $k }}{{ end }}'"), "quiet"},
		"twin: lookup fallback": {secret(`{{ $s := lookup "v1" "Secret" "x" "s" }}{{ if $s }}{{ randAlpha 5 }}{{ else }}Zml4ZWQ={{ end }}`), "quiet"},
		"twin: test hook":       {"apiVersion: v1\nkind: Pod\nmetadata:\n  name: t-{{ randAlpha 9 | lower }}\n  annotations: {helm.sh/hook: test}\n", "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := render(t, chartOf(files{"templates/r.yaml": test.text}), Options{})
			if test.want == "quiet" {
				if len(findings) != 0 {
					t.Errorf("findings %v", findings)
				}
				return
			}
			if len(findings) != 1 || findings[0].Code != "render-nondeterministic" || findings[0].Origin.File != "templates/r.yaml" || findings[0].Origin.Line == 0 || findings[0].Field != test.want {
				t.Fatalf("findings %+v, want field %q", findings, test.want)
			}
			if f := findings[0]; strings.Contains(test.text, "Secret") && f.Want+f.Got != "" {
				t.Errorf("the secret is shown: %q %q", f.Want, f.Got)
			}
		})
	}
}

// TestHelmNumbers is case 38: what Helm prints is not converted again.
func TestHelmNumbers(t *testing.T) {
	set, findings := render(t, chartOf(files{"values.yaml": "v: 1000000\n", "templates/cm.yaml": "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\n" +
		"data: {big: {{ .Values.v }}, text: '{{ .Values.v }}', tag: {{ .Values.tag }}, exact: 9007199254740993}\n"}), Options{Set: []string{"tag=20161216"}})
	if len(findings) != 0 {
		t.Fatal(findings)
	}
	d := set.Objects[0].Content["data"].(map[string]any)
	if d["text"] != "1e+06" || d["tag"] != int64(20161216) || d["exact"] != int64(9007199254740993) {
		t.Errorf("data %v", d)
	}
}

// TestHelmNull is case 39: null in the parent's values, in values.yaml and in a file, is what Helm
// makes of it.
func TestHelmNull(t *testing.T) {
	chart := chartOf(files{
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "ctx: {user: 1}\nkeep: yes\n",
		"charts/sub/templates/x.yaml": settings("sub", "v: {{ toJson .Values | quote }}"), "null.yaml": "sub: {ctx: null}\n",
	})
	inFile := sameAsHelm(t, chart, Options{ValuesFiles: []string{"null.yaml"}})
	if strings.Contains(inFile, "user") || !strings.Contains(inFile, "keep") {
		t.Errorf("null in a file: %s", inFile)
	}
	chart["values.yaml"] = "v: one\nsub: {ctx: null}\n"
	sameAsHelm(t, chart, Options{})
}

func sameAsHelm(t *testing.T, chart files, opts Options) string {
	t.Helper()
	var got []byte
	opts.Raw = &got
	if _, findings := render(t, chart, opts); len(findings) != 0 {
		t.Fatal(findings)
	}
	if want := direct(t, onDisk(t, chart), opts); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	return string(got)
}
