package render

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// TestHelmCRDs is case 42: crds/ is part of the set, comes first and is no template.
func TestHelmCRDs(t *testing.T) {
	crd := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xs.example.com}
spec:
  group: example.com
  names: {kind: X, plural: xs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: 'as {{ .Values.v }}', pattern: '^\d+$'}}
`
	chart := chartOf(files{"crds/x.yaml": crd, "crds/README.md": "no", "templates/x.yaml": "{{ if .Capabilities.APIVersions.Has \"example.com/v1/X\" }}\napiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\n{{ end }}\n"})
	var raw []byte
	set, findings := render(t, chart, Options{Raw: &raw})
	want := []string{"ConfigMap/shop templates/cm.yaml:2", "CustomResourceDefinition.apiextensions.k8s.io/xs.example.com crds/x.yaml:1", "X.example.com/x templates/x.yaml:3"}
	if got := ids(set); len(findings) != 0 || !slices.Equal(got, want) {
		t.Fatalf("%q %v, want %q", got, findings, want)
	}
	if !strings.HasPrefix(string(raw), "---\n# Source: shop/crds/x.yaml\n"+crd) {
		t.Errorf("crds/ is not first, or not as it stands:\n%s", raw)
	}
	if text := string(canonicalSet(set)); !strings.Contains(text, "as {{ .Values.v }}") || !strings.Contains(text, `^\\d+$`) {
		t.Errorf("the text is changed: %s", text)
	}
	delete(chart, "crds/x.yaml")
	if set, _ := render(t, chart, Options{}); len(set.Objects) != 1 {
		t.Errorf("twin: %q", ids(set))
	}
}

// TestHelmIgnore is case 44.
func TestHelmIgnore(t *testing.T) {
	chart := chartOf(files{".helmignore": "templates/ignored.yaml\n/docs/\n", "templates/ignored.yaml": settings("ignored", "a: b"),
		"templates/.dot.yaml": settings("dot", "a: b"), "docs/x.txt": "x", "templates/kept.yaml": settings("kept", "a: b")})
	set, findings := render(t, chart, Options{})
	if got := ids(set); len(findings) != 0 || len(got) != 2 || got[0] != "ConfigMap/kept templates/kept.yaml:2" {
		t.Errorf("%q %v", got, findings)
	}
	var skipped []string
	for _, s := range set.Skipped {
		skipped = append(skipped, s.File)
	}
	if want := []string{"docs", "templates/.dot.yaml", "templates/ignored.yaml"}; !slices.Equal(slices.Sorted(slices.Values(skipped)), want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	sameAsHelm(t, chart, Options{})
	delete(chart, ".helmignore")
	if set, _ := render(t, chart, Options{}); len(set.Objects) != 3 {
		t.Errorf("twin: %q", ids(set))
	}
}

// TestHelmHooks is case 66: the hooks of an install are part of the set, the others are not, and each
// is listed.
func TestHelmHooks(t *testing.T) {
	hook := func(kind, name, annotations string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n  annotations: {%s}\n", kind, name, annotations)
	}
	chart := chartOf(files{
		"templates/cm.yaml": "",
		"templates/hooks.yaml": strings.Join([]string{
			hook("Job", "migrate", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-4", helm.sh/hook-delete-policy: hook-succeeded`),
			hook("ServiceAccount", "migrate", `helm.sh/hook: pre-install, helm.sh/hook-weight: "-5"`),
			hook("Job", "after", "helm.sh/hook: post-install"),
			hook("Pod", "check", "helm.sh/hook: test"),
			hook("Job", "gone", "helm.sh/hook: pre-delete"),
			hook("Job", "later", "helm.sh/hook: post-upgrade"),
			hook("Job", "old", "helm.sh/hook: crd-install"),
			hook("Job", "plain", "other: x"),
		}, "---\n"),
	})
	set, findings := render(t, chart, Options{})
	want := []string{"Job/after templates/hooks.yaml:14", "Job/migrate templates/hooks.yaml:2", "Job/plain templates/hooks.yaml:38", "ServiceAccount/migrate templates/hooks.yaml:8"}
	got := ids(set)
	slices.Sort(got)
	if len(findings) != 0 || len(got) != len(want) {
		t.Errorf("%q %v, want %q", got, findings, want)
	}
	var told []string
	for _, s := range set.Skipped {
		told = append(told, s.File+" "+s.Reason)
	}
	for _, want := range []string{
		"hook pre-install, pre-upgrade, weight -4: Job/migrate is part of the set; it is applied and not deleted, though its delete policy is hook-succeeded",
		"hook pre-install, weight -5: ServiceAccount/migrate is part of the set",
		"hook post-install, weight 0: Job/after is part of the set",
		"hook test, weight 0: Pod/check is left out, for an install does not run it",
		"hook pre-delete, weight 0: Job/gone is left out, for an install does not run it",
		"hook post-upgrade, weight 0: Job/later is left out, for an install does not run it",
		"hook crd-install: Helm does not know it and leaves out Job/old",
	} {
		if !slices.Contains(told, "templates/hooks.yaml "+want) {
			t.Errorf("not told: %s", want)
		}
	}
	if len(told) != 7 {
		t.Errorf("told %q", told)
	}
	for i, line := range want {
		if i < len(got) && got[i] != line {
			t.Errorf("%s, want %s", got[i], line)
		}
	}
}

// TestHelmReachesNothing is threat T7: a chart reads no file and asks no server, whatever it tries.
func TestHelmReachesNothing(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"const": "TOPSECRET"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	t.Setenv("HTTP_PROXY", server.URL)
	t.Setenv("KUBECONFIG", secret)
	values := func(reference string) files {
		return files{"values.schema.json": "{\n\"properties\": {\"v\":\n" + reference + "}}\n"}
	}
	get := func(expression string) files {
		return files{"templates/cm.yaml": settings("x", "v: {{ "+expression+" | toJson | quote }}")}
	}
	for name, test := range map[string]struct {
		files
		want []string // codes and places, nil for none
		data string
	}{
		"schema in a file":        {values(`{"$ref": "file://` + secret + `"}`), []string{"render-refused values.schema.json:3"}, ""},
		"schema from a server":    {values(`{"$ref": "` + server.URL + `/x.json#/a"}`), []string{"render-refused values.schema.json:3"}, ""},
		"schema beside":           {values(`{"$ref": "other.json"}`), []string{"render-refused values.schema.json:3"}, ""},
		"schema by its id":        {values(`{"$id": "` + server.URL + `/y/z.json", "$ref": "w.json"}`), []string{"render-refused values.schema.json:3"}, ""},
		"metaschema":              {values(`{"$schema": "` + server.URL + `/meta", "$id": "` + server.URL + `/v"}`), []string{"render-refused values.schema.json:3"}, ""},
		"twin: schema within":     {files{"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {"type": "object"}}}`}, nil, "one"},
		"file outside":            {get(`.Files.Get "../../../../../../../..` + secret + `"`), []string{"chart-file-missing templates/cm.yaml:6"}, ""},
		"file outside, absolute":  {get(`.Files.Get (printf "%s" "` + secret + `")`), nil, ""},
		"glob outside":            {get(`(.Files.Glob "/**").AsConfig`), nil, ""},
		"twin: file of the chart": {files{"in.txt": "inside", "templates/cm.yaml": settings("x", "v: {{ .Files.Get \"in.txt\" | quote }}")}, nil, "inside"},
		"lookup":                  {get(`lookup "v1" "Secret" "kube-system" ""`), nil, "{}"},
		"name server":             {get(`getHostByName "localhost"`), nil, ""},
		"environment":             {get(`env "HTTP_PROXY"`), []string{"render-failed templates/cm.yaml:6"}, ""},
		"twin: other function":    {get(`b64enc "x"`), nil, "eA=="},
	} {
		t.Run(name, func(t *testing.T) {
			set, findings := render(t, chartOf(test.files), Options{})
			if got := codes(findings); !slices.Equal(got, test.want) {
				t.Errorf("findings %q %v, want %q", got, findings, test.want)
			}
			if all := fmt.Sprint(data(set), findings); strings.Contains(all, "TOPSECRET") || strings.Contains(all, "127.0.0.1 ") {
				t.Errorf("read from outside: %s", all)
			}
			if !strings.Contains(data(set), test.data) {
				t.Errorf("data %s, want %q", data(set), test.data)
			}
		})
	}
	if hits.Load() != 0 {
		t.Errorf("the server saw %d requests", hits.Load())
	}
}

// TestHelmLimits is threat T6, and the archive bomb of T7.
func TestHelmLimits(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory is over the child's limit: make unit runs this test without it too")
	}
	bomb := func(bytes int) string {
		return pack(t, "sub", files{"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "big.bin": strings.Repeat("0", bytes)})
	}
	for name, test := range map[string]struct {
		files
		want []string
	}{
		"include of itself":  {files{"templates/_a.tpl": `{{ define "a" }}{{ include "a" . }}{{ end }}`, "templates/a.yaml": `{{ include "a" . }}`}, []string{"render-failed"}},
		"template of itself": {files{"templates/a.yaml": `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`}, []string{"render-failed", "render-refused"}},
		"tpl of itself":      {files{"values.yaml": "v: '{{ tpl .Values.v . }}'\n", "templates/a.yaml": `{{ tpl .Values.v . }}`}, []string{"render-failed", "render-refused"}},
		"twin: include":      {files{"templates/_a.tpl": `{{ define "a" }}# x{{ end }}`, "templates/a.yaml": `{{ include "a" . }}`}, nil},
		"endless output":     {files{"templates/a.yaml": `{{ range until 100000 }}{{ range until 100000 }}xxxxxxxxxxxxxxxxxxxx{{ end }}{{ end }}`}, []string{"render-failed"}},
		"endless work":       {files{"templates/a.yaml": `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`}, []string{"render-failed"}},
		"one long text":      {files{"templates/a.yaml": `{{ repeat 2000000000 "x" }}`}, []string{"render-failed"}},
		"archive bomb":       {files{"charts/sub-1.0.0.tgz": bomb(MaxBytes + 1)}, []string{"render-refused"}},
		"many archives":      {files{"charts/a-1.0.0.tgz": bomb(MaxBytes / 2), "charts/b-1.0.0.tgz": bomb(MaxBytes/2 + 1)}, []string{"render-refused"}},
		"twin: archive":      {files{"charts/sub-1.0.0.tgz": bomb(1 << 20)}, nil},
		"archive climbs out": {files{"charts/sub-1.0.0.tgz": pack(t, "sub", files{"../../x": "y"})}, []string{"render-failed"}},
		"linked in a circle": {files{"more": "-> ."}, []string{"render-refused"}},
		"YAML bomb": {files{"values.yaml": "v: one\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + func() (text string) {
			for i := range 9 {
				text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
			}
			return text
		}()}, []string{"render-failed", "render-refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			set, findings := render(t, chartOf(test.files), Options{Timeout: 3 * time.Second})
			switch {
			case len(test.want) == 0 && (len(findings) != 0 || len(set.Objects) == 0):
				t.Errorf("findings %v", findings)
			case len(test.want) > 0 && (len(findings) == 0 || !slices.Contains(test.want, findings[0].Code) || findings[0].Severity != evidence.Fail || len(set.Objects) != 0):
				t.Errorf("findings %v, want %v", findings, test.want)
			case time.Since(start) > 20*time.Second:
				t.Errorf("it took %s", time.Since(start))
			}
			for _, f := range findings {
				if len(f.Message) > 2000 {
					t.Errorf("the message has %d bytes", len(f.Message))
				}
				t.Log(f.Code, f.Origin, f.Message)
			}
		})
	}
}
