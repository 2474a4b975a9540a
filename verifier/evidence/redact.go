package evidence

import (
	"encoding/json"
	"maps"
)

// Redacted is the object's content with every value that is, or may repeat, the value of a Secret
// put through mask. Other kinds come back as they are.
func Redacted(content map[string]any, mask func(string) string) map[string]any {
	if content == nil || content["kind"] != "Secret" || content["apiVersion"] != "v1" {
		return content
	}
	result := maps.Clone(content)
	for _, field := range []string{"data", "stringData"} {
		if values, ok := content[field].(map[string]any); ok {
			result[field] = maskAll(values, mask)
		}
	}
	if meta, ok := content["metadata"].(map[string]any); ok {
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			meta = maps.Clone(meta)
			meta["annotations"] = maskAll(annotations, mask)
			result["metadata"] = meta
		}
	}
	return result
}

func maskAll(values map[string]any, mask func(string) string) map[string]any {
	masked := map[string]any{}
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			if err != nil {
				encoded = []byte(err.Error())
			}
			text = string(encoded)
		}
		masked[key] = mask(text)
	}
	return masked
}

// Redacted is a copy of the set for the evidence: secrets masked, and without the line of every field.
func (s *Set) Redacted(mask func(string) string) *Set {
	result := *s
	result.Objects = make([]Object, len(s.Objects))
	for i, o := range s.Objects {
		o.Content, o.Lines = Redacted(o.Content, mask), nil
		result.Objects[i] = o
	}
	return &result
}
