package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

var (
	web   = evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}
	other = evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "other"}
	job   = evidence.ID{Group: "batch", Kind: "Job", Namespace: "ns", Name: "once"}
	hpa   = evidence.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "ns", Name: "web"}
	conf  = evidence.ID{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
)

func podID(name string) evidence.ID { return evidence.ID{Kind: "Pod", Namespace: "ns", Name: name} }

const reference = "localhost:5000/openai/octo:504"

// container is one of web's that is not ready.
func container(pod, state, why string, restarts int) evidence.Container {
	return evidence.Container{Pod: podID(pod), Workload: web, Name: "c", Reference: reference, State: state, Why: why, Restarts: restarts}
}

func event(pod, reason, message string) evidence.Event {
	return evidence.Event{Kind: "event", Object: podID(pod), Reason: reason, Message: message}
}

func pending(id evidence.ID, status string) evidence.Pending {
	return evidence.Pending{Object: id, Status: status, Why: "its why"}
}

func TestWhy(t *testing.T) {
	of := func(c evidence.Container, change func(*evidence.Container)) evidence.Container { change(&c); return c }
	pull := func(cause string) []evidence.Event {
		return []evidence.Event{
			event("p", "Failed", `Failed to pull image "`+reference+`": `+cause), event("p", "Failed", "Error: ErrImagePull"), event("p", "Failed", "Error: ImagePullBackOff"),
		}
	}
	pulling := []evidence.Container{container("p", "ImagePullBackOff", `Back-off pulling image "`+reference+`"`, 0)}
	webPending := []evidence.Pending{pending(podID("p"), "NotReady"), pending(web, "InProgress")}
	cases := []struct {
		name       string
		containers []evidence.Container
		pods       []evidence.Pod
		pending    []evidence.Pending
		events     []evidence.Event
		want       []string // severity code object field: part of the message
	}{
		{name: "image that is not there", containers: pulling, events: pull("rpc error: code = NotFound desc = " + reference + ": not found"), pending: webPending,
			want: []string{"fail image-pull Deployment/ns/web containers[c].image: not found"}},
		{name: "image that is not there, by digest", containers: pulling, events: pull("failed to resolve https://localhost:5000/v2/504/manifests/1 sha256:429: not found"),
			want: []string{"fail image-pull Deployment/ns/web containers[c].image: not found"}},
		{name: "no pull event: the container's word", containers: []evidence.Container{container("p", "ErrImagePull", "manifest unknown", 0)}, events: []evidence.Event{event("p", "Failed", "Error: ErrImagePull")},
			want: []string{"fail image-pull Deployment/ns/web containers[c].image: manifest unknown"}},
		{name: "registry limits", containers: pulling, events: pull("unexpected status code: 429 Too Many Requests"), want: []string{"inconclusive image-pull Deployment/ns/web containers[c].image: 429"}},
		{name: "registry is broken", containers: pulling, events: pull("unexpected status from HEAD request to https://localhost:5000/v2/x: 503 Service Unavailable"), want: []string{"inconclusive image-pull Deployment/ns/web containers[c].image: 503"}},
		{name: "registry is down", containers: pulling, events: pull("dial tcp 127.0.0.1:5000: connect: connection refused"), want: []string{"inconclusive image-pull Deployment/ns/web containers[c].image: refused"}},
		{name: "network is slow", containers: pulling, events: pull("read tcp: i/o timeout"), want: []string{"inconclusive image-pull Deployment/ns/web containers[c].image: timeout"}},
		{name: "network breaks", containers: pulling, events: pull("unexpected EOF"), want: []string{"inconclusive image-pull Deployment/ns/web containers[c].image: EOF"}},
		{name: "the error of another image", containers: pulling, events: []evidence.Event{event("p", "Failed", `Failed to pull image "side:1": timeout`)}, want: []string{"fail image-pull Deployment/ns/web containers[c].image: Back-off"}},
		{name: "name that is none", containers: []evidence.Container{container("p", "InvalidImageName", "couldn't parse image name", 0)}, want: []string{"fail image-pull Deployment/ns/web containers[c].image: parse"}},
		{name: "missing key", containers: []evidence.Container{container("p", "CreateContainerConfigError", "couldn't find key token in Secret ns/s", 0)}, pending: webPending,
			want: []string{"fail config-error Deployment/ns/web containers[c]: couldn't find key"}},
		{name: "image still on its way", containers: []evidence.Container{container("p", "ContainerCreating", "", 0)}, pending: webPending,
			events: []evidence.Event{event("p", "Pulling", `Pulling image "`+reference+`"`)}, want: []string{"inconclusive timed-out Deployment/ns/web containers[c].image: still being pulled"}},
		{name: "image there, and no container", containers: []evidence.Container{container("p", "ContainerCreating", "", 0)}, pending: webPending,
			events: []evidence.Event{event("p", "Pulling", `Pulling image "`+reference+`"`), event("p", "Pulled", `Successfully pulled image "`+reference+`" in 1s`)},
			want:   []string{"fail not-ready Deployment/ns/web : InProgress"}},
		{name: "volume that cannot be mounted", containers: []evidence.Container{container("p", "ContainerCreating", "", 0)}, pending: webPending,
			events: []evidence.Event{event("p", "FailedMount", `MountVolume.SetUp failed for volume "v": configmap references non-existent config key: k`)},
			want:   []string{"fail config-error Deployment/ns/web containers[c].volumeMounts: non-existent config key: k"}},
		{name: "no sandbox", containers: []evidence.Container{container("p", "ContainerCreating", "", 0)}, pending: webPending,
			events: []evidence.Event{event("p", "FailedCreatePodSandBox", "failed to set up network")}, want: []string{"inconclusive cluster-failed Deployment/ns/web containers[c]: network"}},
		{name: "bad command", containers: []evidence.Container{container("p", "RunContainerError", "exec: no such file", 0)}, want: []string{"fail config-error Deployment/ns/web containers[c]: exec"}},
		{name: "crash", containers: []evidence.Container{of(container("p", "CrashLoopBackOff", "Error, exit code 1", 3), func(c *evidence.Container) { c.Log = []string{"first", "no config"} })}, pending: webPending,
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: it ended (Error, exit code 1) and was restarted 3 times; its log ends: no config"}},
		{name: "crash without an error", containers: []evidence.Container{container("p", "CrashLoopBackOff", "Completed, exit code 0", 3)}, pending: webPending,
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: it ended (Completed, exit code 0)"}},
		{name: "a step that has ended well", containers: []evidence.Container{container("p", "Completed", "Completed, exit code 0", 0)}},
		{name: "memory", containers: []evidence.Container{container("p", "CrashLoopBackOff", "OOMKilled, exit code 137", 3)}, want: []string{"fail oom-killed Deployment/ns/web containers[c].resources.limits.memory: more memory"}},
		{name: "killed by its probe", containers: []evidence.Container{container("p", "Running", "Error, exit code 137", 2)}, events: []evidence.Event{event("p", "Killing", "Container c failed liveness probe, will be restarted")},
			want: []string{"fail probe-killed Deployment/ns/web containers[c].livenessProbe: 2 times"}},
		{name: "the probe of another Pod", containers: []evidence.Container{container("p", "Running", "Error, exit code 1", 2)}, events: []evidence.Event{event("q", "Killing", "Container c failed liveness probe, will be restarted")},
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: Error, exit code 1"}},
		{name: "runs and is not ready", containers: []evidence.Container{container("p", "Running", "", 0)}, pending: webPending, events: []evidence.Event{event("p", "Unhealthy", "Readiness probe failed: 503")},
			want: []string{"fail not-ready Deployment/ns/web containers[c]: it runs and is not ready: Readiness probe failed: 503"}},
		{name: "ready", containers: []evidence.Container{of(container("p", "Running", "", 0), func(c *evidence.Container) { c.Ready = true })}},
		{name: "two Pods of one cause", containers: []evidence.Container{container("p", "CrashLoopBackOff", "Error, exit code 1", 3), container("q", "CrashLoopBackOff", "Error, exit code 1", 4)},
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: restarted 3 times"}},
		{name: "two Pods that say nothing", containers: []evidence.Container{container("p", "ContainerCreating", "", 0), container("q", "ContainerCreating", "", 0)},
			pending: []evidence.Pending{pending(podID("p"), "NotReady"), pending(podID("q"), "NotReady"), pending(web, "InProgress")}, want: []string{"fail not-ready Deployment/ns/web : InProgress: its why"}},
		{name: "two causes", containers: []evidence.Container{container("p", "CrashLoopBackOff", "Error, exit code 1", 3), of(container("p", "CreateContainerConfigError", "no key", 0), func(c *evidence.Container) { c.Name = "d" })},
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: ", "fail config-error Deployment/ns/web containers[d]: no key"}},
		{name: "two workloads", containers: []evidence.Container{container("p", "CrashLoopBackOff", "", 3), of(container("q", "CrashLoopBackOff", "", 3), func(c *evidence.Container) { c.Workload = other })},
			want: []string{"fail crash-loop Deployment/ns/web containers[c]: ", "fail crash-loop Deployment/ns/other containers[c]: "}},
		{name: "no node fits, two Pods", pods: []evidence.Pod{{Pod: podID("p"), Workload: web}, {Pod: podID("q"), Workload: web}},
			pending: []evidence.Pending{pending(podID("p"), "Unschedulable"), pending(podID("q"), "Unschedulable"), pending(web, "InProgress")}, want: []string{"fail unschedulable Deployment/ns/web : its why"}},
		{name: "an object by itself", pending: []evidence.Pending{pending(conf, "Unseen")}, want: []string{"fail not-ready ConfigMap/ns/conf : Unseen: its why"}},
		{name: "a Pod that nothing of the set speaks for", pods: []evidence.Pod{{Pod: podID("p"), Workload: web}}, pending: []evidence.Pending{pending(podID("p"), "Terminating")},
			want: []string{"fail not-ready Deployment/ns/web : Terminating"}},
		{name: "a failed Job whose Pods are gone", pending: []evidence.Pending{pending(job, "Failed")}, want: []string{"fail job-failed Job.batch/ns/once : Failed"}},
		{name: "a Job that has not ended", pending: []evidence.Pending{pending(job, "InProgress")}, want: []string{"fail not-ready Job.batch/ns/once : InProgress"}},
		{name: "a failed Job and its Pod", containers: []evidence.Container{of(container("p", "Error", "Error, exit code 2", 0), func(c *evidence.Container) { c.Workload = job })},
			pending: []evidence.Pending{pending(podID("p"), "Failed"), pending(job, "Failed")}, want: []string{"fail job-failed Job.batch/ns/once containers[c]: exit code 2"}},
		{name: "autoscaler of what is explained", containers: []evidence.Container{container("p", "CrashLoopBackOff", "", 3)}, pending: append(webPending, pending(hpa, "InProgress")), want: []string{"fail crash-loop Deployment/ns/web containers[c]: "}},
		{name: "autoscaler alone", pending: []evidence.Pending{pending(hpa, "InProgress")}, want: []string{"fail not-ready HorizontalPodAutoscaler.autoscaling/ns/web : InProgress"}},
	}
	set := &evidence.Set{Objects: []evidence.Object{{ID: web, Origin: evidence.Origin{File: "web.yaml", Line: 7}}}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Why(set, evidence.Repeat{
				Number: 2, Containers: c.containers, Pods: c.pods, Timeline: c.events, Settled: &evidence.Settled{Cause: "timeout", Pending: c.pending},
			})
			if len(got) != len(c.want) {
				t.Fatalf("want %d findings, got %+v", len(c.want), got)
			}
			for i, f := range got {
				start, part, _ := strings.Cut(c.want[i], ": ")
				if line := fmt.Sprintf("%s %s %s %s", f.Severity, f.Code, f.Object, f.Field); line != start || !strings.Contains(f.Message, part) {
					t.Errorf("got  %s: %s\nwant %s", line, f.Message, c.want[i])
				}
				if f.Repeat != 2 || f.Do == "" || (f.Object == web.String()) != (f.Origin.String() == "web.yaml:7") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestNothingToExplain(t *testing.T) {
	for name, settled := range map[string]*evidence.Settled{"ready": {Ready: true}, "interrupted": {Cause: "interrupted", Pending: []evidence.Pending{pending(web, "InProgress")}}, "not reached": nil} {
		if got := Why(&evidence.Set{}, evidence.Repeat{Settled: settled, Containers: []evidence.Container{container("p", "CrashLoopBackOff", "", 3)}}); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
