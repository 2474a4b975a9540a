package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// build decodes the objects and checks what every set must hold to: names, and no object twice.
func build(rendered []object) ([]evidence.Object, []evidence.Finding, error) {
	objects := []evidence.Object{}
	var findings []evidence.Finding
	first := map[evidence.ID]evidence.Origin{}
	for _, r := range rendered {
		o := evidence.Object{Origin: r.Origin, Lines: r.Lines}
		if err := kjson.Unmarshal(r.JSON, &o.Content); err != nil {
			return nil, nil, fmt.Errorf("decoding an object of %s: %w", r.Origin, err)
		}
		o.ID = identify(o.Content)
		o.APIVersion, _ = o.Content["apiVersion"].(string)
		found := evidence.Finding{Severity: evidence.Fail, Object: o.ID.String(), Origin: o.Origin}
		metadata, _ := o.Content["metadata"].(map[string]any)
		if _, isText := metadata["namespace"].(string); !isText && metadata["namespace"] != nil {
			found.Code, found.Field, found.Origin = "render-failed", "metadata.namespace", o.At("metadata", "namespace")
			found.Message = fmt.Sprintf("metadata.namespace is %v, which is not text; quote it", metadata["namespace"])
			findings = append(findings, found)
			continue
		}
		if prefix, _ := metadata["generateName"].(string); o.Name == "" && prefix != "" {
			found.Code, found.Object, found.Field = "name-generated", o.Kind, "metadata.generateName"
			found.Origin = o.At("metadata", "generateName")
			found.Message = fmt.Sprintf("%s %s* gets another name in every rebuild", o.Kind, prefix)
			found.Do = "give it a metadata.name"
			findings = append(findings, found)
		} else if o.Name == "" {
			found.Code, found.Object, found.Field = "render-failed", o.Kind, "metadata.name"
			found.Message = "the object has no metadata.name, or one that is not text"
			findings = append(findings, found)
			continue
		} else if origin, twice := first[o.ID]; twice {
			found.Code = "duplicate-object"
			found.Message = fmt.Sprintf("the object is defined in %s and in %s; only the last would count", origin, o.Origin)
			found.Do = "remove one"
			findings = append(findings, found)
		}
		if o.Name != "" {
			first[o.ID] = o.Origin
		}
		objects = append(objects, o)
	}
	return objects, findings, nil
}

func identify(content map[string]any) evidence.ID {
	var id evidence.ID
	api, _ := content["apiVersion"].(string)
	if group, _, ok := strings.Cut(api, "/"); ok {
		id.Group = group
	}
	id.Kind, _ = content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	id.Namespace, _ = metadata["namespace"].(string)
	id.Name, _ = metadata["name"].(string)
	return id
}

// digest is the SHA-256 of the objects' contents, in their order, as JSON with sorted keys. Values of
// Secrets are left out: a plain hash of a short one could be guessed.
func digest(objects []evidence.Object) (string, error) {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, o := range objects {
		if err := encoder.Encode(evidence.Redacted(o.Content, func(string) string { return "" })); err != nil {
			return "", fmt.Errorf("hashing %s: %w", o.ID, err)
		}
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// compare tells whether two renders are the same and, if not, where they first differ.
func compare(a, b answer) (evidence.Finding, bool) {
	f := evidence.Finding{Code: "render-nondeterministic", Severity: evidence.Fail, Do: "render without random or clock values"}
	text := func(findings []evidence.Finding) string {
		var all []string
		for _, f := range findings {
			all = append(all, f.Code+" "+f.Message)
		}
		return strings.Join(all, "; ")
	}
	if x, y := text(a.Findings), text(b.Findings); x != y {
		f.Message, f.Want, f.Got = "two renders of the same files end differently", x, y
		return f, true
	}
	for i := range max(len(a.Objects), len(b.Objects)) {
		if i >= len(a.Objects) || i >= len(b.Objects) {
			f.Message = fmt.Sprintf("two renders of the same files give %d and %d objects", len(a.Objects), len(b.Objects))
			return f, true
		}
		if a.Objects[i].Hash == b.Objects[i].Hash && a.Objects[i].Hash != "" || same(a.Objects[i].JSON, b.Objects[i].JSON) {
			continue
		}
		if b.Objects[i].JSON == nil {
			f.Object, f.Origin, f.Message = a.Objects[i].ID.String(), a.Objects[i].Origin, "two renders of the same files differ"
			return f, true
		}
		x, y := contents(a.Objects[i].JSON), contents(b.Objects[i].JSON)
		f.Object, f.Origin = identify(x).String(), a.Objects[i].Origin
		f.Message = "two renders of the same files differ"
		if identify(x) != identify(y) {
			f.Want, f.Got = f.Object, identify(y).String()
			return f, true
		}
		var path []any
		path, f.Want, f.Got = differ(x, y, nil)
		f.Field = evidence.FieldPath(path...)
		if identify(x).Kind == "Secret" {
			f.Want, f.Got = "", ""
		}
		return f, true
	}
	return f, false
}

func contents(data []byte) map[string]any {
	content, _ := numbers(data).(map[string]any)
	return content
}

// same compares objects; no annotations and empty annotations are the same.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := contents(a), contents(b)
	strip(x)
	strip(y)
	return bytes.Equal(canonical(x), canonical(y))
}

// differ is the first field, in the order of keys, in which two values differ.
func differ(a, b any, at []any) (path []any, want, got string) {
	at = at[:len(at):len(at)]
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			keys := maps.Clone(x)
			maps.Copy(keys, y)
			for _, k := range slices.Sorted(maps.Keys(keys)) {
				if fmt.Sprint(x[k]) != fmt.Sprint(y[k]) {
					return differ(x[k], y[k], append(at, k))
				}
			}
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if fmt.Sprint(x[i]) != fmt.Sprint(y[i]) {
					return differ(x[i], y[i], append(at, i))
				}
			}
		}
	}
	return at, brief(a), brief(b)
}

func brief(v any) string {
	data, _ := json.Marshal(v)
	return strings.ToValidUTF8(string(data[:min(len(data), 200)]), "")
}

// locate takes the origins from a second render of the same objects.
func locate(objects, located []object) {
	if len(objects) != len(located) {
		return
	}
	for i := range objects {
		if objects[i].ID == located[i].ID {
			objects[i].Origin, objects[i].Lines = located[i].Origin, located[i].Lines
		}
	}
}
