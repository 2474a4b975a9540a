package verdict

import (
	"fmt"
	"strings"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func hash(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

var (
	web   = evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}
	model = evidence.ID{Kind: "ConfigMap", Namespace: "ns", Name: "model"}
	pod   = evidence.ID{Kind: "Pod", Namespace: "ns", Name: "web-1-x"}
	stray = evidence.ID{Kind: "ConfigMap", Namespace: "ns", Name: "stray"}
)

const reference = "reg.example/app:1"

// soundRun is all that a pass stands on: two objects, one image, three repeats in one cluster.
func soundRun() evidence.Run {
	run := evidence.Run{
		SchemaVersion: evidence.SchemaVersion, Tool: "rebuild-check test", ID: "rbc-1", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Request:  evidence.Request{Rev: "main", Path: "deploy", Namespace: "ns", Nodes: 1, Isolation: "namespace", Timeout: 900},
		Revision: &evidence.Revision{Name: "main", Commit: strings.Repeat("a", 40), Tree: strings.Repeat("b", 40)},
		Set: &evidence.Set{Renderer: "plain", Path: "deploy", Digest: hash("d"), Objects: []evidence.Object{
			{ID: model, APIVersion: "v1", Origin: evidence.Origin{File: "deploy/model.yaml", Line: 1}, Content: map[string]any{"kind": "ConfigMap"}},
			{ID: web, APIVersion: "apps/v1", Origin: evidence.Origin{File: "deploy/web.yaml", Line: 3}, Content: map[string]any{"spec": map[string]any{
				"replicas": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": reference}}}}}}},
		}},
		Experiments: []evidence.Experiment{{Name: "ns/e", Origin: evidence.Origin{File: "deploy/e.yaml", Line: 1}, Change: "one thing", Fixed: []string{"image", "model"},
			Metrics: []string{"diff", "apply", "rollout", "artifact digest"}, Repeats: 3}},
		Images:      []evidence.Image{{Reference: reference, Index: hash("1"), Manifest: hash("2"), Config: hash("3"), After: hash("1"), Platform: "linux/amd64"}},
		ImagesAsked: true, Clusters: []evidence.Cluster{{Name: "rbc-1"}}, Stages: []evidence.Stage{}, NotCovered: NotCovered(),
		Found: []evidence.Finding{{Code: "image-unpinned", Severity: evidence.Warn, Object: reference, Message: "a tag can move"}},
	}
	for n := 1; n <= 3; n++ {
		run.Repeats = append(run.Repeats, soundRepeat(n))
	}
	run.Repeats[2].Cleaning = &evidence.Cleaning{Skipped: "this was the last repeat"}
	return run
}

func soundRepeat(number int) evidence.Repeat {
	return evidence.Repeat{
		Number: number, Cluster: "rbc-1", Namespaces: []string{"ns"}, Ended: true,
		Applied: []evidence.Applied{{Object: model}, {Object: web}},
		Settled: &evidence.Settled{Ready: true, Window: 10, Seconds: 2, Pods: 1, Expected: true},
		Pods:    []evidence.Pod{{Pod: pod, Workload: web, Node: "n"}},
		Containers: []evidence.Container{{Pod: pod, Workload: web, Name: "c", Node: "n", Reference: reference, ImageID: "reg.example/app@" + hash("1"), Digest: hash("1"),
			Ready: true, State: "Running"}},
		Artifacts:  []evidence.Artifact{{Role: "image", Name: reference, Git: hash("2"), Live: hash("2")}, {Role: "model", Name: model.String(), Git: hash("4"), Live: hash("4")}},
		Comparison: &evidence.Comparison{Compared: 2, Listed: 60, Differences: []evidence.Difference{}},
		Cleaning:   &evidence.Cleaning{Listed: 60},
		Metrics: []evidence.Metric{{Name: "diff", Unit: "differences", Observed: true}, {Name: "apply", Unit: "s", Value: 0.5, Observed: true},
			{Name: "rollout", Unit: "s", Value: 2, Observed: true}, {Name: "artifact digest", Unit: "sha256", Text: hash("5"), Observed: true}},
		Seconds: map[string]float64{"apply": 0.5, "rollout": 2},
	}
}

// lines are "severity code object field repeat", without the warning that the sound run has.
func lines(findings []evidence.Finding) []string {
	var list []string
	for _, f := range findings {
		if f.Code != "image-unpinned" {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Severity, f.Code, f.Object, f.Field)))
		}
	}
	return list
}
