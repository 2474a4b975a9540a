package verifier

import (
	"encoding/base64"
	"maps"
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/closure"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// stub settles which stubs the run makes. Those of whole objects are applied beside the set; keys
// that an object of the set lacks are added to the set that is applied, not to the facts.
func (r *run) stub(graph []evidence.Reference, opts closure.Options) {
	stubs, covered := closure.Stubs(graph, opts, r.opts.ExplainAll)
	r.facts.Stubs, r.facts.Explain = stubs, r.opts.ExplainAll
	for _, finding := range covered {
		r.covered[finding] = true
	}
	r.applied = r.set
	if len(stubs) == 0 {
		return
	}
	var beside []evidence.Object
	for _, s := range stubs {
		r.facts.NotCovered = append(r.facts.NotCovered, "what the real "+s.Object.String()+" holds: the run used a stub ("+s.Reason+")")
		if object := r.set.Find(s.Object); object != nil {
			object.Content = withKeys(object.Content, s)
		} else {
			beside = append(beside, stubObject(s))
		}
	}
	whole := *r.set
	whole.Objects = slices.Concat(r.set.Objects, beside)
	evidence.SortObjects(whole.Objects)
	r.applied = &whole
}

// stubs are the objects that the run applies beside the set.
func (r *run) stubs() []evidence.ID {
	var ids []evidence.ID
	for _, s := range r.facts.Stubs {
		if r.set.Find(s.Object) == nil {
			ids = append(ids, s.Object)
		}
	}
	return ids
}

// stubObject is an object of placeholders, marked as one.
func stubObject(s evidence.Stub) evidence.Object {
	metadata := map[string]any{
		"name": s.Object.Name, "namespace": s.Object.Namespace,
		"labels":      map[string]any{evidence.StubMark: "true"},
		"annotations": map[string]any{evidence.StubMark: s.Reason},
	}
	content := map[string]any{"apiVersion": "v1", "kind": s.Object.Kind, "metadata": metadata}
	return evidence.Object{ID: s.Object, APIVersion: "v1", Origin: s.Origin, Content: withKeys(content, s)}
}

// withKeys is content with the keys of a stub that it lacks.
func withKeys(content map[string]any, s evidence.Stub) map[string]any {
	content = maps.Clone(content)
	data, _ := content["data"].(map[string]any)
	if data = maps.Clone(data); data == nil {
		data = map[string]any{}
	}
	for key, text := range s.Texts {
		if s.Object.Kind == "Secret" {
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		if _, there := data[key]; !there {
			data[key] = text
		}
	}
	content["data"] = data
	return content
}
