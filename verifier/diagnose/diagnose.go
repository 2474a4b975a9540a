// Package diagnose says why a repeat did not settle, from its recorded facts alone: the scheduler's
// word, the container's state, the log of the container that failed.
package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Why gives a finding for each workload and container that kept the repeat from settling: one a
// cause, however many Pods show it. Objects that are pending for no cause of a Pod of theirs are
// not-ready.
func Why(set *evidence.Set, r evidence.Repeat) []evidence.Finding {
	if r.Settled == nil || r.Settled.Ready || r.Settled.Cause == "interrupted" {
		return nil
	}
	d := &diagnosis{set: set, repeat: r, explained: map[evidence.ID]bool{}}
	for _, c := range r.Containers {
		d.container(c)
	}
	for _, p := range r.Settled.Pending {
		if p.Object.Kind == "Pod" && p.Status == "Unschedulable" {
			d.report("unschedulable", d.workloadOf(p.Object), "", p.Why, "give the cluster what the Pod asks for, or ask for less")
		}
	}
	for _, pods := range []bool{false, true} { // a Pod speaks where nothing of the set does for it
		for _, p := range r.Settled.Pending {
			owner := d.workloadOf(p.Object)
			if (p.Object.Kind == "Pod") != pods || d.explained[owner] || d.servedBy(p.Object) {
				continue
			}
			code := "not-ready"
			if p.Object.Kind == "Job" && p.Status == "Failed" {
				code = "job-failed"
			}
			d.report(code, owner, "", strings.TrimSpace(p.Status+": "+p.Why), "see the timeline of this repeat in the evidence")
		}
	}
	return d.findings
}

type diagnosis struct {
	set       *evidence.Set
	repeat    evidence.Repeat
	findings  []evidence.Finding
	explained map[evidence.ID]bool
}

// pullTrouble are words of a pull error that speak of the registry's state and not of the image.
var pullTrouble = regexp.MustCompile(`(?i)\b(429|500|502|503|504)\b|too many requests|timeout|timed out|connection refused|connection reset|no such host|\bi/o\b|\bEOF\b`)

// names are parts of a pull error that the revision writes: they speak of no state.
var names = regexp.MustCompile(`https?://[^\s"]+|sha256:[0-9a-f]+`)

// troubled tells whether the error of a pull is the registry's. What names the image is taken out first.
func troubled(message, reference string) bool {
	message = names.ReplaceAllString(message, "")
	repository, _, _ := strings.Cut(reference, "@")
	for _, name := range []string{reference, repository, repository[:max(0, strings.LastIndexByte(repository, ':'))]} {
		if name != "" {
			message = strings.ReplaceAll(message, name, "")
		}
	}
	return pullTrouble.MatchString(message)
}

func (d *diagnosis) container(c evidence.Container) {
	if c.Ready || c.State == "Completed" {
		return
	}
	switch c.State {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
		severity := evidence.Fail
		message := c.Why
		// The kubelet repeats itself as "Error: ImagePullBackOff"; only the pull's own event says why.
		if event := d.lastEvent(c.Pod, "Failed", "pull image", c.Reference); event != "" {
			message = event
		}
		if troubled(message, c.Reference) {
			severity = evidence.Inconclusive
		}
		d.reportAs(severity, "image-pull", c.Workload, "containers["+c.Name+"].image", c.Reference+": "+message, "make the image pullable by the nodes (--registry-mirror), or name one that is")
	case "CreateContainerConfigError":
		d.report("config-error", c.Workload, "containers["+c.Name+"]", c.Why, "add what the container names to the repository")
	case "CreateContainerError", "RunContainerError":
		d.report("config-error", c.Workload, "containers["+c.Name+"]", c.Why, "mend the container's command, mounts or security context")
	case "ContainerCreating", "PodInitializing":
		d.starting(c)
	default:
		d.ended(c)
	}
}

// starting handles a container that has not been made yet: a large image may still be on its way,
// which is no fault of the repository, or something keeps the Pod from being set up.
func (d *diagnosis) starting(c evidence.Container) {
	field := "containers[" + c.Name + "]"
	mount, sandbox := d.lastEvent(c.Pod, "FailedMount"), d.lastEvent(c.Pod, "FailedCreatePodSandBox")
	quoted := `"` + c.Reference + `"`
	switch {
	case mount != "":
		d.report("config-error", c.Workload, field+".volumeMounts", mount, "add what the volume names to the repository")
	case sandbox != "":
		d.reportAs(evidence.Inconclusive, "cluster-failed", c.Workload, field, sandbox, "run it again")
	case d.lastEvent(c.Pod, "Pulling", quoted) != "" && d.lastEvent(c.Pod, "Pulled", quoted) == "":
		d.reportAs(evidence.Inconclusive, "timed-out", c.Workload, field+".image", c.Reference+" was still being pulled when the time was over", "allow more with --timeout")
	}
}

// ended handles a container that ran and stopped.
func (d *diagnosis) ended(c evidence.Container) {
	field := "containers[" + c.Name + "]"
	last := ""
	if len(c.Log) > 0 {
		last = "; its log ends: " + c.Log[len(c.Log)-1]
	}
	killed := d.lastEvent(c.Pod, "Killing")
	switch {
	case strings.HasPrefix(c.Why, "OOMKilled"):
		d.report("oom-killed", c.Workload, field+".resources.limits.memory", "it used more memory than its limit", "raise the limit above the peak of a start")
	case c.Restarts > 0 && strings.Contains(killed, "failed liveness probe"):
		d.report("probe-killed", c.Workload, field+".livenessProbe", fmt.Sprintf("the liveness probe killed it %d times before it was ready", c.Restarts), "give it a startupProbe that allows for its start")
	case c.Restarts == 0 && c.State == "Error" && c.Workload.Group == "batch":
		d.report("job-failed", c.Workload, field, fmt.Sprintf("it ended (%s)%s", c.Why, last), "see its log in the evidence")
	case c.Restarts > 0 || c.State == "Error" || c.State == "CrashLoopBackOff":
		d.report("crash-loop", c.Workload, field, fmt.Sprintf("it ended (%s) and was restarted %d times%s", c.Why, c.Restarts, last), "see its log in the evidence")
	case c.State == "Running":
		message := "it runs and is not ready"
		if unhealthy := d.lastEvent(c.Pod, "Unhealthy"); unhealthy != "" {
			message += ": " + unhealthy
		}
		d.report("not-ready", c.Workload, field, message+last, "see the timeline of this repeat in the evidence")
	}
}

func (d *diagnosis) report(code string, id evidence.ID, field, message, do string) {
	d.reportAs(evidence.Fail, code, id, field, message, do)
}

func (d *diagnosis) reportAs(severity evidence.Severity, code string, id evidence.ID, field, message, do string) {
	d.explained[id] = true
	for _, f := range d.findings {
		if f.Code == code && f.Object == id.String() && f.Field == field {
			return
		}
	}
	finding := evidence.Finding{Code: code, Severity: severity, Object: id.String(), Field: field, Message: message, Do: do, Repeat: d.repeat.Number}
	if object := d.set.Find(id); object != nil {
		finding.Origin = object.Origin
	}
	d.findings = append(d.findings, finding)
}

// lastEvent is the last event's message about the object, for that reason and with these parts.
func (d *diagnosis) lastEvent(id evidence.ID, reason string, parts ...string) string {
	for _, e := range slices.Backward(d.repeat.Timeline) {
		lacks := func(part string) bool { return !strings.Contains(e.Message, part) }
		if e.Kind == "event" && e.Object == id && e.Reason == reason && !slices.ContainsFunc(parts, lacks) {
			return e.Message
		}
	}
	return ""
}

// workloadOf is the workload of a Pod, and any other object itself.
func (d *diagnosis) workloadOf(id evidence.ID) evidence.ID {
	for _, c := range d.repeat.Containers {
		if c.Pod == id {
			return c.Workload
		}
	}
	for _, p := range d.repeat.Pods {
		if p.Pod == id {
			return p.Workload
		}
	}
	return id
}

// servedBy is true for an autoscaler or a budget whose target is explained already.
func (d *diagnosis) servedBy(id evidence.ID) bool {
	if id.Kind != "HorizontalPodAutoscaler" && id.Kind != "PodDisruptionBudget" {
		return false
	}
	for explained := range d.explained {
		if explained.Namespace == id.Namespace {
			return true
		}
	}
	return false
}
