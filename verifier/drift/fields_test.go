package drift

import (
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const webGit = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: "r/app:1", args: [one, two], env: [{name: A, value: "1"}, {name: B, value: "2"}], ports: [{containerPort: 80}]}
      - {name: side, image: "r/side:1"}
`

const webServer = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, labels: {app: web}, generation: 1}
spec:
  replicas: 1
  revisionHistoryLimit: 10
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: "r/app:1", args: [one, two], env: [{name: A, value: "1"}, {name: B, value: "2"}], ports: [{containerPort: 80, protocol: TCP}], imagePullPolicy: IfNotPresent}
      - {name: side, image: "r/side:1", imagePullPolicy: IfNotPresent}
      restartPolicy: Always
status: {replicas: 1}
`

const webOurs = `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{
"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},
"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},
"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`

func web() *kept {
	k := keep(webGit, webServer, webOurs)
	k.live["status"] = map[string]any{"replicas": int64(1), "readyReplicas": int64(1)}
	k.own(written("kube-controller-manager", "Update", "status",
		`{"f:metadata":{"f:annotations":{".":{},"f:deployment.kubernetes.io/revision":{}}},"f:status":{"f:replicas":{},"f:readyReplicas":{}}}`, 1))
	put(map[string]any{"deployment.kubernetes.io/revision": "1"}, steps("metadata", "annotations"), k.live, k.again)
	return k
}

const appPath = "spec.template.spec.containers[name=app]"

func inApp(more ...any) []any {
	return append(steps("spec", "template", "spec", "containers", 0), more...)
}

// fieldsOfApp is a field set inside container app.
func fieldsOfApp(fields string) string {
	return `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{` + fields + `}}}}}}`
}

func TestFields(t *testing.T) {
	revision := []string{"deployment-revision 1"}
	cases := []struct {
		name   string
		change func(*kept)
		want   []string
		rules  []string
	}{
		{"as Git has it", func(*kept) {}, nil, revision},
		{"image by kubectl patch", func(k *kept) {
			put("r/app:2", inApp("image"), k.live)
			k.lose(strings.Replace(webOurs, `"f:image":{},`, "", 1))
			k.own(written("kubectl-patch", "Update", "", fieldsOfApp(`"f:image":{}`), 5))
		}, []string{"declared changed " + appPath + ".image: r/app:1 -> r/app:2 (kubectl-patch, 05)"}, revision},
		{"env var of another manager", func(k *kept) {
			for _, c := range []map[string]any{k.live, k.again} {
				put(append(at(c, inApp("env")...).([]any), map[string]any{"name": "C", "value": "3"}), inApp("env"), c)
			}
			k.own(written("injector", "Apply", "", fieldsOfApp(`"f:env":{"k:{\"name\":\"C\"}":{".":{},"f:name":{},"f:value":{}}}`), 5))
		}, []string{`foreign added ` + appPath + `.env[name=C]:  -> {"name":"C","value":"3"} (injector, 05)`}, revision},
		{"label", func(k *kept) {
			put("blue", steps("metadata", "labels", "team"), k.live, k.again)
			k.own(written("kubectl-label", "Update", "", `{"f:metadata":{"f:labels":{"f:team":{}}}}`, 5))
		}, []string{"foreign added metadata.labels.team:  -> blue (kubectl-label, 05)"}, revision},
		{"another annotation by the Deployment controller", func(k *kept) {
			put("x", steps("metadata", "annotations", "example.com/x"), k.live, k.again)
			k.own(written("kube-controller-manager", "Update", "", `{"f:metadata":{"f:annotations":{"f:example.com/x":{}}}}`, 5))
		}, []string{`foreign added metadata.annotations["example.com/x"]:  -> x (kube-controller-manager, 05)`}, revision},
		{"another annotation beside the revision, through status, and nothing to compare with", func(k *kept) {
			put("x", steps("metadata", "annotations", "example.com/x"), k.live, k.again)
			k.own(written("kube-controller-manager", "Update", "status", `{"f:metadata":{"f:annotations":{".":{},"f:example.com/x":{}}},"f:status":{"f:x":{}}}`, 5))
			k.fresh = nil
		}, []string{`foreign added metadata.annotations["example.com/x"]:  -> x (kube-controller-manager, 05)`}, []string{"deployment-revision 1", "defaults-not-asked 1"}},
		{"the revision by somebody else", func(k *kept) {
			k.live["metadata"].(map[string]any)["managedFields"].([]any)[1].(map[string]any)["manager"] = "somebody"
		}, []string{`foreign added metadata.annotations["deployment.kubernetes.io/revision"]:  -> 1 (somebody, 01)`}, nil},
		{"a field is gone", func(k *kept) { put(nil, inApp("args"), k.live) }, []string{`declared removed ` + appPath + `.args: ["one","two"] -> `}, revision},
		{"an env var is gone", func(k *kept) { put(at(k.live, inApp("env")...).([]any)[:1], inApp("env"), k.live) },
			[]string{`declared removed ` + appPath + `.env[name=B]: {"name":"B","value":"2"} -> `}, revision},
		{"our own name, by an update", func(k *kept) {
			put("x", steps("metadata", "labels", "sly"), k.live, k.again)
			k.own(written("rebuild-check", "Update", "", `{"f:metadata":{"f:labels":{"f:sly":{}}}}`, 5))
		}, []string{"foreign added metadata.labels.sly:  -> x (rebuild-check, 05)"}, revision},
		{"our own name, through a subresource", func(k *kept) {
			put("x", steps("metadata", "labels", "sly"), k.live, k.again)
			k.own(written("rebuild-check", "Apply", "scale", `{"f:metadata":{"f:labels":{"f:sly":{}}}}`, 5))
		}, []string{"foreign added metadata.labels.sly:  -> x (rebuild-check, 05)"}, revision},
		{"arguments in another order", func(k *kept) { put([]any{"two", "one"}, inApp("args"), k.live) },
			[]string{"declared changed " + appPath + ".args[0]: one -> two", "declared changed " + appPath + ".args[1]: two -> one"}, revision},
		{"env vars in another order", func(k *kept) {
			env := at(k.live, inApp("env")...).([]any)
			put([]any{env[1], env[0]}, inApp("env"), k.live)
		}, []string{`declared changed ` + appPath + `.env: ["[name=\"A\"]","[name=\"B\"]"] -> ["[name=\"B\"]","[name=\"A\"]"]`}, revision},
		{"containers in another order", func(k *kept) {
			list := at(k.live, "spec", "template", "spec", "containers").([]any)
			put([]any{list[1], list[0]}, steps("spec", "template", "spec", "containers"), k.live)
		}, []string{`declared changed spec.template.spec.containers: ["[name=\"app\"]","[name=\"side\"]"] -> ["[name=\"side\"]","[name=\"app\"]"]`}, revision},
		{"a finalizer of another in a set list", func(k *kept) {
			put([]any{"example.com/x"}, steps("metadata", "finalizers"), k.live, k.again)
			k.own(written("operator", "Update", "", `{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}}}}`, 5))
		}, []string{`foreign added metadata.finalizers:  -> ["example.com/x"] (operator, 05)`}, revision},
		{"replicas that nobody owns", func(k *kept) { put(int64(5), steps("spec", "replicas"), k.live, k.again) }, []string{"foreign undeclared spec.replicas: 1 -> 5"}, revision},
		{"a default that was changed", func(k *kept) {
			put("Recreate", steps("spec", "strategy", "type"), k.live, k.again)
			put(nil, steps("spec", "strategy", "rollingUpdate"), k.live, k.again)
		}, []string{"foreign undeclared spec.strategy.rollingUpdate.maxSurge: 25% -> ", "foreign undeclared spec.strategy.rollingUpdate.maxUnavailable: 25% -> ", "foreign undeclared spec.strategy.type: RollingUpdate -> Recreate"}, revision},
		{"a default that was changed, and nothing to compare with", func(k *kept) {
			put(int64(5), steps("spec", "replicas"), k.live, k.again)
			k.fresh = nil
		}, nil, []string{"deployment-revision 1", "defaults-not-asked 1"}},
		{"status and bookkeeping", func(k *kept) {
			put(int64(0), steps("status", "replicas"), k.live)
			put("999", steps("metadata", "resourceVersion"), k.live)
			put(int64(4), steps("metadata", "generation"), k.live)
		}, nil, revision},
		{"an empty map more", func(k *kept) { put(map[string]any{}, steps("spec", "template", "spec", "securityContext"), k.live) }, nil, revision},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := web()
			c.change(k)
			got := Compare(input(k))
			expect(t, got, c.want, c.rules)
			if got.Compared != 1 || got.Listed != 60 || len(got.Unread) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestOriginOfADifference(t *testing.T) {
	k := web()
	k.object.Lines = map[string]int{"spec.template.spec.containers": 12}
	put("r/app:2", inApp("image"), k.live)
	if d := Compare(input(k)).Differences; len(d) != 1 || d[0].Origin.String() != "git.yaml:12" || d[0].Object != k.object.ID {
		t.Errorf("%+v", d)
	}
}

func TestEntryThatCannotBeDecoded(t *testing.T) {
	for name, fields := range map[string]any{"no field set": map[string]any{"f:spec": "x"}, "a step that is none": map[string]any{"what": map[string]any{}}, "text": "x"} {
		for _, who := range []string{"stranger", "rebuild-check"} {
			t.Run(name+" of "+who, func(t *testing.T) {
				k := web()
				put("x", steps("metadata", "labels", "sly"), k.live, k.again)
				k.own(written("kubectl-label", "Update", "", `{"f:metadata":{"f:labels":{"f:sly":{}}}}`, 5))
				entry := written(who, "Apply", "", "{}", 6)
				entry.(map[string]any)["fieldsV1"] = fields
				k.own(entry)
				got := told(Compare(input(k)))
				if len(got) != 2 || !strings.HasPrefix(got[0], "foreign added metadata.labels.sly") || !strings.HasPrefix(got[1], "foreign added metadata.managedFields") || !strings.HasSuffix(got[1], "("+who+", 06)") {
					t.Errorf("%q", got)
				}
			})
		}
	}
}

// TestNotRead: what was not read is not compared.
func TestNotRead(t *testing.T) {
	cases := []struct {
		name             string
		live             evidence.Live
		compared, unread int
		want             []string
	}{
		{"read", evidence.Live{Content: web().live, Again: web().again, Fresh: web().fresh}, 1, 0, nil},
		{"failed", evidence.Live{Error: "forbidden"}, 0, 1, nil},
		{"missing", evidence.Live{Missing: true}, 0, 0, []string{"object missing Deployment/ns/web"}},
		{"no content, and no reason", evidence.Live{}, 0, 1, nil},
		{"applying once more was not asked", evidence.Live{Content: web().live, Fresh: web().fresh}, 0, 1, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := input(web())
			in.Live[0] = c.live
			got := Compare(in)
			if got.Compared != c.compared || len(got.Unread) != c.unread || strings.Join(told(got), ",") != strings.Join(c.want, ",") {
				t.Errorf("%+v", got)
			}
		})
	}
	in := input(web())
	in.Now.Unread = []string{"secrets: forbidden"}
	if got := Compare(in); len(got.Unread) != 1 {
		t.Errorf("a kind that was not listed is not told: %+v", got)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	const plain, encoded = "hunter2", "aHVudGVyMg=="
	k := keep(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque, data: {a: Z2l0}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque, data: {a: Z2l0}}`, `{"f:data":{"f:a":{}},"f:type":{}}`)
	put(encoded, steps("data", "a"), k.live)
	put(encoded, steps("data", "b"), k.live, k.again)
	put(map[string]any{"last": `{"stringData":{"a":"` + plain + `"}}`}, steps("metadata", "annotations"), k.live, k.again)
	put("team", steps("metadata", "labels"), k.live, k.again)
	put(true, steps("immutable"), k.live, k.again)
	k.own(written("thief", "Update", "", `{"f:data":{"f:a":{},"f:b":{}},"f:immutable":{},"f:metadata":{"f:annotations":{".":{},"f:last":{}}}}`, 5))
	got := Compare(input(k))
	all := strings.Join(told(got), "\n")
	if strings.Contains(all, plain) || strings.Contains(all, encoded) || strings.Contains(all, "Z2l0") {
		t.Errorf("a secret is shown:\n%s", all)
	}
	for _, want := range []string{"declared changed data.a: masked -> masked (thief", "foreign added data.b:  -> masked", "foreign added metadata.annotations.last:  -> masked", "foreign added immutable:  -> true"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in:\n%s", want, all)
		}
	}
}
