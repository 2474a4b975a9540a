package experiment

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const current = string(status.CurrentStatus)

// state is an object's kstatus, and what kstatus lets through. failed is for good; hopeless is a
// state that rarely mends itself.
func state(id evidence.ID, content map[string]any) (phase, why string, failed, hopeless bool) {
	if id.Kind == "Pod" && id.Group == "" {
		return podState(content)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return "Unknown", "computing its status: " + err.Error(), false, false
	}
	phase, why = string(result.Status), result.Message
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(content, fields...)
		return n
	}
	spec := func(field string) string {
		text, _, _ := unstructured.NestedString(content, "spec", field)
		return text
	}
	suspended, _, _ := unstructured.NestedBool(content, "spec", "suspend")
	switch {
	case id.Kind == "Job" && id.Group == "batch" && suspended:
		return current, "", false, false // as Git asks for
	case id.Kind == "Service" && id.Group == "" && spec("type") == "LoadBalancer":
		// A kind cluster has no load balancers: every report says that they are not covered.
		return current, "", false, false
	case id.Kind == "PersistentVolumeClaim" && id.Group == "" && result.Status == status.InProgressStatus:
		// With WaitForFirstConsumer a claim that no Pod mounts stays pending, rightly; one that a Pod
		// mounts keeps that Pod from being ready.
		return current, "", false, false
	case phase != current:
	case id.Kind == "DaemonSet" && number("status", "desiredNumberScheduled") == 0:
		// kstatus calls a DaemonSet without Pods current.
		return "NoPods", "it matches no node", false, true
	case id.Kind == "Job" && id.Group == "batch" && condition(content, "Complete")["status"] != "True":
		// kstatus calls a Job that has begun current.
		return "InProgress", why, false, false
	case id.Kind == "HorizontalPodAutoscaler":
		// kstatus knows no autoscalers: one is current when its minimum stands.
		minimum, found, _ := unstructured.NestedInt64(content, "spec", "minReplicas")
		if !found {
			minimum = 1
		}
		if have := number("status", "currentReplicas"); have < minimum {
			return "InProgress", fmt.Sprintf("%d of at least %d replicas", have, minimum), false, false
		}
	}
	return phase, why, result.Status == status.FailedStatus, false
}

// podState: container states decide, not the phase (a Pod in a crash loop has phase Running).
func podState(pod map[string]any) (phase, why string, failed, hopeless bool) {
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(pod, fields...)
		return s
	}
	switch text("status", "phase") {
	case "Succeeded":
		return current, "", false, false
	case "Failed":
		if !ownerless(pod) {
			return current, "", false, false // its owner makes another, or has failed itself and says so
		}
		return "Failed", text("status", "reason") + " " + text("status", "message"), text("spec", "restartPolicy") == "Never", false
	}
	if text("metadata", "deletionTimestamp") != "" {
		return "Terminating", "it is being deleted", false, false
	}
	for _, c := range containerStatuses(pod) {
		waiting, _ := nested(c, "state", "waiting")
		reason, _ := waiting["reason"].(string)
		name, _ := c["name"].(string)
		message, _ := waiting["message"].(string)
		restarts, _ := c["restartCount"].(int64)
		switch reason {
		case "CreateContainerConfigError", "CreateContainerError", "InvalidImageName", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "RunContainerError":
			return reason, fmt.Sprintf("container %s: %s", name, message), false, true
		case "CrashLoopBackOff":
			return reason, fmt.Sprintf("container %s: %s", name, message), restarts >= 3, true
		}
	}
	if c := condition(pod, "PodScheduled"); c["status"] == "False" {
		message, _ := c["message"].(string)
		return "Unschedulable", message, false, true
	}
	if condition(pod, "Ready")["status"] != "True" {
		return "NotReady", "a container is not ready", false, false
	}
	return current, "", false, false
}

func ownerless(object map[string]any) bool {
	owners, _, _ := unstructured.NestedSlice(object, "metadata", "ownerReferences")
	return len(owners) == 0
}

// containerStatuses are those of init, ordinary and ephemeral containers, in this order.
func containerStatuses(pod map[string]any) []map[string]any {
	var list []map[string]any
	for _, field := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		items, _, _ := unstructured.NestedSlice(pod, "status", field)
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				list = append(list, m)
			}
		}
	}
	return list
}

func condition(object map[string]any, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m
		}
	}
	return nil
}

func nested(m map[string]any, fields ...string) (map[string]any, bool) {
	value, found, _ := unstructured.NestedMap(m, fields...)
	return value, found
}
