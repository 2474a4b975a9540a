package experiment

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// seePod puts what changed in a Pod on the timeline.
func (o *Observer) seePod(id evidence.ID, before map[string]any, change evidence.Change) {
	switch {
	case change.Gone:
		o.note("pod", id, "Gone", "")
		o.moved = time.Now()
		return
	case before == nil:
		o.note("pod", id, "Created", "")
		o.moved = time.Now()
	}
	for _, kind := range []string{"PodScheduled", "Initialized", "Ready"} {
		was, is := condition(before, kind), condition(change.Content, kind)
		if is == nil || was["status"] == is["status"] {
			continue
		}
		message, _ := is["message"].(string)
		if reason, _ := is["reason"].(string); reason != "" {
			message = reason + ": " + message
		}
		o.note("pod", id, fmt.Sprintf("%s=%s", kind, is["status"]), message)
		if kind == "Ready" {
			o.moved = time.Now()
		}
	}
	old := map[string]map[string]any{}
	for _, c := range containerStatuses(before) {
		name, _ := c["name"].(string)
		old[name] = c
	}
	for _, c := range containerStatuses(change.Content) {
		name, _ := c["name"].(string)
		was, is := containerState(old[name]), containerState(c)
		if was != is {
			o.note("container", id, is, name)
		}
		if restarts(c) > restarts(old[name]) {
			o.note("container", id, "Restarted", fmt.Sprintf("%s, %d times by now", name, restarts(c)))
			o.moved = time.Now()
		}
	}
}

func restarts(containerStatus map[string]any) int64 {
	n, _ := containerStatus["restartCount"].(int64)
	return n
}

// containerState is one word for a container's state: Running, a reason to wait, or how it ended.
func containerState(status map[string]any) string {
	for _, name := range []string{"waiting", "terminated"} {
		if state, ok := nested(status, "state", name); ok {
			reason, _ := state["reason"].(string)
			return reason
		}
	}
	if _, ok := nested(status, "state", "running"); ok {
		return "Running"
	}
	return ""
}

var digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// Containers are all containers of the Pods that are there, as they are now: init, ordinary and
// ephemeral ones, of every Pod and on every node.
func (o *Observer) Containers() []evidence.Container {
	list := []evidence.Container{}
	for _, pod := range o.pods() {
		id := evidence.IDOf(pod)
		spec, _ := pod["spec"].(map[string]any)
		node, _ := spec["nodeName"].(string)
		images := map[string]string{}
		for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
			items, _ := spec[field].([]any)
			for _, item := range items {
				c, _ := item.(map[string]any)
				name, _ := c["name"].(string)
				images[name], _ = c["image"].(string)
			}
		}
		for _, c := range containerStatuses(pod) {
			name, _ := c["name"].(string)
			imageID, _ := c["imageID"].(string)
			ready, _ := c["ready"].(bool)
			container := evidence.Container{
				Pod: id, Name: name, Node: node, Reference: images[name], ImageID: imageID, Digest: digest.FindString(imageID),
				Ready: ready, Restarts: int(restarts(c)), State: containerState(c), Workload: o.workload(pod),
			}
			for _, where := range []string{"state", "lastState"} {
				if ended, ok := nested(c, where, "terminated"); ok && container.Why == "" {
					reason, _ := ended["reason"].(string)
					code, _ := ended["exitCode"].(int64)
					container.Why = fmt.Sprintf("%s, exit code %d", reason, code)
				}
			}
			if waiting, ok := nested(c, "state", "waiting"); ok && container.Why == "" {
				container.Why, _ = waiting["message"].(string)
			}
			list = append(list, container)
		}
	}
	return list
}

// Pods are the Pods that are there now.
func (o *Observer) Pods() []evidence.Pod {
	list := []evidence.Pod{}
	for _, pod := range o.pods() {
		spec, _ := pod["spec"].(map[string]any)
		node, _ := spec["nodeName"].(string)
		list = append(list, evidence.Pod{Pod: evidence.IDOf(pod), Workload: o.workload(pod), Node: node})
	}
	return list
}

// workload is the object of the set that a Pod belongs to: itself, its owner, or the Deployment of
// the ReplicaSet (or CronJob of the Job) that owns it, whose name is the owner's less the last part.
func (o *Observer) workload(pod map[string]any) evidence.ID {
	id := evidence.IDOf(pod)
	meta, _ := pod["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	candidates := []evidence.ID{id}
	for _, item := range owners {
		owner, _ := item.(map[string]any)
		apiVersion, _ := owner["apiVersion"].(string)
		group, _ := evidence.SplitAPIVersion(apiVersion)
		kind, _ := owner["kind"].(string)
		name, _ := owner["name"].(string)
		candidates = append(candidates, evidence.ID{Group: group, Kind: kind, Namespace: id.Namespace, Name: name})
		if cut := strings.LastIndexByte(name, '-'); cut > 0 {
			parent := map[string]string{"ReplicaSet": "Deployment", "Job": "CronJob"}[kind]
			candidates = append(candidates, evidence.ID{Group: group, Kind: parent, Namespace: id.Namespace, Name: name[:cut]})
		}
	}
	for _, candidate := range candidates {
		if o.wanted[candidate] {
			return candidate
		}
	}
	return candidates[min(1, len(candidates)-1)]
}

// Mounts lists the ConfigMaps and Secrets that the Pods which are there mount as volumes, each with
// the Pods that do.
func (o *Observer) Mounts() map[evidence.ID][]string {
	mounts := map[evidence.ID][]string{}
	for _, pod := range o.pods() {
		id := evidence.IDOf(pod)
		spec, _ := pod["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		for _, v := range volumes {
			volume, _ := v.(map[string]any)
			sources := []any{volume}
			if projected, ok := volume["projected"].(map[string]any); ok {
				list, _ := projected["sources"].([]any)
				sources = append(sources, list...)
			}
			for _, s := range sources {
				source, _ := s.(map[string]any)
				for field, kind := range map[string]string{"configMap": "ConfigMap", "secret": "Secret"} {
					from, _ := source[field].(map[string]any)
					name, _ := from["name"].(string)
					if name == "" {
						name, _ = from["secretName"].(string)
					}
					if name != "" {
						key := evidence.ID{Kind: kind, Namespace: id.Namespace, Name: name}
						mounts[key] = append(mounts[key], id.Name)
					}
				}
			}
		}
	}
	return mounts
}
