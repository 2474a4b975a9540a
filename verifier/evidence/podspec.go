package evidence

import (
	"maps"
	"slices"
	"strings"
)

// PodSpec is the spec of a Pod inside an object: of a Pod itself, of a workload's template, or of a
// template inside a custom resource.
type PodSpec struct {
	// Path leads from the object to Spec.
	Path []any
	Spec map[string]any
	// Meta is the metadata beside Spec, nil when there is none.
	Meta map[string]any
	// Real is true at the path that Kubernetes defines for the kind, and in custom resources at the
	// spec of a template. Elsewhere the shape alone speaks for a Pod.
	Real bool
}

// PodContainer is one entry of the containers of a Pod spec.
type PodContainer struct {
	// Path leads from the object to Spec; its second last step names the list: containers,
	// initContainers or ephemeralContainers.
	Path []any
	Spec map[string]any
}

// podPaths are the paths to the Pod spec in the built-in kinds, by group and kind.
var podPaths = map[[2]string][]any{
	{"", "Pod"}:                   {"spec"},
	{"", "PodTemplate"}:           {"template", "spec"},
	{"", "ReplicationController"}: {"spec", "template", "spec"},
	{"apps", "Deployment"}:        {"spec", "template", "spec"},
	{"apps", "StatefulSet"}:       {"spec", "template", "spec"},
	{"apps", "DaemonSet"}:         {"spec", "template", "spec"},
	{"apps", "ReplicaSet"}:        {"spec", "template", "spec"},
	{"extensions", "Deployment"}:  {"spec", "template", "spec"},
	{"extensions", "DaemonSet"}:   {"spec", "template", "spec"},
	{"extensions", "ReplicaSet"}:  {"spec", "template", "spec"},
	{"batch", "Job"}:              {"spec", "template", "spec"},
	{"batch", "CronJob"}:          {"spec", "jobTemplate", "spec", "template", "spec"},
}

// PodSpecs finds every Pod spec of the object, in the order of their paths. In kinds that Kubernetes
// does not define itself it looks for the shape at any depth: a map with a list named containers, all
// of whose items have an image and, outside a field named spec, a name.
func (o *Object) PodSpecs() []PodSpec {
	if path, ok := podPaths[[2]string{o.Group, o.Kind}]; ok {
		parent := o.Content
		for _, step := range path[:len(path)-1] {
			parent, _ = parent[step.(string)].(map[string]any)
		}
		spec, ok := parent["spec"].(map[string]any)
		if !ok {
			return nil
		}
		meta, _ := parent["metadata"].(map[string]any)
		return []PodSpec{{Path: path, Spec: spec, Meta: meta, Real: true}}
	}
	if BuiltInGroup(o.Group) {
		return nil
	}
	var found []PodSpec
	findPodSpecs(o.Content, nil, nil, &found)
	return found
}

func findPodSpecs(value any, path []any, parent map[string]any, found *[]PodSpec) {
	switch value := value.(type) {
	case map[string]any:
		inSpec := len(path) > 0 && path[len(path)-1] == "spec"
		if looksLikePod(value, inSpec) {
			pod := PodSpec{Path: slices.Clone(path), Spec: value, Real: inSpec && len(path) > 1}
			if pod.Real {
				pod.Meta, _ = parent["metadata"].(map[string]any)
			}
			*found = append(*found, pod)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			findPodSpecs(value[key], append(path, key), value, found)
		}
	case []any:
		for i, item := range value {
			findPodSpecs(item, append(path, i), nil, found)
		}
	}
}

func looksLikePod(spec map[string]any, inSpec bool) bool {
	containers, _ := spec["containers"].([]any)
	for _, item := range containers {
		container, _ := item.(map[string]any)
		image, _ := container["image"].(string)
		name, _ := container["name"].(string)
		if image == "" || (name == "" && !inSpec) {
			return false
		}
	}
	return len(containers) > 0
}

// Containers lists the init containers, containers and ephemeral containers, in this order.
func (p PodSpec) Containers() []PodContainer {
	var all []PodContainer
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		items, _ := p.Spec[list].([]any)
		for i, item := range items {
			if spec, ok := item.(map[string]any); ok {
				all = append(all, PodContainer{Path: append(slices.Clone(p.Path), list, i), Spec: spec})
			}
		}
	}
	return all
}

// builtInGroups are the API groups with a dot that the API server itself serves
// (https://kubernetes.io/docs/reference/kubernetes-api/). Other groups under k8s.io, such as
// gateway.networking.k8s.io, are served through CustomResourceDefinitions.
var builtInGroups = map[string]bool{
	"admissionregistration.k8s.io": true,
	"apiextensions.k8s.io":         true,
	"apiregistration.k8s.io":       true,
	"authentication.k8s.io":        true,
	"authorization.k8s.io":         true,
	"certificates.k8s.io":          true,
	"coordination.k8s.io":          true,
	"discovery.k8s.io":             true,
	"events.k8s.io":                true,
	"flowcontrol.apiserver.k8s.io": true,
	"internal.apiserver.k8s.io":    true,
	"networking.k8s.io":            true,
	"node.k8s.io":                  true,
	"rbac.authorization.k8s.io":    true,
	"resource.k8s.io":              true,
	"scheduling.k8s.io":            true,
	"storage.k8s.io":               true,
	"storagemigration.k8s.io":      true,
}

// BuiltInGroup tells whether the API server serves the group itself. The name of a group that a
// CustomResourceDefinition adds always holds a dot.
func BuiltInGroup(group string) bool {
	return !strings.Contains(group, ".") || builtInGroups[group]
}
