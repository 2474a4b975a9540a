package experiment

import (
	"context"
	"strings"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const window = 50 * time.Millisecond

var short = Options{Window: window, Limit: 2 * time.Second, Patience: time.Minute}

// observe feeds the changes to a new Observer of the set and waits.
func observe(set *evidence.Set, options Options, changes ...evidence.Change) (*Observer, evidence.Settled) {
	o := Observe(set, queue(changes...), options)
	return o, o.Settle(context.Background(), time.Now())
}

func queue(changes ...evidence.Change) chan evidence.Change {
	c := make(chan evidence.Change, 100)
	for _, change := range changes {
		c <- change
	}
	return c
}

func TestSettle(t *testing.T) {
	configMap := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: ns}}`)
	job := func(conditions string) map[string]any {
		return object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: ns}, status: {startTime: "2026-01-01T00:00:00Z", conditions: [`+conditions+`]}}`)
	}
	daemons := func(number string) map[string]any {
		return object(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: ns, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: `+
			number+`, currentNumberScheduled: `+number+`, updatedNumberScheduled: `+number+`, numberAvailable: `+number+`, numberReady: `+number+`}}`)
	}
	scaler := func(spec, status string) map[string]any {
		return object(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: ns}, spec: {`+spec+`}, status: {`+status+`}}`)
	}
	bare := func(phase, policy string) map[string]any {
		return object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {restartPolicy: `+policy+`}, status: {phase: `+phase+`, reason: Evicted}}`)
	}
	halted := object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: ns}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`)
	impatient := Options{Window: window, Limit: 2 * time.Second, Patience: window}
	hasty := Options{Window: window, Limit: 3 * window, Patience: time.Minute}
	// A set's objects are what its first deliveries are about, unless set is given.
	cases := []struct {
		name    string
		options Options
		set     *evidence.Set
		changes []evidence.Change
		cause   string // empty when it is ready
		pending string // "Kind Status Why", a part of it
	}{
		{"an object that needs no time", short, setOf(configMap), []evidence.Change{seen(configMap)}, "", ""},
		{"unseen", hasty, setOf(configMap), nil, "timeout", "ConfigMap Unseen no watch has delivered it"},
		{"deleted", hasty, setOf(configMap), []evidence.Change{seen(configMap), gone(configMap)}, "timeout", "ConfigMap Gone it was deleted"},
		{"deleted and made again", short, setOf(configMap), []evidence.Change{seen(configMap), gone(configMap), seen(configMap)}, "", ""},
		{"Pod ready", short, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", ready, 0))}, "", ""},
		{"Pod not ready", hasty, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", notReady, 0))}, "timeout", "Pod NotReady a container is not ready"},
		{"Pod not ready went", short, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", notReady, 0)), gone(pod(t, "p", notReady, 0))}, "", ""},
		{"Deployment complete", short, setOf(deployment(t, 2, 2)), []evidence.Change{seen(deployment(t, 2, 2))}, "", ""},
		{"Deployment short of a Pod", hasty, setOf(deployment(t, 2, 2)), []evidence.Change{seen(deployment(t, 2, 1))}, "timeout", "Deployment InProgress"},
		{"three crashes", short, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "CrashLoopBackOff", 3))}, "failed", "Pod CrashLoopBackOff container c: told by"},
		{"two crashes and up again", short, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "CrashLoopBackOff", 2)), seen(pod(t, "p", ready, 2))}, "", ""},
		{"two crashes for longer than patience", impatient, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "CrashLoopBackOff", 2))}, "failed", "Pod CrashLoopBackOff"},
		{"image out of reach for longer than patience", impatient, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "ImagePullBackOff", 0))}, "failed", "Pod ImagePullBackOff container c: told by"},
		{"changing its reason does not start patience anew", impatient, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "ErrImagePull", 0)), seen(pod(t, "p", "ImagePullBackOff", 0))}, "failed", "Pod ImagePullBackOff"},
		{"image out of reach for a moment", short, setOf(configMap), []evidence.Change{seen(configMap), seen(pod(t, "p", "ImagePullBackOff", 0)), seen(pod(t, "p", ready, 0))}, "", ""},
		{"unschedulable for longer than patience", impatient, setOf(configMap), []evidence.Change{seen(configMap), seen(object(t,
			`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: 0/1 nodes}]}}`))}, "failed", "Pod Unschedulable 0/1 nodes"},
		{"DaemonSet on one node", short, setOf(daemons("1")), []evidence.Change{seen(daemons("1"))}, "", ""},
		{"DaemonSet on no node", hasty, setOf(daemons("0")), []evidence.Change{seen(daemons("0"))}, "timeout", "DaemonSet NoPods it matches no node"},
		{"DaemonSet on no node for longer than patience", impatient, setOf(daemons("0")), []evidence.Change{seen(daemons("0"))}, "failed", "DaemonSet NoPods"},
		{"autoscaler at its minimum", short, setOf(scaler("minReplicas: 2", "currentReplicas: 2")), []evidence.Change{seen(scaler("minReplicas: 2", "currentReplicas: 2"))}, "", ""},
		{"autoscaler below its minimum", hasty, setOf(scaler("minReplicas: 2", "currentReplicas: 1")), []evidence.Change{seen(scaler("minReplicas: 2", "currentReplicas: 1"))}, "timeout", "HorizontalPodAutoscaler InProgress 1 of at least 2 replicas"},
		{"autoscaler without a minimum, and nothing stands", hasty, setOf(scaler("", "")), []evidence.Change{seen(scaler("", ""))}, "timeout", "0 of at least 1 replicas"},
		{"Job complete", short, setOf(job(`{type: Complete, status: "True"}`)), []evidence.Change{seen(job(`{type: Complete, status: "True"}`))}, "", ""},
		{"Job failed", short, setOf(job("")), []evidence.Change{seen(job(`{type: Failed, status: "True"}`))}, "failed", "Job Failed"},
		{"Job under way", hasty, setOf(job("")), []evidence.Change{seen(job(""))}, "timeout", "Job InProgress"},
		{"Pod succeeded", short, setOf(configMap), []evidence.Change{seen(configMap), seen(bare("Succeeded", "Never"))}, "", ""},
		{"bare Pod failed for good", short, setOf(configMap), []evidence.Change{seen(configMap), seen(bare("Failed", "Never"))}, "failed", "Pod Failed Evicted"},
		{"failed Pod whose owner decides", short, setOf(configMap), []evidence.Change{seen(configMap), seen(object(t, owned(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {restartPolicy: Never}, status: {phase: Failed}}`, "batch/v1", "Job", "j")))}, "", ""},
		{"Job suspended by Git", short, setOf(halted), []evidence.Change{seen(halted)}, "", ""},
		{"Pod being deleted", hasty, setOf(configMap), []evidence.Change{seen(configMap), seen(object(t, strings.Replace(podText("p", ready, 0), "name: p", `deletionTimestamp: "2026-01-01T00:00:00Z", name: p`, 1)))}, "timeout", "Pod Terminating"},
		{"an object that is not of the set", short, setOf(configMap), []evidence.Change{seen(configMap), seen(deployment(t, 2, 0))}, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, got := observe(c.set, c.options, c.changes...)
			if got.Ready != (c.cause == "") || got.Cause != c.cause {
				t.Fatalf("want cause %q, got %+v", c.cause, got)
			}
			took := time.Since(begin)
			if got.Ready && (took < window || got.Seconds > took.Seconds()-window.Seconds()/2 || len(got.Pending) > 0 || got.Window != window.Seconds()) {
				t.Errorf("ready after %v, of which %v s without the window: %+v", took, got.Seconds, got)
			}
			if c.cause == "failed" && took > time.Second {
				t.Errorf("a failure took %v", took)
			}
			var told []string
			for _, p := range got.Pending {
				told = append(told, p.Object.Kind+" "+p.Status+" "+p.Why)
			}
			if all := strings.Join(told, "\n"); !strings.Contains(all, c.pending) || (c.pending != "" && len(told) != 1) {
				t.Errorf("want pending %q, got %q", c.pending, all)
			}
		})
	}
}

// TestWindowStartsAnew restarts a Pod half a window before the end of the first window.
func TestWindowStartsAnew(t *testing.T) {
	cases := []struct {
		name  string
		late  map[string]any
		least time.Duration
	}{
		{"restarted", pod(t, "p", ready, 1), 3 * window / 2},
		{"another Pod came", pod(t, "q", ready, 0), 3 * window / 2},
		{"nothing moved", pod(t, "p", ready, 0), 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			changes := queue(seen(pod(t, "p", ready, 0)))
			o := Observe(setOf(pod(t, "p", ready, 0)), changes, short)
			begin := time.Now()
			timer := time.AfterFunc(window/2, func() { changes <- seen(c.late) })
			defer timer.Stop()
			got := o.Settle(context.Background(), begin)
			took := time.Since(begin)
			if !got.Ready || took < max(window, c.least) {
				t.Errorf("took %v, want at least %v: %+v", took, max(window, c.least), got)
			}
			if moved := got.Seconds >= (window / 2).Seconds(); moved != (c.least > 0) {
				t.Errorf("it was ready after %v s", got.Seconds)
			}
		})
	}
}

// TestLosingReadiness: a Pod that loses its readiness inside the window and finds it again.
func TestLosingReadiness(t *testing.T) {
	o, got := observe(setOf(pod(t, "p", ready, 0)), short, seen(pod(t, "p", ready, 0)), seen(pod(t, "p", notReady, 0)), seen(pod(t, "p", ready, 0)))
	if !got.Ready {
		t.Fatalf("%+v", got)
	}
	var reasons []string
	for _, e := range o.Timeline() {
		reasons = append(reasons, e.Kind+" "+e.Reason)
	}
	want := "pod Created, pod Ready=True, container Running, step Current, pod Ready=False, pod Ready=True, step Current"
	if all := strings.Join(reasons, ", "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := Observe(setOf(pod(t, "p", ready, 0)), make(chan evidence.Change), short)
	if got := o.Settle(ctx, time.Now()); got.Ready || got.Cause != "interrupted" || len(got.Pending) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestCounts(t *testing.T) {
	p := pod(t, "p", ready, 0)
	zero := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: off, namespace: ns}, spec: {replicas: 0}}`)
	suspended := object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: off, namespace: ns}, spec: {suspend: true}}`)
	gap := evidence.Change{Gap: "the watch ended"}
	hasty := Options{Window: window, Limit: 3 * window, Patience: time.Minute}
	cases := []struct {
		name       string
		set        *evidence.Set
		options    Options
		changes    []evidence.Change
		pods, gaps int
		expected   bool
	}{
		{"one Pod", setOf(p), short, []evidence.Change{seen(p)}, 1, 0, true},
		{"gaps", setOf(p), short, []evidence.Change{gap, seen(p), gap}, 1, 2, true},
		{"a Pod that is not ready does not count", setOf(p), hasty, []evidence.Change{seen(p), seen(pod(t, "q", notReady, 0))}, 1, 0, true},
		{"no replicas wanted", setOf(zero, suspended), hasty, nil, 0, 0, false},
		{"replicas by default", setOf(object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {}}`)), hasty, nil, 0, 0, true},
		{"a Job", setOf(object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {}}`)), hasty, nil, 0, 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, got := observe(c.set, c.options, c.changes...)
			if got.Pods != c.pods || got.Gaps != c.gaps || got.Expected != c.expected {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestCatchUp(t *testing.T) {
	p := pod(t, "p", ready, 0)
	labelled := pod(t, "p", ready, 0)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	conf := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: ns}}`)
	cases := []struct {
		name string
		late []evidence.Change
		want bool
	}{
		{"nothing came", nil, false},
		{"the Pod as it was, with a label", []evidence.Change{seen(labelled)}, false},
		{"a restart", []evidence.Change{seen(pod(t, "p", ready, 1))}, true},
		{"not ready and ready again", []evidence.Change{seen(pod(t, "p", notReady, 0)), seen(p)}, true},
		{"a Pod came and went", []evidence.Change{seen(pod(t, "q", ready, 0)), gone(pod(t, "q", ready, 0))}, true},
		{"an object was deleted", []evidence.Change{gone(conf)}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			changes := queue(seen(conf), seen(p))
			o := Observe(setOf(conf, p), changes, short)
			if got := o.Settle(context.Background(), time.Now()); !got.Ready {
				t.Fatalf("%+v", got)
			}
			for _, change := range c.late {
				changes <- change
			}
			if got := o.CatchUp(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	event := object(t, `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: ns}, involvedObject: {apiVersion: apps/v1, kind: Deployment, namespace: ns, name: web}, reason: Scaled, message: up, count: 3}`)
	o := Observe(setOf(), queue(), short)
	o.Step("Apply", "begun")
	o.see(seen(event))
	o.see(gone(event))
	if len(o.Timeline()) != 2 || o.Timeline()[0].Reason != "Apply" {
		t.Fatalf("%+v", o.Timeline())
	}
	got := o.Timeline()[1]
	got.Seconds = 0
	want := evidence.Event{Kind: "event", Object: evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, Reason: "Scaled", Message: "up (3 times)"}
	if got != want {
		t.Errorf("%+v", got)
	}
}
