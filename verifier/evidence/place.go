package evidence

import "strings"

// clusterScoped lists the kinds of Kubernetes' own groups that have no namespace.
// Source: https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/ (kinds without
// "namespace" in their paths).
var clusterScoped = map[string]bool{
	"/Namespace": true, "/Node": true, "/PersistentVolume": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy":          true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":   true,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   true,
	"apiextensions.k8s.io/CustomResourceDefinition":                 true,
	"apiregistration.k8s.io/APIService":                             true,
	"certificates.k8s.io/CertificateSigningRequest":                 true,
	"certificates.k8s.io/ClusterTrustBundle":                        true,
	"flowcontrol.apiserver.k8s.io/FlowSchema":                       true,
	"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration":       true,
	"networking.k8s.io/IngressClass":                                true,
	"networking.k8s.io/IPAddress":                                   true,
	"networking.k8s.io/ServiceCIDR":                                 true,
	"node.k8s.io/RuntimeClass":                                      true,
	"rbac.authorization.k8s.io/ClusterRole":                         true,
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  true,
	"resource.k8s.io/DeviceClass":                                   true,
	"resource.k8s.io/ResourceSlice":                                 true,
	"scheduling.k8s.io/PriorityClass":                               true,
	"storage.k8s.io/CSIDriver":                                      true,
	"storage.k8s.io/CSINode":                                        true,
	"storage.k8s.io/StorageClass":                                   true,
	"storage.k8s.io/VolumeAttachment":                               true,
	"storage.k8s.io/VolumeAttributesClass":                          true,
}

// Place gives every namespaced object of the set that names no namespace the target namespace, in
// its ID only (Git's text stays), and takes the namespace off cluster-scoped ones. Custom resources
// are as their definition in the set says, and namespaced where there is none. Objects stay sorted.
func (s *Set) Place(target string) {
	cluster := map[string]bool{}
	for _, o := range s.Objects {
		if group, kind, scope := defined(o); kind != "" {
			cluster[group+"/"+kind] = scope == "Cluster"
		}
	}
	for i := range s.Objects {
		id := &s.Objects[i].ID
		switch key := id.Group + "/" + id.Kind; {
		case clusterScoped[key] || cluster[key]:
			id.Namespace = ""
		case id.Namespace == "":
			id.Namespace = target
		}
	}
	SortObjects(s.Objects)
}

// defined is what a CustomResourceDefinition defines; kind is empty for any other object.
func defined(o Object) (group, kind, scope string) {
	if o.Kind != "CustomResourceDefinition" || o.Group != "apiextensions.k8s.io" {
		return "", "", ""
	}
	spec, _ := o.Content["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ = spec["group"].(string)
	kind, _ = names["kind"].(string)
	scope, _ = spec["scope"].(string)
	return group, kind, scope
}

// Defines tells whether a CustomResourceDefinition of the set defines the kind.
func (s *Set) Defines(group, kind string) bool {
	for _, o := range s.Objects {
		if g, k, _ := defined(o); g == group && k == kind && kind != "" {
			return true
		}
	}
	return false
}

// Namespaces are the namespaces that the set's objects live in, sorted by first use in the set.
func (s *Set) Namespaces() []string {
	var list []string
	seen := map[string]bool{"": true}
	for _, o := range s.Objects {
		if !seen[o.Namespace] {
			seen[o.Namespace] = true
			list = append(list, o.Namespace)
		}
	}
	return list
}

// Find is the object with that ID, or nil.
func (s *Set) Find(id ID) *Object {
	for i := range s.Objects {
		if s.Objects[i].ID == id {
			return &s.Objects[i]
		}
	}
	return nil
}

// SplitAPIVersion gives the group of an apiVersion: "" for v1, apps for apps/v1.
func SplitAPIVersion(apiVersion string) (group, version string) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "", group
	}
	return group, version
}

// IDOf reads the identity of an object from its content.
func IDOf(content map[string]any) ID {
	meta, _ := content["metadata"].(map[string]any)
	id := ID{}
	apiVersion, _ := content["apiVersion"].(string)
	id.Group, _ = SplitAPIVersion(apiVersion)
	id.Kind, _ = content["kind"].(string)
	id.Namespace, _ = meta["namespace"].(string)
	id.Name, _ = meta["name"].(string)
	return id
}

// ExpectsPods tells whether the set itself asks for at least one Pod, now and not at some time.
func (s *Set) ExpectsPods() bool {
	for _, o := range s.Objects {
		spec, _ := o.Content["spec"].(map[string]any)
		switch o.Group + "/" + o.Kind {
		case "/Pod", "apps/DaemonSet":
			return true
		case "apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "/ReplicationController":
			if n, declared := spec["replicas"].(int64); !declared || n > 0 {
				return true
			}
		case "batch/Job":
			if suspended, _ := spec["suspend"].(bool); !suspended {
				return true
			}
		}
	}
	return false
}
