package render

import (
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	sigsyaml "sigs.k8s.io/yaml"
)

// served is what a new cluster of DefaultKubeVersion serves: the versions that the API server enables
// by default, all of them stable, with their kinds.
const served = `
v1 Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
apiextensions.k8s.io/v1 CustomResourceDefinition
apiregistration.k8s.io/v1 APIService
apps/v1 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
authentication.k8s.io/v1 SelfSubjectReview TokenReview
authorization.k8s.io/v1 LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
autoscaling/v1 HorizontalPodAutoscaler
autoscaling/v2 HorizontalPodAutoscaler
batch/v1 CronJob Job
certificates.k8s.io/v1 CertificateSigningRequest ClusterTrustBundle PodCertificateRequest
coordination.k8s.io/v1 Lease
discovery.k8s.io/v1 EndpointSlice
events.k8s.io/v1 Event
flowcontrol.apiserver.k8s.io/v1 FlowSchema PriorityLevelConfiguration
networking.k8s.io/v1 IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR
node.k8s.io/v1 RuntimeClass
policy/v1 PodDisruptionBudget
rbac.authorization.k8s.io/v1 ClusterRole ClusterRoleBinding Role RoleBinding
resource.k8s.io/v1 DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice
scheduling.k8s.io/v1 PriorityClass
storage.k8s.io/v1 CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass
storagemigration.k8s.io/v1 StorageVersionMigration
`

// apiVersions are the Capabilities of an install into a new cluster: what it serves, what the chart's
// own crds/ define, which Helm installs before it asks, and what the caller adds.
func apiVersions(c *chart.Chart, more []string) []string {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(served)) {
		fields := strings.Fields(line)
		all = append(all, fields[0])
		for _, kind := range fields[1:] {
			all = append(all, fields[0]+"/"+kind)
		}
	}
	for _, crd := range c.CRDObjects() {
		docs, _ := split(crd.File.Data)
		for _, doc := range docs {
			var d struct {
				Spec struct {
					Group    string
					Names    struct{ Kind string }
					Versions []struct {
						Name   string
						Served bool
					}
				}
			}
			if sigsyaml.Unmarshal(doc.text, &d) != nil {
				continue // told when the document is rendered
			}
			for _, v := range d.Spec.Versions {
				if v.Served {
					all = append(all, d.Spec.Group+"/"+v.Name, d.Spec.Group+"/"+v.Name+"/"+d.Spec.Names.Kind)
				}
			}
		}
	}
	return append(all, more...)
}
