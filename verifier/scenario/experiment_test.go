package scenario

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// configMap is a ConfigMap at deploy/NAME.yaml:1, its data's keys at lines 10 and on, in their order.
func configMap(namespace, name string, data map[string]any) evidence.Object {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	lines := map[string]int{}
	for i, key := range slices.Sorted(maps.Keys(data)) {
		lines[evidence.FieldPath("data", key)] = 10 + i
	}
	return evidence.Object{
		ID: evidence.ID{Kind: "ConfigMap", Namespace: namespace, Name: name}, APIVersion: "v1", Lines: lines,
		Origin:  evidence.Origin{File: "deploy/" + name + ".yaml", Line: 1},
		Content: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data},
	}
}

// declared is a sound declaration with some keys replaced; a nil value takes the key away.
func declared(replace map[string]any) map[string]any {
	data := map[string]any{"change": "one thing", "fixed": "image, model", "metrics": "diff, rollout", "repeats": "3"}
	for key, value := range replace {
		if data[key] = value; value == nil {
			delete(data, key)
		}
	}
	return data
}

func TestSeedVerbatim(t *testing.T) {
	path := filepath.Join("..", "..", "scenarios", "day27-rebuild", "deploy", "experiment.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := yaml.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	seed := evidence.Object{ID: evidence.IDOf(content), Content: content, Origin: evidence.Origin{File: "deploy/experiment.yaml", Line: 1}}
	got, err := Experiments(&evidence.Set{Objects: []evidence.Object{seed}})
	if err != nil {
		t.Fatal(err)
	}
	want := []evidence.Experiment{{
		Name: "ai-lab/day27-experiment", Origin: seed.Origin, Change: "從 declarative manifests 在乾淨 namespace 重建服務",
		Fixed: []string{"image", "model", "input"}, Metrics: []string{"diff", "apply", "rollout", "artifact digest"}, Repeats: 3,
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestExperiments(t *testing.T) {
	sound := evidence.Experiment{
		Name: "ns/a", Origin: evidence.Origin{File: "deploy/a.yaml", Line: 1}, Change: "one thing",
		Fixed: []string{"image", "model"}, Metrics: []string{"diff", "rollout"}, Repeats: 3,
	}
	with := func(change func(*evidence.Experiment)) []evidence.Experiment {
		e := sound
		change(&e)
		return []evidence.Experiment{e}
	}
	secret := configMap("ns", "a", declared(nil))
	secret.Kind = "Secret"
	foreign := configMap("ns", "a", declared(nil))
	foreign.Group = "example.com"
	pod := evidence.Object{ID: evidence.ID{Kind: "Pod", Namespace: "ns", Name: "a"}}
	cases := []struct {
		name    string
		objects []evidence.Object
		want    []evidence.Experiment
	}{
		{"sound", []evidence.Object{configMap("ns", "a", declared(nil))}, []evidence.Experiment{sound}},
		{"without a namespace", []evidence.Object{configMap("", "a", declared(nil))}, with(func(e *evidence.Experiment) { e.Name = "a" })},
		{"words twice, spaces, empty parts", []evidence.Object{configMap("ns", "a", declared(map[string]any{"fixed": " image ,,model, image", "metrics": "diff,rollout,diff", "repeats": " 3\n"}))}, []evidence.Experiment{sound}},
		{"nothing fixed", []evidence.Object{configMap("ns", "a", declared(map[string]any{"fixed": ""}))}, with(func(e *evidence.Experiment) { e.Fixed = nil })},
		{"most repeats", []evidence.Object{configMap("ns", "a", declared(map[string]any{"repeats": "100"}))}, with(func(e *evidence.Experiment) { e.Repeats = 100 })},
		{"a fifth key", []evidence.Object{configMap("ns", "a", declared(map[string]any{"plan": "later"}))}, []evidence.Experiment{sound}},
		{"empty set", nil, []evidence.Experiment{Default(&evidence.Set{})}},
		{"a set with a Pod", []evidence.Object{pod}, []evidence.Experiment{{Name: "default", Change: "rebuild from the revision", Fixed: []string{"image"}, Metrics: []string{"diff", "apply", "rollout", "artifact digest"}, Repeats: 3}}},
		{"a set without Pods", []evidence.Object{secret}, []evidence.Experiment{{Name: "default", Change: "rebuild from the revision", Fixed: []string{}, Metrics: []string{"diff", "apply", "rollout"}, Repeats: 3}}},
		{"three of four keys", []evidence.Object{configMap("ns", "a", declared(map[string]any{"repeats": nil}))}, []evidence.Experiment{Default(&evidence.Set{})}},
		{"a Secret is none", []evidence.Object{secret}, []evidence.Experiment{Default(&evidence.Set{})}},
		{"a ConfigMap of another group is none", []evidence.Object{foreign}, []evidence.Experiment{Default(&evidence.Set{})}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Experiments(&evidence.Set{Objects: c.objects})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Keys stand at: change 10, fixed 11, metrics 12, repeats 13.
func TestMistakes(t *testing.T) {
	bad := func(key string, value any) []evidence.Object {
		return []evidence.Object{configMap("ns", "a", declared(map[string]any{key: value}))}
	}
	cases := []struct {
		name    string
		objects []evidence.Object
		want    []string // one part of each line of the error
	}{
		{"no repeats", bad("repeats", "0"), []string{`deploy/a.yaml:13: experiment a, repeats: want a whole number from 1 to 100, not "0"`}},
		{"a word for a number", bad("repeats", "three"), []string{`not "three"`}},
		{"less than none", bad("repeats", "-1"), []string{`not "-1"`}},
		{"too many", bad("repeats", "101"), []string{`not "101"`}},
		{"half", bad("repeats", "2.5"), []string{`not "2.5"`}},
		{"empty", bad("repeats", ""), []string{`not ""`}},
		{"number, not text", bad("repeats", int64(3)), []string{"deploy/a.yaml:13: experiment a, repeats: want a string"}},
		{"change is no text", bad("change", true), []string{"deploy/a.yaml:10: experiment a, change: want a string"}},
		{"fixed is no text", bad("fixed", []any{"image"}), []string{"deploy/a.yaml:11: experiment a, fixed: want a string"}},
		{"metrics is no text", bad("metrics", []any{"diff"}), []string{"deploy/a.yaml:12: experiment a, metrics: want a string"}},
		{"unknown metric", bad("metrics", "diff, latency"), []string{`deploy/a.yaml:12: experiment a, metrics: there is no metric "latency"; known are: diff, apply, rollout, artifact digest`}},
		{"only an unknown metric is one mistake", bad("metrics", "latency"), []string{`no metric "latency"`}},
		{"no metric", bad("metrics", " , "), []string{"deploy/a.yaml:12: experiment a, metrics: it names none; known are: diff, apply, rollout, artifact digest"}},
		{"unknown fixed word", bad("fixed", "image, weather"), []string{`deploy/a.yaml:11: experiment a, fixed: nothing is known of "weather", so that it could not be checked; known are: image, model, input`}},
		{"all at once", []evidence.Object{
			configMap("ns", "a", declared(map[string]any{"change": int64(1), "fixed": "x, y", "metrics": "z", "repeats": "0"})),
			configMap("ns", "b", declared(map[string]any{"repeats": "x"})),
		}, []string{"a.yaml:10", `a.yaml:11: experiment a, fixed: nothing is known of "x"`, `"y"`, `a.yaml:12: experiment a, metrics: there is no metric "z"`, "a.yaml:13", `b.yaml:13: experiment b, repeats`}},
		{"no metric beside another mistake", []evidence.Object{configMap("ns", "a", declared(map[string]any{"fixed": "x", "metrics": ""}))}, []string{"a.yaml:11", "a.yaml:12: experiment a, metrics: it names none"}},
		{"one name in two namespaces", []evidence.Object{configMap("one", "a", declared(nil)), configMap("two", "a", declared(nil))}, []string{"deploy/a.yaml:1: experiment a is declared twice; the other is at deploy/a.yaml:1"}},
		{"the second of one name is read too", []evidence.Object{configMap("one", "a", declared(nil)), configMap("two", "a", declared(map[string]any{"repeats": "0"}))}, []string{"declared twice", `not "0"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Experiments(&evidence.Set{Objects: c.objects})
			if err == nil || got != nil {
				t.Fatalf("no error, and %v", got)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("want %d mistakes, got:\n%v", len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d: %q lacks %q", i, lines[i], want)
				}
			}
		})
	}
}

func TestDefaultIsNobodyElses(t *testing.T) {
	set := &evidence.Set{Objects: []evidence.Object{{ID: evidence.ID{Kind: "Pod", Name: "a"}}}}
	first := Default(set)
	first.Metrics[0] = "spoilt"
	if got := Default(set); got.Metrics[0] != "diff" || Metrics[0] != "diff" {
		t.Errorf("the default shares memory: %v, %v", got.Metrics, Metrics)
	}
}

func TestRepeats(t *testing.T) {
	of := func(repeats ...int) (list []evidence.Experiment) {
		for _, n := range repeats {
			list = append(list, evidence.Experiment{Repeats: n})
		}
		return list
	}
	for name, c := range map[string]struct {
		experiments []evidence.Experiment
		want        int
	}{"none": {nil, 0}, "one": {of(3), 3}, "the most": {of(1, 5, 2), 5}} {
		if got := Repeats(c.experiments); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
