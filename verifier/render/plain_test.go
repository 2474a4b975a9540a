package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  k: v\n"

func cm(name string) string { return strings.Replace(configMap, "%s", name, 1) }

func TestPlain(t *testing.T) {
	for name, test := range map[string]struct {
		files
		objects, findings, skipped []string
	}{
		"folder": {
			files: files{"a.yaml": cm("a"), "sub/b.yml": cm("b"), "c.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"c"}}`,
				".github/x.yml": cm("x"), ".hidden.yaml": cm("x"), "x.yaml.bak": cm("x"), "values.yaml": "replicas: 1\n", "package.json": `{"name":"x"}`,
				"sub/kustomization.yaml": "resources: [x]\n", "k.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "empty.yaml": "# only\n---\n---\n"},
			objects: []string{"ConfigMap/a a.yaml:1", "ConfigMap/b sub/b.yml:1", "Service/c c.json:1"},
			skipped: []string{".github", ".hidden.yaml", "sub/kustomization.yaml", "x.yaml.bak", "empty.yaml", "k.yaml", "package.json", "values.yaml"},
		},
		"comments and empty documents": {files: files{"a.yaml": "# top\n---\n---\n" + cm("a") + "--- # end\nnull\n---\n# c\n\n" + cm("b") + "---"},
			objects: []string{"ConfigMap/a a.yaml:4", "ConfigMap/b a.yaml:15"}},
		"BOM and CRLF": {files: files{"a.yaml": strings.ReplaceAll("\ufeff---\n"+cm("a")+"---\n\ufeff"+cm("b"), "\n", "\r\n")},
			objects: []string{"ConfigMap/a a.yaml:2", "ConfigMap/b a.yaml:9"}},
		"UTF-16":                 {files: files{"a.yaml": "\xff\xfea\x00"}, findings: []string{"render-failed a.yaml"}},
		"only kind":              {files: files{"a.yaml": "\nkind: X\nmetadata: {name: x}\n"}, findings: []string{"render-failed a.yaml:2"}},
		"only apiVersion":        {files: files{"a.yaml": "apiVersion: v1\nmetadata: {name: x}\n"}, findings: []string{"render-failed a.yaml:1"}},
		"bad apiVersion":         {files: files{"a.yaml": cm("b") + "---\napiVersion: apps/v1/x\nkind: X\nmetadata: {name: x}\n"}, objects: []string{"ConfigMap/b a.yaml:1"}, findings: []string{"render-failed a.yaml:8"}},
		"foreign document":       {files: files{"a.yaml": cm("b") + "---\nx: 1\n"}, objects: []string{"ConfigMap/b a.yaml:1"}, findings: []string{"render-failed a.yaml:8"}},
		"broken YAML":            {files: files{"a.yaml": cm("b") + "---\napiVersion: v1\nkind: X\n bad: y\n"}, objects: []string{"ConfigMap/b a.yaml:1"}, findings: []string{"render-failed a.yaml:10"}},
		"bad separator":          {files: files{"a.yaml": cm("b") + "--- {a: b}\n"}, findings: []string{"render-failed a.yaml:7"}},
		"no name":                {files: files{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {}\n"}, findings: []string{"render-failed a.yaml:1"}},
		"generateName":           {files: files{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: x-\n"}, objects: []string{"Pod/ a.yaml:1"}, findings: []string{"name-generated a.yaml:4"}},
		"namespace is a boolean": {files: files{"a.yaml": "apiVersion: v1\nkind: X\nmetadata:\n  name: x\n  namespace: n\n"}, findings: []string{"render-failed a.yaml:5"}},
		"no objects":             {files: files{"a.txt": "x"}, findings: []string{"render-empty ."}, skipped: []string{"a.txt"}},
		"duplicate key":          {files: files{"a.yaml": cm("a") + "  k: w\n"}, objects: []string{"ConfigMap/a a.yaml:1"}, findings: []string{"duplicate-key a.yaml:7"}},
		"two merge keys":         {files: files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x {a: b}\ny: &y {c: d}\ndata:\n  <<: *x\n  <<: *y\n"}, objects: []string{"ConfigMap/a a.yaml:1"}, findings: []string{"duplicate-key a.yaml:8"}},
		"duplicate object":       {files: files{"x.yaml": cm("a"), "y.yaml": cm("a")}, objects: []string{"ConfigMap/a x.yaml:1", "ConfigMap/a y.yaml:1"}, findings: []string{"duplicate-object y.yaml:1"}},
		"two versions":           {files: files{"x.yaml": "apiVersion: g/v1\nkind: X\nmetadata: {name: a}\n---\napiVersion: g/v2\nkind: X\nmetadata: {name: a}\n"}, objects: []string{"X.g/a x.yaml:1", "X.g/a x.yaml:5"}, findings: []string{"duplicate-object x.yaml:5"}},
		"twin: two groups, two namespaces": {files: files{"x.yaml": "apiVersion: g/v1\nkind: X\nmetadata: {name: a}\n---\napiVersion: h/v1\nkind: X\nmetadata: {name: a}\n---\napiVersion: h/v1\nkind: X\nmetadata: {name: a, namespace: ns}\n"},
			objects: []string{"X.g/a x.yaml:1", "X.h/a x.yaml:5", "X.h/ns/a x.yaml:9"}},
		"lists": {files: files{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a, namespace: ns}\n" +
			"- apiVersion: rbac.authorization.k8s.io/v1\n  kind: RoleList\n  items:\n  - metadata: {name: r}\n- {apiVersion: v1, metadata: {name: x}}\n---\napiVersion: v1\nkind: List\nitems: []\n"},
			objects: []string{"ConfigMap/ns/a a.yaml:4", "Role.rbac.authorization.k8s.io/r a.yaml:10"}, findings: []string{"render-failed a.yaml:11"}},
		"JSON stream": {files: files{"a.json": "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"b\"}}\n"},
			objects: []string{"A/a a.json:1", "A/b a.json:3"}},
		"links": {files: files{"a.yaml": "-> sub/a.yaml", "sub/a.yaml": cm("a"), "out.yaml": "-> /etc/passwd", "gone.yaml": "-> nowhere"}, // a.yaml twice
			findings: []string{"render-failed gone.yaml", "render-refused out.yaml"}},
		"submodule":   {files: files{"a.yaml": cm("a"), "vendor": "submodule"}, findings: []string{"missing-submodule vendor"}},
		"LFS pointer": {files: files{"a.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"}, findings: []string{"missing-lfs-object a.yaml:1"}},
		"alias bomb":  {files: files{"a.yaml": bomb()}, findings: []string{"render-failed a.yaml:1"}},
		"deep":        {files: files{"a.yaml": "a: " + strings.Repeat("[", 200000)}, findings: []string{"render-failed a.yaml:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, findings := render(t, test.files, Options{})
			var skipped []string
			for _, s := range set.Skipped {
				skipped = append(skipped, s.File)
			}
			if got := ids(set); !slices.Equal(got, test.objects) {
				t.Errorf("objects %q, want %q", got, test.objects)
			}
			if got := codes(findings); !slices.Equal(got, test.findings) {
				t.Errorf("findings %q %v, want %q", got, findings, test.findings)
			}
			if !slices.Equal(skipped, test.skipped) {
				t.Errorf("skipped %+v, want %q", set.Skipped, test.skipped)
			}
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: X\nmetadata: {name: x}\na0: &a0 [x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// TestPlainValues has what YAML 1.1 makes of odd scalars, as kubectl sees them.
func TestPlainValues(t *testing.T) {
	set, findings := render(t, files{"a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: a}\nv:\n  mode: 0644\n  octal: 0o755\n  decimal: 420\n  on: yes\n  text: 'yes'\n" +
		"  big: 9007199254740993\n  float: 1.5\n  re: '^\\d+(\\.\\d+)?$'\nlist:\n- &c {name: a, image: x}\n- {<<: *c, name: b}\n"}, Options{})
	if len(findings) != 0 {
		t.Fatal(findings)
	}
	want := map[string]any{"mode": int64(420), "octal": int64(493), "decimal": int64(420), "true": true, "text": "yes", "big": int64(9007199254740993), "float": 1.5, "re": `^\d+(\.\d+)?$`}
	if got := set.Objects[0].Content["v"]; !reflect.DeepEqual(got, want) {
		t.Errorf("v is %#v, want %#v", got, want)
	}
	list := []any{map[string]any{"name": "a", "image": "x"}, map[string]any{"name": "b", "image": "x"}}
	if got := set.Objects[0].Content["list"]; !reflect.DeepEqual(got, list) {
		t.Errorf("list is %v, want %v", got, list)
	}
	o := set.Objects[0]
	for field, line := range map[string]int{"v.big": 10, "list[0].image": 14, "list[1].image": 14, "list[1].name": 15} {
		if o.Lines[field] != line {
			t.Errorf("%s is in line %d, want %d", field, o.Lines[field], line)
		}
	}
	again, _ := render(t, files{"b/other.yaml": "metadata: {name: a}\nkind: X\napiVersion: v1\n"}, Options{})
	other, _ := render(t, files{"a.yaml": "apiVersion: v1\nkind: X\nmetadata:\n  name: a\n"}, Options{})
	if again.Digest != other.Digest || again.Digest == set.Digest || !strings.HasPrefix(set.Digest, "sha256:") {
		t.Errorf("digests %s, %s, %s", again.Digest, other.Digest, set.Digest)
	}
}

func TestPaths(t *testing.T) {
	tree := files{"app/a.yaml": cm("a"), "k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": cm("a"), "vendor": "submodule"}
	for _, opts := range []Options{{Path: "nope"}, {Path: "vendor"}, {Path: "../x"}, {Path: "app", Renderer: Kustomize}, {Path: "app/a.yaml", Renderer: Kustomize}, {Path: "app", Renderer: "magic"}} {
		var bad *PathError
		if set, _, err := Render(t.Context(), tree, opts); !errors.As(err, &bad) || set != nil {
			t.Errorf("%+v: %v, want a PathError", opts, err)
		}
	}
	for _, opts := range []Options{{Path: "app"}, {Path: "./app/"}, {Path: "app/a.yaml"}, {Path: "k"}, {Path: "k", Renderer: Plain}} {
		if set, findings := render(t, tree, opts); len(set.Objects) != 1 || len(findings) != 0 || (set.Renderer == Kustomize) != (opts.Path == "k" && opts.Renderer == "") {
			t.Errorf("%+v: %s %v %v", opts, set.Renderer, ids(set), findings)
		}
	}
}

func TestLimits(t *testing.T) {
	many := files{}
	for i := range MaxFiles + 1 {
		many[fmt.Sprintf("%05d.yaml", i)] = "x"
	}
	for name, test := range map[string]struct {
		files
		opts Options
		code string
		want string
	}{
		"one file": {files{"a.yaml": strings.Repeat("#", MaxFileBytes+1)}, Options{}, "render-refused", "bytes in one file"},
		"depth":    {files{strings.Repeat("d/", MaxDepth+2) + "a.yaml": cm("a")}, Options{}, "render-refused", "deeper"},
		"files":    {many, Options{}, "render-refused", "limit of 10000 files"},
		"memory":   {files{"a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\na: [" + strings.Repeat("a,", 7<<20) + "]\n"}, Options{MemoryLimit: 64 << 20}, "render-failed", "more memory than the limit of 64 MiB"},
		"time":     {files{"a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\na: [" + strings.Repeat("a,", 6<<20) + "]\n"}, Options{Timeout: 300 * time.Millisecond}, "render-failed", "longer than the limit of 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			if raceDetector && name == "memory" {
				t.Skip("the race detector's own memory is over the limit: make unit runs this test without it too")
			}
			start := time.Now()
			_, findings := render(t, test.files, test.opts)
			if len(findings) == 0 || findings[0].Code != test.code || !strings.Contains(findings[0].Message, test.want) {
				t.Errorf("findings %v, want %s that says %q", findings, test.code, test.want)
			}
			t.Log(time.Since(start))
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Render(ctx, files{"a.yaml": cm("a")}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled render: %v", err)
	}
}

func TestCompare(t *testing.T) {
	object := func(text string) answer { return answer{Objects: []object{{JSON: []byte(text)}}} }
	a := object(`{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":{"l":[1,{"v":"x"}]}}`)
	b := object(`{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":{"l":[1,{"v":"y"}]}}`)
	f, differs := compare(a, b)
	if !differs || f.Code != "render-nondeterministic" || f.Object != "X/a" || f.Field != "spec.l[1].v" || f.Want != `"x"` || f.Got != `"y"` {
		t.Errorf("got %+v", f)
	}
	secret := strings.NewReplacer(`"X"`, `"Secret"`)
	f, _ = compare(object(secret.Replace(string(a.Objects[0].JSON))), object(secret.Replace(string(b.Objects[0].JSON))))
	if f.Object != "Secret/a" || f.Want+f.Got != "" {
		t.Errorf("a Secret's values are shown: %+v", f)
	}
	if _, differs = compare(a, answer{}); !differs {
		t.Error("a missing object is not seen")
	}
	if f, differs = compare(a, a); differs {
		t.Errorf("equal renders: %+v", f)
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", cm("a") + "---\n" + cm("b"), "---\r\na: b\r\n--- # x\r\n", "\ufeff---\n\ufeffa: b\n---", `{"a":1} {"b":2}`, "--- x", "{a: b}\n---\n{}", "\n\n--"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := split(data)
		if err != nil {
			return
		}
		lines, last := bytes.Count(data, []byte("\n"))+1, 0
		for _, d := range docs {
			if d.line < last || d.line > lines || len(bytes.TrimSpace(d.text)) == 0 {
				t.Fatalf("a document at line %d of %d, after line %d: %q", d.line, lines, last, d.text)
			}
			last = d.line
			_, _ = decode(d)
		}
	})
}
