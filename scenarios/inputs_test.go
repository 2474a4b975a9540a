//go:build e2e

package scenarios

import (
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// token makes the server of day27 need a Secret that the repository lacks.
var token = []string{"        ports:\n        - name: http\n", `        - name: TOKEN
          valueFrom:
            secretKeyRef:
              name: model-registry
              key: token
        ports:
        - name: http
`}

func TestDeclaredInputIsStubbed(t *testing.T) {
	feature(t, "a Secret from outside is declared, with a stub", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", map[string][]string{"deploy/api.yaml": token, "rebuild-check.yaml": {`apiVersion: rebuild-check.dev/v1alpha1
kind: RebuildCheck
inputs:
- kind: Secret
  name: model-registry
  reason: the registry of models issues it
  stub: {token: no-token}
`}})
		live := ""
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}, on: at("repeat 2: compare", func(cluster string) {
			live = docker(t, "exec", cluster+"-control-plane", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "-n", "ai-lab", "get", "secret", "model-registry", "-o", "yaml")
		})})
		wantFile(t, "day27-rebuild", r)
		if len(r.run.Stubs) != 1 || r.run.Stubs[0].Object.String() != "Secret/ai-lab/model-registry" || r.run.Stubs[0].Explain {
			t.Errorf("stubs: %+v", r.run.Stubs)
		}
		if !strings.Contains(live, `rebuild-check.dev/stub: "true"`) || !strings.Contains(live, "the registry of models issues it") {
			t.Errorf("the stub is not marked: %s", live)
		}
		if !strings.Contains(r.stdout, "stub Secret/ai-lab/model-registry: the registry of models issues it") || !strings.Contains(r.stdout, "what the real Secret/ai-lab/model-registry holds") {
			t.Error("the report does not tell of the stub")
		}
		for _, repeat := range r.run.Repeats {
			if !slices.ContainsFunc(repeat.Comparison.Rules, func(rule evidence.Rule) bool { return rule.Name == "stub-of-the-run" && rule.Count == 1 }) {
				t.Errorf("repeat %d: rules %+v", repeat.Number, repeat.Comparison.Rules)
			}
		}
	})
}

func TestExplainAllFindsTheSecond(t *testing.T) {
	edits := map[string][]string{
		"deploy/experiment.yaml": one,
		"deploy/api.yaml":        append([]string{"value: /models/model.json", "value: /models/no-such.json"}, token...),
	}
	crashed := func(r result) bool {
		return slices.ContainsFunc(r.run.Findings, func(f evidence.Finding) bool { return f.Code == "crash-loop" })
	}
	const missing, field = "Secret/ai-lab/model-registry key token", "spec.template.spec.containers[0].env[1].valueFrom.secretKeyRef.name"
	feature(t, "a missing Secret hides a crash", func(t *testing.T) {
		repo := repository(t, "day27-rebuild", edits)
		r := do(t, job{repo: repo, args: []string{"--rev", "main"}})
		wantFinding(t, r, "missing-secret", missing, field)
		if r.code != 1 || r.cluster != "" || crashed(r) || r.run.Explain {
			t.Errorf("without the flag: exit code %d, cluster %q", r.code, r.cluster)
		}
		r = do(t, job{repo: repo, args: []string{"--rev", "main", "--explain-all"}})
		wantFinding(t, r, "missing-secret", missing, field)
		if r.code != 1 || !crashed(r) || !r.run.Explain || len(r.run.Stubs) != 1 || !r.run.Stubs[0].Explain {
			t.Errorf("with the flag: exit code %d, stubs %+v", r.code, r.run.Stubs)
		}
	})
}
