package experiment

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// object decodes YAML as the API server's answers are decoded: whole numbers are int64.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// setOf is a set of the contents.
func setOf(contents ...map[string]any) *evidence.Set {
	set := &evidence.Set{}
	for _, c := range contents {
		set.Objects = append(set.Objects, evidence.Object{ID: evidence.IDOf(c), Content: c})
	}
	return set
}

const (
	ready    = "ready"
	notReady = "not ready"
	running  = "state: {running: {}}"
)

// podText is a Pod with one container. what is ready, not ready, or the reason for which the
// container waits.
func podText(name, what string, restarts int) string {
	status, state := "False", running
	switch what {
	case ready:
		status = "True"
	case notReady:
	default:
		state = fmt.Sprintf("state: {waiting: {reason: %s, message: told by %s}}", what, what)
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: ns}
spec: {containers: [{name: c, image: reg.example/app:1}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "%s"}]
  containerStatuses: [{name: c, restartCount: %d, ready: %t, %s}]
`, name, status, restarts, what == ready, state)
}

func pod(t testing.TB, name, what string, restarts int) map[string]any {
	return object(t, podText(name, what, restarts))
}

// owned gives the Pod an owner and, unless it is empty, some more of its YAML.
func owned(text, apiVersion, kind, name string) string {
	return strings.Replace(text, "namespace: ns", fmt.Sprintf("namespace: ns, ownerReferences: [{apiVersion: %s, kind: %s, name: %s}]", apiVersion, kind, name), 1)
}

func seen(content map[string]any) evidence.Change { return evidence.Change{Content: content} }
func gone(content map[string]any) evidence.Change {
	return evidence.Change{Content: content, Gone: true}
}

// deployment is one with that many replicas available of those that are wanted.
func deployment(t testing.TB, wanted, available int) map[string]any {
	return object(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, generation: 1}
spec: {replicas: %d}
status:
  observedGeneration: 1
  replicas: %[1]d
  updatedReplicas: %[1]d
  readyReplicas: %[2]d
  availableReplicas: %[2]d
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]
`, wanted, available))
}
