package drift

import (
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// scaled is the Deployment web with the replicas that Git declares (none when 0) and that are live,
// written through scale by the autoscaler.
func scaled(git, live int64) *kept {
	k := web()
	ours := webOurs
	if git > 0 {
		put(git, steps("spec", "replicas"), k.object.Content, k.again, k.fresh)
		ours = strings.Replace(webOurs, `"f:spec":{`, `"f:spec":{"f:replicas":{},`, 1)
	} else {
		put(live, steps("spec", "replicas"), k.again)
	}
	put(live, steps("spec", "replicas"), k.live)
	if git == live {
		k.lose(ours)
	}
	return k
}

// byScale adds the entry that a write through the scale subresource may leave.
func byScale(k *kept) *kept {
	k.own(written("kube-controller-manager", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`, 5))
	return k
}

// scaler is an autoscaler of Git that targets the object.
func scaler(namespace, apiVersion, kind, name string) *kept {
	text := `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: ` + namespace + `}, spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {apiVersion: ` + apiVersion + `, kind: ` + kind + `, name: ` + name + `}}}`
	return keep(text, text, `{"f:spec":{"f:minReplicas":{},"f:maxReplicas":{},"f:scaleTargetRef":{}}}`)
}

func TestAutoscaler(t *testing.T) {
	mine := scaler("ns", "apps/v1", "Deployment", "web")
	quiet := []string{"autoscaler-owns-replicas 1", "deployment-revision 1"}
	loud := []string{"deployment-revision 1"}
	patched := func(k *kept) *kept {
		k.own(written("kubectl-patch", "Update", "", `{"f:spec":{"f:replicas":{}}}`, 9))
		return k
	}
	cases := []struct {
		name  string
		kept  []*kept
		want  []string
		rules []string
	}{
		{"an autoscaler, Git names no number", []*kept{scaled(0, 2), mine}, nil, quiet},
		{"an autoscaler that leaves its name", []*kept{byScale(scaled(0, 2)), mine}, nil, quiet},
		{"an autoscaler, Git names another number", []*kept{scaled(1, 2), mine}, nil, quiet},
		{"an autoscaler that leaves its name, Git names another number", []*kept{byScale(scaled(1, 2)), mine}, nil, quiet},
		{"an autoscaler, and the number is Git's", []*kept{scaled(2, 2), mine}, nil, loud},
		{"no autoscaler, Git names no number", []*kept{scaled(0, 5)}, []string{"foreign undeclared spec.replicas: 1 -> 5"}, loud},
		{"no autoscaler, by scale, Git names no number", []*kept{byScale(scaled(0, 5))}, []string{"foreign added spec.replicas:  -> 5 (kube-controller-manager, 05)"}, loud},
		{"no autoscaler, Git names another number", []*kept{scaled(2, 5)}, []string{"declared changed spec.replicas: 2 -> 5"}, loud},
		{"autoscaler of another name", []*kept{scaled(0, 2), scaler("ns", "apps/v1", "Deployment", "other")}, []string{"foreign undeclared spec.replicas: 1 -> 2"}, loud},
		{"autoscaler of another kind", []*kept{scaled(1, 2), scaler("ns", "apps/v1", "StatefulSet", "web")}, []string{"declared changed spec.replicas: 1 -> 2"}, loud},
		{"autoscaler of another group", []*kept{scaled(1, 2), scaler("ns", "example.com/v1", "Deployment", "web")}, []string{"declared changed spec.replicas: 1 -> 2"}, loud},
		{"autoscaler of another namespace", []*kept{scaled(1, 2), scaler("other", "apps/v1", "Deployment", "web")}, []string{"declared changed spec.replicas: 1 -> 2"}, loud},
		{"an autoscaler, and somebody patches", []*kept{patched(scaled(1, 4)), mine}, []string{"declared changed spec.replicas: 1 -> 4 (kubectl-patch, 09)"}, loud},
		{"an autoscaler, somebody patches, Git names no number", []*kept{patched(scaled(0, 4)), mine}, []string{"foreign added spec.replicas:  -> 4 (kubectl-patch, 09)"}, loud},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, Compare(input(c.kept...)), c.want, c.rules) })
	}
}

func service(git, live string) *kept {
	text := func(spec string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: ns}, spec: {` + spec + `}}`
	}
	k := keep(text(git), text(live), `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`)
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		put(k.object.Content["spec"].(map[string]any)[field], steps("spec", field), k.fresh)
	}
	return k
}

func TestRules(t *testing.T) {
	const plain, addressed = `ports: [{port: 80}]`, `clusterIP: 10.96.0.9, clusterIPs: [10.96.0.9], ports: [{port: 80, protocol: TCP, nodePort: 30090}], healthCheckNodePort: 32000`
	headless := service(`clusterIP: None, `+plain, `clusterIP: 10.96.0.9, ports: [{port: 80, protocol: TCP}]`)
	put("None", steps("spec", "clusterIP"), headless.again)
	allocated := service(plain, addressed)
	put(nil, steps("spec", "ports", 0, "nodePort"), allocated.fresh)
	named := service(`ports: [{port: 80, nodePort: 30080}]`, addressed)
	put(int64(30080), steps("spec", "ports", 0, "nodePort"), named.again, named.fresh)
	taken := service(plain, addressed)
	taken.own(written("kubectl-patch", "Update", "", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:nodePort":{}}}}}`, 5))

	claim := func(entry any) *kept {
		const text = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns}, spec: {storageClassName: s}}`
		k := keep(text, text, `{"f:spec":{"f:storageClassName":{}}}`)
		put("pvc-1", steps("spec", "volumeName"), k.live, k.again)
		put(map[string]any{"pv.kubernetes.io/bind-completed": "yes", "example.com/x": "y"}, steps("metadata", "annotations"), k.live, k.again)
		k.own(entry)
		return k
	}
	const bound = `{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/bind-completed":{}}},"f:spec":{"f:volumeName":{}}}`
	const more = `{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/bind-completed":{},"f:example.com/x":{}}},"f:spec":{"f:volumeName":{}}}`
	clean := claim(written("kube-controller-manager", "Update", "", bound, 5))
	put(nil, steps("metadata", "annotations", "example.com/x"), clean.live, clean.again)

	role := func(git string) *kept {
		k := keep(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, `+git+`, rules: []}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, `+git+`, rules: []}`, `{"f:rules":{},"f:aggregationRule":{}}`)
		put([]any{map[string]any{"verbs": []any{"get"}}}, steps("rules"), k.live)
		k.own(written("clusterrole-aggregation-controller", "Apply", "", `{"f:rules":{}}`, 5))
		return k
	}

	const podText = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {containers: [{name: c, image: i}]}}`
	bound1 := keep(podText, podText, `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}}`)
	put("node-1", steps("spec", "nodeName"), bound1.live, bound1.again)

	jobText := `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: one}}, template: {metadata: {labels: {job-name: j}}}}}`
	job := keep(`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {template: {}}}`, jobText, `{"f:spec":{"f:template":{}}}`)
	put("two", steps("spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"), job.fresh)
	put("rbc-other", steps("spec", "template", "metadata", "labels", "job-name"), job.fresh)
	strange := keep(`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {template: {}}}`, jobText, `{"f:spec":{"f:template":{}}}`)
	put("x", steps("spec", "template", "metadata", "labels", "team"), strange.live, strange.again)

	token := func(kind, manager string) *kept {
		text := `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: ` + kind + `}`
		k := keep(text, text, `{"f:type":{}}`)
		put(map[string]any{"token": "abc"}, steps("data"), k.live, k.again)
		k.own(written(manager, "Update", "", `{"f:data":{".":{},"f:token":{}}}`, 5))
		return k
	}

	cases := []struct {
		name  string
		kept  *kept
		want  []string
		rules []string
	}{
		{"Service addresses that Git leaves open", allocated, nil, []string{"service-addresses 4"}},
		{"headless in Git, and live has an address", headless, []string{"declared changed spec.clusterIP: None -> 10.96.0.9"}, nil},
		{"node port of Git, and live has another", named, []string{"declared changed spec.ports[port=80,protocol=TCP].nodePort: 30080 -> 30090"}, []string{"service-addresses 3"}},
		{"node port that somebody set", taken, []string{"foreign added spec.ports[port=80,protocol=TCP].nodePort:  -> 30090 (kubectl-patch, 05)"}, []string{"service-addresses 3"}},
		{"claim bound", clean, nil, []string{"volume-binding 2"}},
		{"claim bound, and an annotation more", claim(written("kube-controller-manager", "Update", "", more, 5)),
			[]string{`foreign added metadata.annotations["example.com/x"]:  -> y (kube-controller-manager, 05)`}, []string{"volume-binding 2"}},
		{"claim bound by somebody", claim(written("kubectl", "Update", "", bound, 5)), []string{
			`foreign undeclared metadata.annotations["example.com/x"]:  -> y`, `foreign added metadata.annotations["pv.kubernetes.io/bind-completed"]:  -> yes (kubectl, 05)`,
			"foreign added spec.volumeName:  -> pvc-1 (kubectl, 05)"}, nil},
		{"rules of an aggregated role", role("aggregationRule: {clusterRoleSelectors: []}"), nil, []string{"aggregated-rules 1"}},
		{"rules of a role", role("x: y"), []string{`declared changed rules: [] -> [{"verbs":["get"]}] (clusterrole-aggregation-controller, 05)`}, nil},
		{"node of a bare Pod", bound1, nil, []string{"pod-binding 1"}},
		{"identity of a Job", job, nil, []string{"job-identity 2"}},
		{"label in a Job's template", strange, []string{"foreign undeclared spec.template.metadata.labels.team:  -> x"}, nil},
		{"token of a ServiceAccount", token("kubernetes.io/service-account-token", "kube-controller-manager"), nil, []string{"token-secret 1"}},
		{"token in an ordinary Secret", token("Opaque", "kube-controller-manager"), []string{"foreign added data:  -> masked (kube-controller-manager, 05)"}, nil},
		{"token by somebody", token("kubernetes.io/service-account-token", "kubectl"), []string{"foreign added data:  -> masked (kubectl, 05)"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, Compare(input(c.kept)), c.want, c.rules) })
	}
}

// TestRulesHaveReasons: what is let through is let through for a reason that can be read.
func TestRulesHaveReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(append([]rule{freshRule}, fieldRules...), objectRules...) {
		if r.Name == "" || r.Reason == "" || seen[r.Name] {
			t.Errorf("%+v", evidence.Rule{Name: r.Name, Reason: r.Reason})
		}
		seen[r.Name] = true
	}
}
