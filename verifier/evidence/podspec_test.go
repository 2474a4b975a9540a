package evidence

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestPodSpecs(t *testing.T) {
	const pod = `{"containers":[{"name":"a","image":"x"}]}`
	cases := []struct {
		name, group, kind, content string
		want                       []string
		real                       bool
	}{
		{"pod", "", "Pod", `{"spec":` + pod + `}`, []string{"spec"}, true},
		{"pod template", "", "PodTemplate", `{"template":{"spec":` + pod + `}}`, []string{"template.spec"}, true},
		{"replication controller", "", "ReplicationController", `{"spec":{"template":{"spec":` + pod + `}}}`, []string{"spec.template.spec"}, true},
		{"deployment", "apps", "Deployment", `{"spec":{"template":{"spec":` + pod + `}}}`, []string{"spec.template.spec"}, true},
		{"deployment without a template", "apps", "Deployment", `{"spec":{}}`, nil, false},
		{"deployment whose template is text", "apps", "Deployment", `{"spec":{"template":"x"}}`, nil, false},
		{"deployment without an image", "apps", "Deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}`, []string{"spec.template.spec"}, true},
		{"cron job", "batch", "CronJob", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + pod + `}}}}}`, []string{"spec.jobTemplate.spec.template.spec"}, true},
		{"custom template", "x.example", "Fleet", `{"spec":{"groups":[{"template":{"spec":` + pod + `}},{"template":{"spec":` + pod + `}}]}}`,
			[]string{"spec.groups[0].template.spec", "spec.groups[1].template.spec"}, true},
		{"custom template without a container name", "serving.knative.dev", "Service", `{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}`, []string{"spec.template.spec"}, true},
		{"custom Pod spec by shape", "serving.kserve.io", "InferenceService", `{"spec":{"predictor":` + pod + `}}`, []string{"spec.predictor"}, false},
		{"containers of shipping", "x.example", "Ship", `{"spec":{"cargo":{"containers":[{"name":"a"}]}}}`, nil, false},
		{"containers with images and no names, in no spec", "x.example", "Registry", `{"spec":{"containers":[{"image":"a"}],"mirror":{"containers":[{"image":"a"}]}}}`, []string{"spec"}, false},
		{"images without names", "x.example", "Registry", `{"spec":{"mirror":{"containers":[{"image":"a"}]}}}`, nil, false},
		{"containers are names", "x.example", "Scan", `{"spec":{"containers":["a"]}}`, nil, false},
		{"schema of a CRD", "apiextensions.k8s.io", "CustomResourceDefinition", `{"spec":{"default":{"spec":` + pod + `}}}`, nil, false},
		{"same kind in another group", "x.example", "Deployment", `{"spec":{"tpl":{"spec":` + pod + `}}}`, []string{"spec.tpl.spec"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := Object{ID: ID{Group: c.group, Kind: c.kind, Name: "n"}}
			if err := json.Unmarshal([]byte(c.content), &o.Content); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range o.PodSpecs() {
				got = append(got, FieldPath(p.Path...))
				if p.Real != c.real {
					t.Errorf("%s: Real is %v, want %v", FieldPath(p.Path...), p.Real, c.real)
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPodContainers(t *testing.T) {
	o := Object{ID: ID{Kind: "Pod", Name: "n"}, Content: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{
		"containers":          []any{map[string]any{"name": "b"}, map[string]any{"name": "c"}},
		"initContainers":      []any{map[string]any{"name": "a"}},
		"ephemeralContainers": []any{map[string]any{"name": "d"}, "not a container"},
	}}}
	pod := o.PodSpecs()[0]
	var got []string
	for _, c := range pod.Containers() {
		got = append(got, c.Spec["name"].(string)+" "+FieldPath(c.Path...))
	}
	want := []string{"a spec.initContainers[0]", "b spec.containers[0]", "c spec.containers[1]", "d spec.ephemeralContainers[0]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if pod.Meta["labels"] == nil {
		t.Error("the metadata of the Pod is lost")
	}
}
