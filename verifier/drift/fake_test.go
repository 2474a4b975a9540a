package drift

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// decode reads YAML as the API server's answers are decoded: whole numbers are int64.
func decode(text string) map[string]any {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%v in:\n%s", err, text))
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		panic(err)
	}
	return content
}

// written is a managedFields entry as the server writes it, of a time in 2026.
func written(manager, operation, subresource, fields string, minute int) any {
	entry := map[string]any{
		"apiVersion": "v1", "fieldsType": "FieldsV1", "manager": manager, "operation": operation, "fieldsV1": decode(fields),
		"time": fmt.Sprintf("2026-01-01T00:%02d:00Z", minute),
	}
	if subresource != "" {
		entry["subresource"] = subresource
	}
	return entry
}

// kept is one object of Git, and what the server made of it: its own field set, its live state, what
// applying once more gives, and what a new object would be.
type kept struct {
	object             evidence.Object
	live, again, fresh map[string]any
}

// keep applies Git's text; server is the object with all defaults, ours the fields that Git owns.
func keep(git, server, ours string) *kept {
	content := decode(git)
	k := &kept{
		object: evidence.Object{ID: evidence.IDOf(content), Content: content, Origin: evidence.Origin{File: "git.yaml", Line: 1}, Lines: map[string]int{}},
		live:   decode(server),
	}
	meta := k.live["metadata"].(map[string]any)
	meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = "uid-"+k.object.Name, "7", "2026-01-01T00:00:00Z"
	meta["managedFields"] = []any{written("rebuild-check", "Apply", "", ours, 0)}
	k.again, k.fresh = runtime.DeepCopyJSON(k.live), runtime.DeepCopyJSON(k.live)
	fresh := k.fresh["metadata"].(map[string]any)
	fresh["name"], fresh["uid"] = "rbc-fresh", "another"
	return k
}

// own adds an entry to the live object.
func (k *kept) own(entry any) {
	meta := k.live["metadata"].(map[string]any)
	meta["managedFields"] = append(meta["managedFields"].([]any), entry)
}

// lose takes fields off what Git owns: the server does that when another writes another value.
func (k *kept) lose(ours string) {
	k.live["metadata"].(map[string]any)["managedFields"].([]any)[0] = written("rebuild-check", "Apply", "", ours, 0)
}

// at walks maps by name and lists by index.
func at(value any, steps ...any) any {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

// put sets the field at the end of the steps in each of the contents.
func put(value any, steps []any, contents ...map[string]any) {
	last := len(steps) - 1
	for _, c := range contents {
		if parent := at(c, steps[:last]...).(map[string]any); value == nil {
			delete(parent, steps[last].(string))
		} else {
			parent[steps[last].(string)] = value
		}
	}
}

func steps(list ...any) []any { return list }

// input compares the kept objects and nothing else.
func input(list ...*kept) Input {
	in := Input{Set: &evidence.Set{}, Now: evidence.Inventory{Kinds: 60}, Mask: func(string) string { return "masked" }}
	slices.SortFunc(list, func(a, b *kept) int { return a.object.ID.Compare(b.object.ID) })
	for _, k := range list {
		in.Set.Objects = append(in.Set.Objects, k.object)
		in.Live = append(in.Live, evidence.Live{Object: k.object.ID, Content: k.live, Again: k.again, Fresh: k.fresh})
	}
	return in
}

// told writes each difference as "question change field: git -> live (manager, minute)".
func told(c evidence.Comparison) []string {
	var list []string
	for _, d := range c.Differences {
		line := fmt.Sprintf("%s %s %s", d.Question, d.Change, d.Field)
		if d.Question == "object" {
			line = fmt.Sprintf("%s %s %s", d.Question, d.Change, d.Object)
		}
		if d.Git+d.Live != "" {
			line += fmt.Sprintf(": %s -> %s", d.Git, d.Live)
		}
		if d.Manager != "" {
			line += fmt.Sprintf(" (%s, %s)", d.Manager, strings.TrimSuffix(strings.TrimPrefix(d.Time, "2026-01-01T00:"), ":00Z"))
		}
		list = append(list, line)
	}
	return list
}

// rules are "name count" of the rules that applied.
func rules(c evidence.Comparison) []string {
	var list []string
	for _, r := range c.Rules {
		list = append(list, fmt.Sprintf("%s %d", r.Name, r.Count))
	}
	return list
}

func expect(t *testing.T, c evidence.Comparison, want, wantRules []string) {
	t.Helper()
	if got := told(c); !slices.Equal(got, want) {
		t.Errorf("differences:\ngot  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if got := rules(c); !slices.Equal(got, wantRules) {
		t.Errorf("rules: got %v, want %v", got, wantRules)
	}
}
