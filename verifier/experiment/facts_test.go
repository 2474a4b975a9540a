package experiment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// hash is a digest of one repeated hexadecimal digit.
func hash(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// after is an Observer that has seen these objects.
func after(set *evidence.Set, contents ...map[string]any) *Observer {
	o := Observe(set, queue(), short)
	for _, c := range contents {
		o.see(seen(c))
	}
	return o
}

func TestContainers(t *testing.T) {
	p := object(t, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  nodeName: node-1
  initContainers: [{name: first, image: r/first:1}]
  containers: [{name: main, image: r/main:1}, {name: waits, image: r/waits:1}]
  ephemeralContainers: [{name: debug, image: r/debug:1}]
status:
  phase: Running
  initContainerStatuses: [{name: first, ready: true, imageID: "`+hash("1")+`", state: {terminated: {reason: Completed, exitCode: 0}}}]
  containerStatuses:
  - {name: main, ready: true, restartCount: 2, imageID: "r/main@`+hash("2")+`", state: {running: {}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137}}}
  - {name: waits, ready: false, imageID: "", state: {waiting: {reason: ImagePullBackOff, message: back-off}}}
  ephemeralContainerStatuses: [{name: debug, ready: false, imageID: "docker-pullable://r/debug@`+hash("3")+`", state: {running: {}}}]
`)
	id := evidence.IDOf(p)
	want := []evidence.Container{
		{Name: "first", Reference: "r/first:1", ImageID: hash("1"), Digest: hash("1"), Ready: true, State: "Completed", Why: "Completed, exit code 0"},
		{Name: "main", Reference: "r/main:1", ImageID: "r/main@" + hash("2"), Digest: hash("2"), Ready: true, Restarts: 2, State: "Running", Why: "OOMKilled, exit code 137"},
		{Name: "waits", Reference: "r/waits:1", State: "ImagePullBackOff", Why: "back-off"},
		{Name: "debug", Reference: "r/debug:1", ImageID: "docker-pullable://r/debug@" + hash("3"), Digest: hash("3"), State: "Running"},
	}
	for i := range want {
		want[i].Pod, want[i].Workload, want[i].Node = id, id, "node-1"
	}
	o := after(setOf(p), p)
	if d := cmp.Diff(want, o.Containers()); d != "" {
		t.Error(d)
	}
	o.see(gone(p))
	if got := o.Containers(); len(got) != 0 {
		t.Errorf("a Pod that is gone has containers: %+v", got)
	}
}

func TestWorkload(t *testing.T) {
	declared := func(apiVersion, kind, name string) map[string]any {
		return object(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: ns}}", apiVersion, kind, name))
	}
	set := setOf(declared("apps/v1", "Deployment", "web-api"), declared("apps/v1", "StatefulSet", "db"), declared("batch/v1", "CronJob", "nightly"),
		declared("batch/v1", "Job", "once"), declared("v1", "Pod", "alone"), declared("apps/v1", "ReplicaSet", "own-1"), declared("apps/v1", "Deployment", "own"))
	cases := []struct{ name, pod, apiVersion, kind, owner, want string }{
		{"by a ReplicaSet", "web-api-5d-x", "apps/v1", "ReplicaSet", "web-api-5d", "Deployment/ns/web-api"},
		{"by a ReplicaSet of Git", "own-1-x", "apps/v1", "ReplicaSet", "own-1", "ReplicaSet/ns/own-1"},
		{"by a StatefulSet", "db-0", "apps/v1", "StatefulSet", "db", "StatefulSet/ns/db"},
		{"by a Job", "once-x", "batch/v1", "Job", "once", "Job.batch/ns/once"},
		{"by the Job of a CronJob", "nightly-29-x", "batch/v1", "Job", "nightly-29", "CronJob.batch/ns/nightly"},
		{"itself", "alone", "", "", "", "Pod/ns/alone"},
		{"by nothing of Git", "x-1-y", "apps/v1", "ReplicaSet", "x-1", "ReplicaSet/ns/x-1"},
		{"by a look-alike of another group", "web-api-5d-x", "example.com/v1", "ReplicaSet", "web-api-5d", "ReplicaSet.example.com/ns/web-api-5d"},
		{"by nothing at all", "stray", "", "", "", "Pod/ns/stray"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := podText(c.pod, ready, 0)
			if c.kind != "" {
				text = owned(text, c.apiVersion, c.kind, c.owner)
			}
			o := after(set, object(t, text))
			if got := o.Pods(); len(got) != 1 || got[0].Workload.String() != c.want || o.Containers()[0].Workload != got[0].Workload {
				t.Errorf("want %s, got %+v", c.want, got)
			}
		})
	}
}

func TestArtifactsOfConfigMaps(t *testing.T) {
	conf := func(name, role, value string) map[string]any {
		labels := ""
		if role != "" {
			labels = ", labels: {" + RoleLabel + ": " + role + "}"
		}
		return object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: ns"+labels+"}, data: {file: "+value+"}}")
	}
	live := func(contents ...map[string]any) (list []evidence.Live) {
		for _, c := range contents {
			list = append(list, evidence.Live{Content: c})
		}
		return list
	}
	mounting := object(t, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  volumes:
  - {name: a, configMap: {name: model}}
  - {name: b, projected: {sources: [{configMap: {name: extra}}, {secret: {name: s}}]}}
status: {phase: Succeeded}
`)
	model, extra, input := conf("model", "", "one"), conf("extra", "", "two"), conf("input", "input", "three")
	labelled := conf("model", "model", "one")
	cases := []struct {
		name string
		set  *evidence.Set
		live []evidence.Live
		want string // role name same|differs|unread, mounted by
	}{
		{"labelled", setOf(labelled, extra, input), live(labelled, extra, input), "model model same p, input input same "},
		{"no label: what is mounted is a model", setOf(model, extra), live(model, extra), "model model same p, model extra same p"},
		{"not mounted and not labelled", setOf(conf("idle", "", "x")), live(conf("idle", "", "x")), ""},
		{"input is labelled alone", setOf(model, input), live(model, input), "input input same , model model same p"},
		{"changed live", setOf(labelled), live(conf("model", "model", "other")), "model model differs p"},
		{"a label more live is the same content", setOf(labelled), live(conf("model", "input", "one")), "model model same p"},
		{"unread", setOf(labelled), live(nil), "model model unread p"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var told []string
			for _, a := range after(c.set, mounting).Artifacts(c.live, nil, nil) {
				state := "differs"
				switch a.Live {
				case a.Git:
					state = "same"
				case "":
					state = "unread"
				}
				name := a.Name[strings.LastIndexByte(a.Name, '/')+1:]
				told = append(told, fmt.Sprintf("%s %s %s %s", a.Role, name, state, strings.Join(a.MountedBy, "+")))
			}
			if got := strings.Join(told, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestContentDigest(t *testing.T) {
	same := []string{`{data: {a: x, b: z}}`, `{data: {b: z, a: x}}`, `{data: {a: x}, binaryData: {b: eg==}}`, `{data: {a: x, b: z}, immutable: true}`}
	others := []string{`{data: {a: xb, z: ""}}`, `{data: {a: x}}`, `{data: {b: x, a: z}}`, `{}`, `{data: {a: x, b: eg==}}`}
	want := contentDigest(object(t, same[0]))
	for _, text := range same {
		if contentDigest(object(t, text)) != want {
			t.Errorf("%s has another digest", text)
		}
	}
	for _, text := range others {
		if contentDigest(object(t, text)) == want {
			t.Errorf("%s has the same digest", text)
		}
	}
}

func TestArtifactsOfImages(t *testing.T) {
	lock := evidence.Image{Reference: "r/app:1", Index: hash("1"), Manifest: hash("2"), Config: hash("3")}
	single := evidence.Image{Reference: "r/app:1", Manifest: hash("2"), Config: hash("3")}
	cases := []struct {
		name    string
		image   evidence.Image
		digests []string
		want    []string // Git, Live
	}{
		{"index shown as manifest", lock, []string{hash("1")}, []string{hash("2"), hash("2")}},
		{"manifest", lock, []string{hash("2")}, []string{hash("2"), hash("2")}},
		{"config shown as manifest", lock, []string{hash("3")}, []string{hash("2"), hash("2")}},
		{"the same bits in three spellings are one", lock, []string{hash("1"), hash("2"), hash("3")}, []string{hash("2"), hash("2")}},
		{"other bits", lock, []string{hash("9")}, []string{hash("2"), hash("9")}},
		{"two nodes, two bits", lock, []string{hash("1"), hash("9")}, []string{hash("2"), hash("2"), hash("2"), hash("9")}},
		{"no digest where there is no index", single, []string{""}, []string{hash("2"), ""}},
		{"unknown reference", evidence.Image{Reference: "r/other:1"}, []string{hash("9")}, []string{"", hash("9")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var containers []evidence.Container
			for _, d := range c.digests {
				containers = append(containers, evidence.Container{Reference: "r/app:1", Digest: d})
			}
			var got []string
			for _, a := range after(setOf()).Artifacts(nil, []evidence.Image{c.image}, containers) {
				if a.Role != "image" || a.Name != "r/app:1" {
					t.Errorf("%+v", a)
				}
				got = append(got, a.Git, a.Live)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	digest := ArtifactDigest([]evidence.Artifact{{Role: "model", Name: "m", Live: hash("1")}})
	cases := []struct {
		name   string
		repeat evidence.Repeat
		want   evidence.Metric
	}{
		{"diff", evidence.Repeat{Comparison: &evidence.Comparison{Differences: make([]evidence.Difference, 2)}}, evidence.Metric{Unit: "differences", Observed: true, Value: 2}},
		{"diff", evidence.Repeat{}, evidence.Metric{Unit: "differences", Why: "live was not compared with Git"}},
		{"diff", evidence.Repeat{Comparison: &evidence.Comparison{Unread: []string{"x"}}}, evidence.Metric{Unit: "differences", Why: "part of the cluster could not be read"}},
		{"apply", evidence.Repeat{Seconds: map[string]float64{"apply": 0.5}}, evidence.Metric{Unit: "s", Observed: true, Value: 0.5}},
		{"apply", evidence.Repeat{}, evidence.Metric{Unit: "s", Why: "the set was not applied"}},
		{"rollout", evidence.Repeat{Settled: &evidence.Settled{Ready: true, Seconds: 2}}, evidence.Metric{Unit: "s", Observed: true, Value: 2}},
		{"rollout", evidence.Repeat{}, evidence.Metric{Unit: "s", Why: "the set did not settle"}},
		{"rollout", evidence.Repeat{Settled: &evidence.Settled{Seconds: 2}, Seconds: map[string]float64{"rollout": 2}}, evidence.Metric{Unit: "s", Why: "the set did not settle"}},
		{"artifact digest", evidence.Repeat{Artifacts: []evidence.Artifact{{Role: "model", Name: "m", Live: hash("1")}}}, evidence.Metric{Unit: "sha256", Observed: true, Text: digest}},
		{"artifact digest", evidence.Repeat{}, evidence.Metric{Unit: "sha256", Why: "no container ran and no artifact was mounted"}},
		{"artifact digest", evidence.Repeat{Artifacts: []evidence.Artifact{{Name: "n", Live: hash("1")}, {Name: "m"}}}, evidence.Metric{Unit: "sha256", Why: "no digest of m was seen"}},
		{"latency", evidence.Repeat{}, evidence.Metric{Why: "there is no such metric"}},
	}
	for _, c := range cases {
		t.Run(c.name+" "+c.want.Why, func(t *testing.T) {
			c.want.Name = c.name
			if d := cmp.Diff([]evidence.Metric{c.want}, Measure([]string{c.name}, c.repeat)); d != "" {
				t.Error(d)
			}
		})
	}
	if got := Measure([]string{"rollout", "apply"}, evidence.Repeat{}); got[0].Name != "rollout" || got[1].Name != "apply" {
		t.Errorf("another order: %+v", got)
	}
}

func TestArtifactDigest(t *testing.T) {
	a, b := evidence.Artifact{Role: "model", Name: "a", Git: "g", Live: hash("1")}, evidence.Artifact{Role: "input", Name: "b", Live: hash("2")}
	want := ArtifactDigest([]evidence.Artifact{a, b})
	if ArtifactDigest([]evidence.Artifact{b, a}) != want {
		t.Error("it depends on the order")
	}
	moved := b
	moved.Live = hash("3")
	for name, list := range map[string][]evidence.Artifact{"one less": {a}, "one moved": {a, moved}, "one twice": {a, b, b}} {
		if ArtifactDigest(list) == want {
			t.Errorf("%s: the same digest", name)
		}
	}
}
