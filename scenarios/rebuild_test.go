//go:build e2e

package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"rebuild-check.dev/rebuild-check/fixtures/image"
	"rebuild-check.dev/rebuild-check/fixtures/repos"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// feature runs one assessment beside the others.
func feature(t *testing.T, name string, assess func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	testenv.Test(t, features.New(name).Assess(name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		assess(t)
		return ctx
	}).Feature())
}

const once = "  repeats: \"3\"\n"

// one makes the experiment of day27 run once, where what is tested does not depend on repeats.
var one = []string{once, "  repeats: \"1\"\n"}

func TestDay27IsReproduced(t *testing.T) {
	feature(t, "day27 from the repository alone", func(t *testing.T) {
		r := do(t, job{repo: repository(t, "day27-rebuild", nil), args: []string{"--rev", "main"}})
		wantFile(t, "day27-rebuild", r)
		if len(r.run.Repeats) != 3 {
			t.Fatalf("%d repeats, want 3", len(r.run.Repeats))
		}
		for _, repeat := range r.run.Repeats {
			var names []string
			for _, m := range repeat.Metrics {
				names = append(names, m.Name)
			}
			if want := []string{"diff", "apply", "rollout", "artifact digest"}; !slices.Equal(names, want) {
				t.Errorf("repeat %d has the metrics %v, want %v", repeat.Number, names, want)
			}
			roles := map[string]bool{}
			for _, a := range repeat.Artifacts {
				roles[a.Role] = a.Live != "" && a.Live == a.Git
			}
			for _, role := range []string{"image", "model", "input"} {
				if !roles[role] {
					t.Errorf("repeat %d: the %s is not what Git has: %+v", repeat.Number, role, repeat.Artifacts)
				}
			}
			if len(repeat.Containers) != 2 || repeat.Comparison.Compared != 8 || repeat.Comparison.Listed < 40 {
				t.Errorf("repeat %d saw %d containers, %d objects, %d kinds", repeat.Number, len(repeat.Containers), repeat.Comparison.Compared, repeat.Comparison.Listed)
			}
		}
		if !strings.Contains(r.stdout, "從 declarative manifests 在乾淨 namespace 重建服務") {
			t.Error("the experiment's own words are not shown")
		}
		if first, _, _ := strings.Cut(r.stdout, " "); first != "REPRODUCED" {
			t.Errorf("standard output begins with %q", first)
		}
	})
}

func TestPodinfoIsReproduced(t *testing.T) {
	feature(t, "podinfo with its autoscaler", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "podinfo")
		must(t, repos.Podinfo(t.Context(), dir))
		r := do(t, job{repo: dir, args: []string{"--rev", "main", "--path", "kustomize", "-n", "podinfo"}})
		wantFile(t, "podinfo", r)
		// The program and two render children live at one time, and none is larger than the peak.
		if 3*r.peak > 250<<20 {
			t.Errorf("peak memory %d MiB a process: three of them are over 250 MiB", r.peak>>20)
		}
		if r.run.Set.Find(evidence.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "podinfo", Name: "podinfo"}) == nil {
			t.Error("the set has no autoscaler")
		}
		for _, repeat := range r.run.Repeats {
			if len(repeat.Pods) != 2 {
				t.Errorf("repeat %d has %d Pods: the autoscaler's minimum is 2, and Git names no replicas", repeat.Number, len(repeat.Pods))
			}
			if !slices.ContainsFunc(repeat.Comparison.Rules, func(r evidence.Rule) bool { return r.Name == "autoscaler-owns-replicas" }) {
				t.Errorf("repeat %d: no rule explains the replicas: %v", repeat.Number, repeat.Comparison.Rules)
			}
		}
	})
}

func TestMissingModelIsNamed(t *testing.T) {
	feature(t, "the model's ConfigMap is not in Git", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{"deploy/model.yaml": nil, "kustomization.yaml": {"- deploy/model.yaml\n", ""}})
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}})
		if r.code != 1 || r.run.Outcome != evidence.NotReproduced {
			t.Errorf("exit code %d, %s", r.code, r.run.Outcome)
		}
		f := r.run.Findings[0]
		source, err := os.ReadFile(filepath.Join(repo, "deploy/api.yaml"))
		must(t, err)
		line := 1 + strings.Count(string(source[:strings.Index(string(source), "name: iris-model")]), "\n")
		want := evidence.Finding{
			Code: "missing-configmap", Severity: evidence.Fail, Object: "ConfigMap/ai-lab/iris-model", NeededBy: "Deployment/ai-lab/model-api",
			Field: "spec.template.spec.volumes[0].configMap.name", Origin: evidence.Origin{File: "deploy/api.yaml", Line: line}, Message: f.Message, Do: f.Do,
		}
		if f != want {
			t.Errorf("the first finding is\n%+v, want\n%+v", f, want)
		}
		if r.cluster != "" {
			t.Error("a cluster was made, although the set alone tells")
		}
	})
}

func TestEveryRepeatInAClusterOfItsOwn(t *testing.T) {
	feature(t, "two clusters, two nodes", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{"deploy/experiment.yaml": {once, "  repeats: \"2\"\n"}})
		r := do(t, job{repo: repo, args: []string{"--rev", "main", "--isolation", "cluster", "--nodes", "2"}})
		if r.code != 0 || len(r.run.Clusters) != 2 || r.run.Clusters[0].Name == r.run.Clusters[1].Name {
			t.Errorf("exit code %d, clusters %+v", r.code, r.run.Clusters)
		}
		for _, c := range r.run.Clusters {
			if len(c.Nodes) != 2 {
				t.Errorf("%s has the nodes %v", c.Name, c.Nodes)
			}
			if left := docker(t, "ps", "-aq", "--filter", "label=io.x-k8s.kind.cluster="+c.Name); left != "" {
				t.Errorf("containers of %s are left: %s", c.Name, left)
			}
		}
	})
}

// pushAs builds the model server with a label, so that each label gives another digest.
func pushAs(t *testing.T, name, label string) string {
	t.Helper()
	spec, err := image.Modelserver(t.Context())
	must(t, err)
	spec.Labels = map[string]string{"test": label}
	img, err := image.Build(spec)
	must(t, err)
	_, err = image.Push(t.Context(), registry, name, img)
	must(t, err)
	digest, err := img.Digest()
	must(t, err)
	return digest.String()
}

func TestKindsAreReproduced(t *testing.T) {
	feature(t, "one object of each common kind", func(t *testing.T) {
		r := do(t, job{repo: repository(t, "kinds", nil), args: []string{"--rev", "main"}})
		wantFile(t, "kinds", r)
		if len(r.run.Repeats) != 2 || r.run.Repeats[0].Cleaning == nil || r.run.Repeats[0].Cleaning.NewCluster {
			t.Errorf("the first repeat was not cleaned up: %+v", r.run.Repeats)
		}
	})
}
