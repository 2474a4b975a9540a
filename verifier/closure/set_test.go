package closure

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// setOf builds a set from YAML documents; every field of document i stands on line 100*i + its depth.
func setOf(t testing.TB, documents string) *evidence.Set {
	t.Helper()
	set := &evidence.Set{}
	for i, document := range strings.Split(documents, "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatalf("document %d: %v\n%s", i, err, document)
		}
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.UseNumber()
		var content map[string]any
		if err := decoder.Decode(&content); err != nil {
			t.Fatal(err)
		}
		lines := map[string]int{}
		content = settle(content, nil, 100*i, lines).(map[string]any)
		root := node{value: content}
		group, _, grouped := strings.Cut(root.at("apiVersion").text(), "/")
		if !grouped {
			group = ""
		}
		set.Objects = append(set.Objects, evidence.Object{
			ID:         evidence.ID{Group: group, Kind: root.at("kind").text(), Namespace: root.at("metadata", "namespace").text(), Name: root.at("metadata", "name").text()},
			APIVersion: root.at("apiVersion").text(),
			Origin:     evidence.Origin{File: "all.yaml", Line: 100 * i},
			Content:    content,
			Lines:      lines,
		})
	}
	evidence.SortObjects(set.Objects)
	return set
}

// settle makes integers int64, as Kubernetes decodes them, and numbers the fields.
func settle(value any, path []any, base int, lines map[string]int) any {
	if len(path) > 0 {
		lines[evidence.FieldPath(path...)] = base + len(path)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = settle(item, append(path, key), base, lines)
		}
	case []any:
		for i, item := range value {
			value[i] = settle(item, append(path, i), base, lines)
		}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		f, _ := value.Float64()
		return f
	}
	return value
}

// pod is a Pod of namespace app whose spec is the given YAML in flow or block form.
func pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: app}\nspec:\n" + indent(spec)
}

func container(fields string) string {
	return pod("containers:\n- name: c\n  image: i\n" + indent(fields))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

func object(apiVersion, kind, name, rest string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: app}\n%s", apiVersion, kind, name, rest)
}

func cluster(apiVersion, kind, name, rest string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s", apiVersion, kind, name, rest)
}

func crd(group, kind, scope string) string {
	return cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", strings.ToLower(kind)+"s."+group, fmt.Sprintf(
		"spec: {group: %s, scope: %s, names: {kind: %s}, versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]}", group, scope, kind))
}
