package closure

import (
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// removedVersions are the built-in versions that Kubernetes serves no more, with what took their place
// (https://kubernetes.io/docs/reference/using-api/deprecation-guide/). Kinds are separated by a bar,
// and empty where the whole version is gone.
var removedVersions = []struct{ apiVersion, kinds, instead string }{
	{"extensions/v1beta1", "Deployment|DaemonSet|ReplicaSet", "apps/v1"},
	{"extensions/v1beta1", "Ingress|NetworkPolicy", "networking.k8s.io/v1"},
	{"extensions/v1beta1", "", ""},
	{"apps/v1beta1", "", "apps/v1"},
	{"apps/v1beta2", "", "apps/v1"},
	{"batch/v1beta1", "", "batch/v1"},
	{"batch/v2alpha1", "", "batch/v1"},
	{"autoscaling/v2beta1", "", "autoscaling/v2"},
	{"autoscaling/v2beta2", "", "autoscaling/v2"},
	{"policy/v1beta1", "PodDisruptionBudget", "policy/v1"},
	{"policy/v1beta1", "", ""},
	{"networking.k8s.io/v1beta1", "Ingress|IngressClass", "networking.k8s.io/v1"},
	{"rbac.authorization.k8s.io/v1beta1", "", "rbac.authorization.k8s.io/v1"},
	{"rbac.authorization.k8s.io/v1alpha1", "", "rbac.authorization.k8s.io/v1"},
	{"apiextensions.k8s.io/v1beta1", "", "apiextensions.k8s.io/v1"},
	{"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration|ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"},
	{"apiregistration.k8s.io/v1beta1", "", "apiregistration.k8s.io/v1"},
	{"authentication.k8s.io/v1beta1", "TokenReview", "authentication.k8s.io/v1"},
	{"authorization.k8s.io/v1beta1", "", "authorization.k8s.io/v1"},
	{"certificates.k8s.io/v1beta1", "CertificateSigningRequest", "certificates.k8s.io/v1"},
	{"coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1"},
	{"discovery.k8s.io/v1beta1", "", "discovery.k8s.io/v1"},
	{"events.k8s.io/v1beta1", "", "events.k8s.io/v1"},
	{"flowcontrol.apiserver.k8s.io/v1beta1", "", "flowcontrol.apiserver.k8s.io/v1"},
	{"flowcontrol.apiserver.k8s.io/v1beta2", "", "flowcontrol.apiserver.k8s.io/v1"},
	{"flowcontrol.apiserver.k8s.io/v1beta3", "", "flowcontrol.apiserver.k8s.io/v1"},
	{"node.k8s.io/v1beta1", "", "node.k8s.io/v1"},
	{"scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"},
	{"scheduling.k8s.io/v1alpha1", "PriorityClass", "scheduling.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "CSIDriver|CSINode|StorageClass|VolumeAttachment|CSIStorageCapacity", "storage.k8s.io/v1"},
}

// removed finds built-in versions that no Kubernetes release in use serves.
func removed(object *evidence.Object) []evidence.Finding {
	for _, row := range removedVersions {
		if row.apiVersion != object.APIVersion || (row.kinds != "" && !(kindRule{object.Group, row.kinds}).matches(object.ID)) {
			continue
		}
		finding := evidence.Finding{
			Code: "api-removed", Severity: evidence.Fail, Object: object.ID.String(),
			Field: "apiVersion", Origin: object.At("apiVersion"), Got: object.APIVersion, Want: row.instead,
			Message: "Kubernetes serves " + object.APIVersion + " no more", Do: "remove the object: nothing took its place",
		}
		if row.instead != "" {
			finding.Do = "move it to " + row.instead
		}
		return []evidence.Finding{finding}
	}
	return nil
}

// encrypted finds objects whose content only a key outside the repository opens.
func encrypted(object *evidence.Object) []evidence.Finding {
	finding := evidence.Finding{Code: "input-encrypted", Severity: evidence.Fail, Object: object.ID.String()}
	var path []any
	switch root := (node{value: object.Content}); {
	case isMap(root.at("sops").value):
		path = []any{"sops"}
		finding.Message = "encrypted with SOPS: its key is not in the repository, and the API server refuses the object as it is"
	case object.Group == sealedGroup && object.Kind == "SealedSecret":
		path = []any{"spec", "encryptedData"}
		finding.Message = "sealed: only the key of the controller that sealed it opens it, and that is not in the repository"
	default:
		return nil
	}
	finding.Field, finding.Origin = evidence.FieldPath(path...), object.At(path...)
	finding.Do = "version what the rebuild may use in its place"
	return []evidence.Finding{finding}
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// ownNeeds is what an object needs to exist at all: its namespace and the definition of its kind.
func (w *world) ownNeeds(object *evidence.Object, ns string, add func(need)) {
	add(need{code: "missing-namespace", id: evidence.ID{Kind: "Namespace", Name: ns}, field: []any{"metadata", "namespace"}})
	if evidence.BuiltInGroup(object.Group) {
		return
	}
	definition := need{code: "missing-crd", field: []any{"apiVersion"}, id: evidence.ID{
		Group: crdGroup, Kind: crdKind, Name: plural(object.Kind) + "." + object.Group,
	}}
	_, version, _ := strings.Cut(object.APIVersion, "/")
	crd := w.crds[[2]string{object.Group, object.Kind}]
	switch {
	case crd == nil:
		definition.message = "no definition of " + object.Kind + " in " + object.APIVersion + " in the repository"
		definition.do = "add the CustomResourceDefinition to the repository"
	case !serves(crd, version):
		definition.id.Name = crd.Name + " version " + version
		definition.message = "the definition in the repository does not serve version " + version
		definition.do = "serve the version in the CustomResourceDefinition, or use one that it serves"
	default:
		definition.id = crd.ID
	}
	add(definition)
}

// serves tells whether a definition serves a version; one that lists none has only spec.version.
func serves(crd *evidence.Object, version string) bool {
	spec := node{value: crd.Content}.at("spec")
	versions := spec.each("versions")
	for _, v := range versions {
		if v.at("name").text() == version {
			return v.at("served").isTrue()
		}
	}
	return len(versions) == 0 && spec.at("version").text() == version
}

// plural guesses the resource name of a kind by the rules of English that kinds follow.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"), strings.HasSuffix(name, "sh"):
		return name + "es"
	case len(name) > 1 && strings.HasSuffix(name, "y") && !strings.ContainsRune("aeiou", rune(name[len(name)-2])):
		return name[:len(name)-1] + "ies"
	}
	return name + "s"
}
