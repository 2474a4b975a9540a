package closure

import (
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const (
	admissionGroup   = "admissionregistration.k8s.io"
	autoscalingGroup = "autoscaling"
	certGroup        = "cert-manager.io"
	crdGroup         = "apiextensions.k8s.io"
	externalGroup    = "external-secrets.io"
	gatewayGroup     = "gateway.networking.k8s.io"
	networkGroup     = "networking.k8s.io"
	rbacGroup        = "rbac.authorization.k8s.io"
	sealedGroup      = "bitnami.com"
	storageGroup     = "storage.k8s.io"

	crdKind = "CustomResourceDefinition"

	// nodeResource stands for a kind: a node resource is no object.
	nodeResource = "NodeResource"
)

// kindRule selects objects by group and kind; kinds are separated by a bar.
type kindRule struct{ group, kinds string }

func (r kindRule) matches(id evidence.ID) bool {
	if id.Group != r.group {
		return false
	}
	for kind := range strings.SplitSeq(r.kinds, "|") {
		if kind == id.Kind {
			return true
		}
	}
	return false
}

// objectExtractors find what objects other than Pods need. A new kind of reference is a new row.
var objectExtractors = []struct {
	kindRule
	extract func(root node, ns string, add func(need))
}{
	{kindRule{"", "ServiceAccount"}, pullSecrets},
	{kindRule{"", "PersistentVolumeClaim"}, func(root node, _ string, add func(need)) { storageClass(root.at("spec"), add) }},
	{kindRule{"apps", "StatefulSet"}, statefulSet},
	{kindRule{rbacGroup, "RoleBinding|ClusterRoleBinding"}, roleBinding},
	{kindRule{networkGroup, "Ingress"}, ingress},
	{kindRule{gatewayGroup, "HTTPRoute|GRPCRoute|TLSRoute|TCPRoute|UDPRoute"}, gatewayRoute},
	{kindRule{gatewayGroup, "Gateway"}, gateway},
	{kindRule{autoscalingGroup, "HorizontalPodAutoscaler"}, scaleTarget},
	{kindRule{admissionGroup, "MutatingWebhookConfiguration|ValidatingWebhookConfiguration"}, func(root node, _ string, add func(need)) {
		for _, hook := range root.each("webhooks") {
			service(hook.at("clientConfig", "service"), add)
		}
	}},
	{kindRule{crdGroup, crdKind}, func(root node, _ string, add func(need)) {
		service(root.at("spec", "conversion", "webhook", "clientConfig", "service"), add)
	}},
	{kindRule{"apiregistration.k8s.io", "APIService"}, func(root node, _ string, add func(need)) {
		service(root.at("spec", "service"), add)
	}},
	{kindRule{externalGroup, "ExternalSecret"}, func(root node, ns string, add func(need)) {
		namedObject(root.at("spec", "secretStoreRef"), externalGroup, "SecretStore", ns, add)
	}},
	{kindRule{certGroup, "Certificate"}, func(root node, ns string, add func(need)) {
		ref := root.at("spec", "issuerRef")
		namedObject(ref, ref.at("group").or(certGroup), "Issuer", ns, add)
	}},
}

// storageClass reads the spec of a claim. An absent class takes the default one; an empty class binds
// only to a volume that someone made, as does a claim that names its volume.
func storageClass(claim node, add func(need)) {
	class := claim.at("storageClassName")
	volume := claim.at("volumeName")
	switch {
	case volume.text() != "":
		add(need{code: "missing-pvc", id: evidence.ID{Kind: "PersistentVolume", Name: volume.text()}, field: volume.path,
			message: "the claim names this volume, and it is not in the repository"})
	case class.exists() && class.text() == "":
		add(need{code: "missing-pvc", id: evidence.ID{Kind: "PersistentVolume", Name: anyVolume}, field: class.path,
			message: "an empty storage class binds only to a made volume, and none is in the repository",
			do:      "add a PersistentVolume, or leave storageClassName out to take the default class"})
	default:
		add(need{code: "missing-storageclass", id: evidence.ID{Group: storageGroup, Kind: "StorageClass", Name: class.text()}, field: class.path})
	}
}

func statefulSet(root node, ns string, add func(need)) {
	for _, template := range root.at("spec").each("volumeClaimTemplates") {
		storageClass(template.at("spec"), add)
	}
	name := root.at("spec", "serviceName")
	add(need{code: "missing-service", id: evidence.ID{Kind: "Service", Namespace: ns, Name: name.text()}, field: name.path})
}

func roleBinding(root node, ns string, add func(need)) {
	ref := root.at("roleRef")
	id := evidence.ID{Group: rbacGroup, Kind: ref.at("kind").text(), Name: ref.at("name").text()}
	if id.Kind == "Role" {
		id.Namespace = ns
	}
	add(need{code: "missing-role", id: id, field: ref.at("name").path})
}

func ingress(root node, ns string, add func(need)) {
	spec := root.at("spec")
	backends := []node{spec.at("defaultBackend")}
	for _, rule := range spec.each("rules") {
		for _, path := range rule.at("http").each("paths") {
			backends = append(backends, path.at("backend"))
		}
	}
	for _, backend := range backends {
		name := backend.at("service", "name")
		add(need{code: "missing-service", id: evidence.ID{Kind: "Service", Namespace: ns, Name: name.text()}, field: name.path})
	}
	for _, tls := range spec.each("tls") {
		name := tls.at("secretName")
		add(need{code: "missing-secret", id: evidence.ID{Kind: "Secret", Namespace: ns, Name: name.text()}, field: name.path})
	}
	class := spec.at("ingressClassName")
	add(need{code: "missing-ingressclass", id: evidence.ID{Group: networkGroup, Kind: "IngressClass", Name: class.text()}, field: class.path})
}

func gatewayRoute(root node, ns string, add func(need)) {
	spec := root.at("spec")
	for _, parent := range spec.each("parentRefs") {
		namedObject(parent, parent.at("group").or(gatewayGroup), "Gateway", parent.at("namespace").or(ns), add)
	}
	for _, rule := range spec.each("rules") {
		backends := rule.each("backendRefs")
		for _, filter := range rule.each("filters") {
			backends = append(backends, filter.at("requestMirror", "backendRef"))
		}
		for _, backend := range backends {
			if backend.at("group").text() == "" {
				namedObject(backend, "", "Service", backend.at("namespace").or(ns), add)
			}
		}
	}
}

func gateway(root node, ns string, add func(need)) {
	class := root.at("spec", "gatewayClassName")
	add(need{code: "object-missing", id: evidence.ID{Group: gatewayGroup, Kind: "GatewayClass", Name: class.text()}, field: class.path})
	for _, listener := range root.at("spec").each("listeners") {
		for _, ref := range listener.at("tls").each("certificateRefs") {
			if ref.at("group").text() == "" {
				namedObject(ref, "", "Secret", ref.at("namespace").or(ns), add)
			}
		}
	}
}

func scaleTarget(root node, ns string, add func(need)) {
	ref := root.at("spec", "scaleTargetRef")
	group, _, grouped := strings.Cut(ref.at("apiVersion").text(), "/")
	if !grouped {
		group = ""
	}
	namedObject(ref, group, "", ns, add)
}

func service(ref node, add func(need)) {
	namedObject(ref, "", "Service", ref.at("namespace").text(), add)
}

// namedObject reads a reference of the form {kind, name}. ns is dropped for the cluster-wide kinds of
// the same controllers.
func namedObject(ref node, group, defaultKind, ns string, add func(need)) {
	kind := ref.at("kind").or(defaultKind)
	if (evidence.BuiltInGroup(group) && clusterScoped[kind]) || clusterWide[evidence.ID{Group: group, Kind: kind}] {
		ns = ""
	}
	code := "object-missing"
	if group == "" && (kind == "Service" || kind == "Secret") {
		code = "missing-" + strings.ToLower(kind)
	}
	name := ref.at("name")
	add(need{code: code, id: evidence.ID{Group: group, Kind: kind, Namespace: ns, Name: name.text()}, field: name.path})
}
