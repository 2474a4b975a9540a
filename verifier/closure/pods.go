package closure

import (
	"slices"
	"strconv"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// podExtractors find what a Pod needs. A new kind of reference is a new row.
var podExtractors = []func(pod evidence.PodSpec, ns string, add func(need)){
	containerEnvironment,
	podVolumes,
	mountedKeys,
	podNames,
	podPullSecrets,
	extendedResources,
}

func podNode(pod evidence.PodSpec) node { return node{value: pod.Spec, path: pod.Path} }

func containers(pod evidence.PodSpec) []node {
	var nodes []node
	for _, c := range pod.Containers() {
		nodes = append(nodes, node{value: c.Spec, path: c.Path})
	}
	return nodes
}

// sourceKinds are the kinds that hold keys, by the fields that refer to them.
var sourceKinds = map[string]struct{ kind, code string }{
	"configMapKeyRef": {"ConfigMap", "missing-configmap"},
	"configMapRef":    {"ConfigMap", "missing-configmap"},
	"configMap":       {"ConfigMap", "missing-configmap"},
	"secretKeyRef":    {"Secret", "missing-secret"},
	"secretRef":       {"Secret", "missing-secret"},
	"secret":          {"Secret", "missing-secret"},
}

// source is the need for the ConfigMap or Secret that ref names.
func source(ref node, ns, nameField string) need {
	kind := sourceKinds[ref.key()]
	name := ref.at(nameField)
	return need{
		code: kind.code, id: evidence.ID{Kind: kind.kind, Namespace: ns, Name: name.text()}, field: name.path,
		optional: ref.at("optional").isTrue(),
	}
}

func withKey(n need, key node) need {
	n.key, n.keyField = key.text(), key.path
	return n
}

func containerEnvironment(pod evidence.PodSpec, ns string, add func(need)) {
	for _, container := range containers(pod) {
		for _, env := range container.each("env") {
			for _, field := range []string{"configMapKeyRef", "secretKeyRef"} {
				ref := env.at("valueFrom", field)
				add(withKey(source(ref, ns, "name"), ref.at("key")))
			}
		}
		for _, from := range container.each("envFrom") {
			add(source(from.at("configMapRef"), ns, "name"))
			add(source(from.at("secretRef"), ns, "name"))
		}
	}
}

func podVolumes(pod evidence.PodSpec, ns string, add func(need)) {
	for _, volume := range podNode(pod).each("volumes") {
		addSource(volume.at("configMap"), ns, "name", add)
		addSource(volume.at("secret"), ns, "secretName", add)
		for _, projected := range volume.at("projected").each("sources") {
			addSource(projected.at("configMap"), ns, "name", add)
			addSource(projected.at("secret"), ns, "name", add)
		}
		claim := volume.at("persistentVolumeClaim", "claimName")
		add(need{code: "missing-pvc", id: evidence.ID{Kind: "PersistentVolumeClaim", Namespace: ns, Name: claim.text()}, field: claim.path})
		storageClass(volume.at("ephemeral", "volumeClaimTemplate", "spec"), add)
		for _, plugin := range volume.fields() {
			add(source(plugin.at("secretRef"), ns, "name"))
		}
		driver := volume.at("csi", "nodePublishSecretRef", "name")
		add(need{code: "missing-secret", id: evidence.ID{Kind: "Secret", Namespace: ns, Name: driver.text()}, field: driver.path})
	}
}

// addSource adds the source itself, or each of the keys that its items name.
func addSource(ref node, ns, nameField string, add func(need)) {
	whole := source(ref, ns, nameField)
	items := ref.each("items")
	if len(items) == 0 {
		add(whole)
	}
	for _, item := range items {
		add(withKey(whole, item.at("key")))
	}
}

// mountedKeys finds keys that a mount names by subPath. Where the key is not there, the kubelet mounts
// an empty directory in its place.
func mountedKeys(pod evidence.PodSpec, ns string, add func(need)) {
	keyed := map[string]need{}
	for _, volume := range podNode(pod).each("volumes") {
		for field, nameField := range map[string]string{"configMap": "name", "secret": "secretName"} {
			if ref := volume.at(field); len(ref.each("items")) == 0 && ref.at(nameField).text() != "" {
				keyed[volume.at("name").text()] = source(ref, ns, nameField)
			}
		}
	}
	for _, container := range containers(pod) {
		for _, mount := range container.each("volumeMounts") {
			n, ok := keyed[mount.at("name").text()]
			subPath := mount.at("subPath")
			key, _, _ := strings.Cut(subPath.text(), "/")
			if ok && key != "" && key != "." {
				n.key, n.keyField = key, subPath.path
				add(n)
			}
		}
	}
}

func podNames(pod evidence.PodSpec, ns string, add func(need)) {
	spec := podNode(pod)
	account := spec.at("serviceAccountName")
	if account.text() == "" {
		account = spec.at("serviceAccount")
	}
	add(need{code: "missing-serviceaccount", id: evidence.ID{Kind: "ServiceAccount", Namespace: ns, Name: account.text()}, field: account.path})
	priority := spec.at("priorityClassName")
	add(need{code: "missing-priorityclass", id: evidence.ID{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: priority.text()}, field: priority.path})
	runtime := spec.at("runtimeClassName")
	add(need{code: "missing-runtimeclass", id: evidence.ID{Group: "node.k8s.io", Kind: "RuntimeClass", Name: runtime.text()}, field: runtime.path})
}

func podPullSecrets(pod evidence.PodSpec, ns string, add func(need)) {
	pullSecrets(podNode(pod), ns, add)
}

// pullSecrets only warns: the kubelet goes on without a pull secret that is not there.
func pullSecrets(parent node, ns string, add func(need)) {
	for _, ref := range parent.each("imagePullSecrets") {
		name := ref.at("name")
		add(need{code: "missing-secret", severity: evidence.Warn, id: evidence.ID{Kind: "Secret", Namespace: ns, Name: name.text()}, field: name.path,
			message: "pull secret not in the repository; the kubelet pulls without it",
			do:      "add it to the repository, or remove the reference"})
	}
}

// extendedResources finds resources that only a device plugin on the node offers
// (https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources).
func extendedResources(pod evidence.PodSpec, _ string, add func(need)) {
	for _, container := range containers(pod) {
		var named []string
		for _, list := range []string{"limits", "requests"} {
			for _, quantity := range container.at("resources", list).fields() {
				name := quantity.key()
				domain, _, qualified := strings.Cut(name, "/")
				native := domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
				if !qualified || native || isZero(quantity.value) || slices.Contains(named, name) {
					continue
				}
				named = append(named, name)
				add(need{code: "missing-node-resource", id: evidence.ID{Kind: nodeResource, Name: name}, field: quantity.path,
					message: "no node of the throwaway cluster offers this resource",
					do:      "run it where a device plugin offers " + name + ", or make the request optional in an overlay for the rebuild"})
			}
		}
	}
}

func isZero(quantity any) bool {
	switch q := quantity.(type) {
	case string:
		f, err := strconv.ParseFloat(q, 64)
		return err == nil && f == 0
	case int64:
		return q == 0
	case float64:
		return q == 0
	}
	return false
}
