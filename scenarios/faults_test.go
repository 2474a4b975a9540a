//go:build e2e

package scenarios

import (
	"os"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// at calls then once, when a progress line holds the text.
func at(text string, then func(cluster string)) func(string, string, *os.Process) {
	done := false
	return func(line, cluster string, _ *os.Process) {
		if !done && strings.Contains(line, text) {
			done = true
			then(cluster)
		}
	}
}

func TestHandEditsAreFound(t *testing.T) {
	feature(t, "a second client edits between apply and compare", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{"deploy/experiment.yaml": one})
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}, on: at("repeat 1: apply:", func(cluster string) {
			kc := func(args ...string) { kubectl(t, cluster, append([]string{"-n", "ai-lab"}, args...)...) }
			kc("patch", "deployment", "model-api", "--type=strategic", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"server","env":[{"name":"LOAD_DELAY","value":"10ms"}]}]}}}}`)
			kc("patch", "service", "model-api", "--type=json", "-p", `[{"op":"replace","path":"/spec/ports/0/targetPort","value":8080}]`)
			kc("label", "poddisruptionbudget", "model-api", "by=hand")
			kc("scale", "deployment", "model-api", "--replicas=3")
			kc("create", "configmap", "by-hand", "--from-literal=a=b")
			kc("create", "secret", "generic", "hand-made", "--from-literal=token=never-shown-anywhere")
			kc("patch", "configmap", "iris-requests", "--type=merge", "-p", `{"data":{"requests.jsonl":"{}"}}`)
		})})
		if r.code != 1 || r.run.Outcome != evidence.NotReproduced {
			t.Errorf("exit code %d, %s", r.code, r.run.Outcome)
		}
		want := map[string]evidence.Finding{}
		for _, f := range []evidence.Finding{
			{Code: "drift-foreign-field", Object: "Deployment/ai-lab/model-api", Field: "spec.template.spec.containers[name=server].env[name=LOAD_DELAY]", Got: `{"name":"LOAD_DELAY","value":"10ms"}`, Message: "kubectl-patch"},
			{Code: "drift-changed", Object: "Deployment/ai-lab/model-api", Field: "spec.replicas", Want: "2", Got: "3"},
			{Code: "drift-changed", Object: "Service/ai-lab/model-api", Field: "spec.ports[port=80,protocol=TCP].targetPort", Want: "http", Got: "8080", Message: "kubectl-patch"},
			{Code: "drift-foreign-field", Object: "PodDisruptionBudget.policy/ai-lab/model-api", Field: "metadata.labels.by", Got: "hand", Message: "kubectl-label"},
			{Code: "object-extra", Object: "ConfigMap/ai-lab/by-hand"},
			{Code: "object-extra", Object: "Secret/ai-lab/hand-made"},
			{Code: "fixed-moved", Object: "ConfigMap/ai-lab/iris-requests", Field: "input"},
		} {
			want[f.Code+" "+f.Object+" "+f.Field] = f
		}
		changed := 0
		for _, f := range r.run.Findings {
			if f.Severity != evidence.Fail {
				continue
			}
			if f.Code == "drift-changed" && f.Object == "ConfigMap/ai-lab/iris-requests" {
				changed++
				continue
			}
			w, ok := want[f.Code+" "+f.Object+" "+f.Field]
			if !ok {
				t.Errorf("nobody made this: %+v", f)
				continue
			}
			delete(want, f.Code+" "+f.Object+" "+f.Field)
			if w.Got != "" && f.Got != w.Got || w.Want != "" && f.Want != w.Want || !strings.Contains(f.Message, w.Message) {
				t.Errorf("found %+v, want %+v", f, w)
			}
		}
		for _, w := range want {
			t.Errorf("not found: %+v", w)
		}
		if changed != 1 {
			t.Errorf("the changed request set is told %d times, want once", changed)
		}
		if strings.Contains(r.stdout+r.stderr+plain(t, r.run), "never-shown-anywhere") {
			t.Error("a secret is shown")
		}
	})
}

func TestMovedTagIsFound(t *testing.T) {
	feature(t, "the tag moves between resolve and pull", func(t *testing.T) {
		const name = "rebuild-check/moving:1.0.0"
		before := pushAs(t, name, "before")
		after := ""
		repo := repository(t, "day27-rebuild", map[string][]string{
			"deploy/experiment.yaml": one, "deploy/api.yaml": {"rebuild-check/modelserver:1.0.0", name},
		})
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}, on: at("images: 1 of 1 resolved", func(string) { after = pushAs(t, name, "after") })})
		if r.code != 1 || after == "" || after == before {
			t.Errorf("exit code %d, before %s, after %s", r.code, before, after)
		}
		running := 0
		for _, f := range r.run.Findings {
			if f.Code == "image-tag-moved" && f.Want == before && f.Got == after {
				running++
			}
		}
		if running < 2 { // one a Pod, beside the one of the registry
			t.Errorf("%d findings name both digests: %+v", running, r.run.Findings)
		}
	})
}

func TestCrashIsExplained(t *testing.T) {
	feature(t, "a Pod that never settles", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{
			"deploy/experiment.yaml": one, "deploy/api.yaml": {"value: /models/model.json", "value: /models/no-such.json"},
		})
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}})
		if r.code != 1 {
			t.Errorf("exit code %d", r.code)
		}
		f := wantFinding(t, r, "crash-loop", "Deployment/ai-lab/model-api", "containers[server]")
		if !strings.Contains(f.Message, "no-such.json") {
			t.Errorf("the container's last words are not told: %s", f.Message)
		}
		if f.Origin.File != "deploy/api.yaml" {
			t.Errorf("at %s", f.Origin)
		}
	})
}

func TestRefusedObjectIsNamed(t *testing.T) {
	feature(t, "an object that the API server refuses", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{"deploy/api.yaml": {"  replicas: 2\n", "  replica: 2\n"}})
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}})
		if r.code != 1 || len(r.run.Repeats) != 1 {
			t.Errorf("exit code %d, %d repeats", r.code, len(r.run.Repeats))
		}
		f := wantFinding(t, r, "apply-rejected", "Deployment/ai-lab/model-api", "")
		if !strings.Contains(f.Message, "replica") || f.Origin.File != "deploy/api.yaml" {
			t.Errorf("told: %+v", f)
		}
	})
}
