package scenario

import (
	"reflect"
	"strings"
	"testing"
)

const head = "apiVersion: rebuild-check.dev/v1alpha1\nkind: RebuildCheck\n"

func TestParseConfig(t *testing.T) {
	got, err := ParseConfig(ConfigFile, []byte("# what to rebuild\n"+head+"namespace: shop\nnodes: 3\npaths:\n- path: crds\n  renderer: plain\n- path: ./deploy/overlays/prod/\n"+
		"- path: charts/shop\n  renderer: helm\n  values: [values/prod.yaml]\n  set: ['a.b=c']\n  release: shop\n- {path: charts/shop, release: other}\n"))
	want := Config{Namespace: "shop", Nodes: 3, Paths: []Path{{Path: "crds", Renderer: "plain"}, {Path: "deploy/overlays/prod"},
		{Path: "charts/shop", Renderer: "helm", Values: []string{"values/prod.yaml"}, Set: []string{"a.b=c"}, Release: "shop"}, {Path: "charts/shop", Release: "other"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := ParseConfig(ConfigFile, []byte(head)); err != nil || !reflect.DeepEqual(got, Config{}) {
		t.Errorf("a file that says nothing: %+v, %v", got, err)
	}
}

// TestParseConfigMistakes wants every mistake of a file, each with its line.
func TestParseConfigMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":             {"", []string{":1: the file is empty"}},
		"only a comment":    {"# x\n", []string{":1: the file is empty"}},
		"no mapping":        {"- a\n", []string{":1: want a mapping"}},
		"not YAML":          {head + " a: b\n", []string{"line 3"}},
		"no version":        {"kind: RebuildCheck\n", []string{":1: apiVersion is missing: want rebuild-check.dev/v1alpha1"}},
		"other version":     {"apiVersion: rebuild-check.dev/v2\nkind: Other\n", []string{`:1: apiVersion: want rebuild-check.dev/v1alpha1, not "rebuild-check.dev/v2"`, ":2: kind: want RebuildCheck"}},
		"unknown field":     {head + "namepsace: x\n", []string{`:3: there is no field "namepsace"; known are: apiVersion, inputs, kind, namespace, nodes, paths`}},
		"unknown inside":    {head + "paths:\n- path: a\n  rendrer: helm\n", []string{`:5: paths[0]: there is no field "rendrer"`}},
		"other case":        {head + "Nodes: 1\n", []string{`:3: there is no field "Nodes"`}},
		"twice":             {head + "nodes: 1\nnodes: 2\n", []string{":4: nodes: it stands in line 3 already"}},
		"twice inside":      {head + "paths:\n- path: a\n  path: b\n", []string{":5: paths[0].path: it stands in line 4 already"}},
		"nodes":             {head + "nodes: 21\n", []string{":3: nodes: want a whole number from 1 to 20"}},
		"nodes in quotes":   {head + "nodes: '2'\n", []string{":3: nodes: want a whole number"}},
		"namespace":         {head + "namespace: Shop\n", []string{`:3: namespace: "Shop" is not a namespace`}},
		"namespace, a bool": {head + "namespace: true\n", []string{":3: namespace: want a text"}},
		"no paths":          {head + "paths: []\n", []string{":3: paths: want 1 to 100 paths"}},
		"paths is a text":   {head + "paths: a\n", []string{":3: paths: want a list"}},
		"a path is a text":  {head + "paths: [a]\n", []string{":3: paths[0]: want a mapping"}},
		"path missing":      {head + "paths:\n- renderer: plain\n", []string{":4: paths[0]: path is missing"}},
		"path out":          {head + "paths:\n- path: a/../../b\n- path: /etc\n- path: ..\n", []string{":4: paths[0].path: \"a/../../b\" is not a path inside", ":5: paths[1].path", ":6: paths[2].path"}},
		"path twice":        {head + "paths:\n- path: a\n- path: ./a/\n", []string{":5: paths[1]: path a is also in line 4"}},
		"renderer":          {head + "paths:\n- {path: a, renderer: jsonnet}\n", []string{`:4: paths[0].renderer: want plain or kustomize or helm, not "jsonnet"`}},
		"values for plain":  {head + "paths:\n- {path: a, renderer: plain, set: [a=b]}\n", []string{":4: paths[0]: values, set and release are for charts"}},
		"values out":        {head + "paths:\n- {path: a, values: [../v.yaml], set: [x], release: A_b}\n", []string{":4: paths[0].values[0]", ":4: paths[0].set[0]: want KEY=VALUE", ":4: paths[0].release"}},
		"alias":             {head + "namespace: &a x\nnodes: *a\n", []string{":3: namespace: anchors and aliases", ":4: nodes: anchors and aliases"}},
		"merge key":         {head + "<<: {nodes: 2}\n", []string{`:3: there is no field "<<"`}},
		"inputs":            {head + "inputs:\n- {kind: Pod, name: A_b, keys: [a/b]}\n- {kind: Secret, name: s, reason: ' ', stub: false}\n- {kind: Secret, name: s, reason: x, stub: {}}\n- {kind: Secret, name: t, reason: x, stub: {a: 1, 'b c': x}}\n", []string{":4: inputs[0].kind: want Secret or ConfigMap", ":4: inputs[0].name", ":4: inputs[0].keys[0]", ":4: inputs[0]: reason is missing", ":5: inputs[1].reason: want a text that says why", ":5: inputs[1].stub: want true", ":6: inputs[2].stub: want true", ":6: inputs[2]: Secret s is also in line 5", ":7: inputs[3].stub: \"b c\" is not a key", ":7: inputs[3].stub.a: want a text"}},
		"second document":   {head + "---\n" + head, []string{":3: a second document"}},
		"all at once":       {"kind: X\nnodes: 0\nfoo: 1\npaths:\n- path: /x\n- renderer: y\n", []string{":1: apiVersion is missing", ":1: kind", ":2: nodes", `:3: there is no field "foo"`, ":5: paths[0].path", ":6: paths[1].renderer", ":6: paths[1]: path is missing"}},
		"too long":          {head + strings.Repeat("#", MaxConfig), []string{"over the limit of 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseConfig(ConfigFile, []byte(test.text))
			if err == nil || !reflect.DeepEqual(got, Config{}) {
				t.Fatalf("got %+v, %v; want a mistake", got, err)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != len(test.want) {
				t.Errorf("%d mistakes, want %d: %v", len(lines), len(test.want), err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ConfigFile+":") {
					t.Errorf("%v; want %q", err, want)
				}
			}
		})
	}
}

// FuzzParseConfig: whatever is read is inside the limits, and is never both read and refused.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{"", head, head + "nodes: 2\nnamespace: x\npaths:\n- {path: a, renderer: helm, values: [v], set: [a=b], release: r}\n", head + "paths: &a [*a]\n", "a: {b: [c\n", "? [a]\n: b\n", "--- !!binary x\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(ConfigFile, data)
		if err != nil {
			if !reflect.DeepEqual(c, Config{}) || strings.TrimSpace(err.Error()) == "" {
				t.Fatalf("%+v beside %v", c, err)
			}
			return
		}
		if c.Nodes < 0 || c.Nodes > maxNodes || c.Namespace != "" && !namespaceName.MatchString(c.Namespace) || len(c.Paths) > maxPaths {
			t.Fatalf("read %+v", c)
		}
		for _, p := range c.Paths {
			if p.Path == "" || strings.HasPrefix(p.Path, "/") || p.Path == ".." || strings.HasPrefix(p.Path, "../") {
				t.Fatalf("a path leads out: %+v", p)
			}
		}
	})
}
