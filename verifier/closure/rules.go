package closure

import (
	"strconv"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// anyVolume is the name of a PersistentVolume when any will do.
const anyVolume = "*"

// given are the objects that every throwaway cluster has before anything is applied. A star at the end
// of a name stands for any rest, as a namespace for any namespace.
var given = []struct {
	id     evidence.ID
	reason string
}{
	{evidence.ID{Kind: "Namespace", Name: "default"}, "the API server creates it"},
	{evidence.ID{Kind: "Namespace", Name: "kube-system"}, "the API server creates it"},
	{evidence.ID{Kind: "Namespace", Name: "kube-public"}, "the API server creates it"},
	{evidence.ID{Kind: "Namespace", Name: "kube-node-lease"}, "the API server creates it"},
	{evidence.ID{Kind: "Service", Namespace: "default", Name: "kubernetes"}, "the API server creates it"},
	{evidence.ID{Kind: "Service", Namespace: "kube-system", Name: "kube-dns"}, "kind installs CoreDNS under this name"},
	{evidence.ID{Kind: "ConfigMap", Namespace: "*", Name: "kube-root-ca.crt"}, "the controller manager puts it in every namespace"},
	{evidence.ID{Kind: "ConfigMap", Namespace: "kube-system", Name: "extension-apiserver-authentication"}, "the API server creates it"},
	{evidence.ID{Kind: "ServiceAccount", Namespace: "*", Name: "default"}, "the controller manager puts it in every namespace"},
	{evidence.ID{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: "system-cluster-critical"}, "the API server creates it"},
	{evidence.ID{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: "system-node-critical"}, "the API server creates it"},
	{evidence.ID{Group: storageGroup, Kind: "StorageClass", Name: "standard"}, "kind installs it as the default class"},
	{evidence.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "cluster-admin"}, "bootstrap role of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "admin"}, "bootstrap role of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "edit"}, "bootstrap role of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "view"}, "bootstrap role of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "system:*"}, "bootstrap roles of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "Role", Namespace: "kube-system", Name: "extension-apiserver-authentication-reader"}, "bootstrap role of the API server"},
	{evidence.ID{Group: rbacGroup, Kind: "Role", Namespace: "kube-system", Name: "system:*"}, "bootstrap roles of the API server"},
}

// alwaysThere tells whether every throwaway cluster has the thing, and why.
func alwaysThere(id evidence.ID) (reason string, there bool) {
	for _, rule := range given {
		want := rule.id
		if want.Group != id.Group || want.Kind != id.Kind || (want.Namespace != "*" && want.Namespace != id.Namespace) {
			continue
		}
		prefix, open := strings.CutSuffix(want.Name, "*")
		if want.Name == id.Name || (open && strings.HasPrefix(id.Name, prefix)) {
			return rule.reason, true
		}
	}
	return "", false
}

// clusterScoped are the built-in kinds that live in no namespace
// (https://kubernetes.io/docs/reference/kubernetes-api/).
var clusterScoped = kinds("Namespace Node PersistentVolume ComponentStatus " +
	"ClusterRole ClusterRoleBinding CustomResourceDefinition APIService " +
	"StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass StorageVersionMigration StorageVersion " +
	"PriorityClass RuntimeClass IngressClass IPAddress ServiceCIDR PodSecurityPolicy " +
	"MutatingWebhookConfiguration ValidatingWebhookConfiguration " +
	"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding " +
	"CertificateSigningRequest ClusterTrustBundle FlowSchema PriorityLevelConfiguration " +
	"DeviceClass ResourceSlice DeviceTaintRule TokenReview SelfSubjectReview " +
	"SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview")

// clusterWide are the cluster-scoped custom kinds that references name.
var clusterWide = map[evidence.ID]bool{
	{Group: certGroup, Kind: "ClusterIssuer"}:          true,
	{Group: externalGroup, Kind: "ClusterSecretStore"}: true,
	{Group: gatewayGroup, Kind: "GatewayClass"}:        true,
}

func kinds(list string) map[string]bool {
	set := map[string]bool{}
	for kind := range strings.FieldsSeq(list) {
		set[kind] = true
	}
	return set
}

// producers are the kinds whose controllers make other objects. That the controller and its
// definitions are there is a need of its own. A new producer is a new row.
var producers = []struct {
	kindRule
	made func(root node, ns string) []evidence.ID
}{
	{kindRule{externalGroup, "ExternalSecret"}, func(root node, ns string) []evidence.ID {
		return secret(ns, root.at("spec", "target", "name").or(root.at("metadata", "name").text()))
	}},
	{kindRule{certGroup, "Certificate"}, func(root node, ns string) []evidence.ID {
		return secret(ns, root.at("spec", "secretName").text())
	}},
	{kindRule{sealedGroup, "SealedSecret"}, func(root node, ns string) []evidence.ID {
		return secret(ns, root.at("metadata", "name").text())
	}},
	{kindRule{networkGroup, "Ingress"}, annotatedTLS},
	{kindRule{gatewayGroup, "Gateway"}, annotatedTLS},
	{kindRule{"apps", "StatefulSet"}, claims},
	{kindRule{"", "PersistentVolume"}, func(root node, _ string) []evidence.ID {
		class := root.at("spec", "storageClassName").text()
		if class == "" {
			return []evidence.ID{{Kind: "PersistentVolume", Name: anyVolume}}
		}
		// A claim binds to a made volume of its class, although the class is no object.
		return []evidence.ID{{Group: storageGroup, Kind: "StorageClass", Name: class}}
	}},
}

func secret(ns, name string) []evidence.ID {
	return []evidence.ID{{Kind: "Secret", Namespace: ns, Name: name}}
}

// annotatedTLS are the Secrets that cert-manager makes for an annotated Ingress or Gateway
// (https://cert-manager.io/docs/usage/ingress/).
func annotatedTLS(root node, ns string) []evidence.ID {
	notes := root.at("metadata", "annotations")
	if !notes.at("cert-manager.io/issuer").exists() && !notes.at("cert-manager.io/cluster-issuer").exists() {
		return nil
	}
	var made []evidence.ID
	for _, tls := range root.at("spec").each("tls") {
		made = append(made, secret(ns, tls.at("secretName").text())...)
	}
	for _, listener := range root.at("spec").each("listeners") {
		for _, ref := range listener.at("tls").each("certificateRefs") {
			made = append(made, secret(ns, ref.at("name").text())...)
		}
	}
	return made
}

// claims are the claims that a StatefulSet makes for its Pods: template-set-ordinal.
func claims(root node, ns string) []evidence.ID {
	replicas, ok := root.at("spec", "replicas").value.(int64)
	if !ok {
		replicas = 1
	}
	start, _ := root.at("spec", "ordinals", "start").value.(int64)
	var made []evidence.ID
	for _, template := range root.at("spec").each("volumeClaimTemplates") {
		for i := range min(replicas, 1000) {
			name := template.at("metadata", "name").text() + "-" + root.at("metadata", "name").text() + "-" + strconv.FormatInt(start+i, 10)
			made = append(made, evidence.ID{Kind: "PersistentVolumeClaim", Namespace: ns, Name: name})
		}
	}
	return made
}
