package drift

import (
	"net"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// rule is a difference that is none, by name and with its reason. One of the two matchers is set.
type rule struct {
	Name, Reason string
	// declared is true when the rule also covers what Git declares itself.
	declared bool
	field    func(set *evidence.Set, object *evidence.Object, p path, who owner) bool
	object   func(c *comparison, o evidence.Listed) bool
}

// freshRule is counted, and explains nothing: for these objects only the first two comparisons ran.
var freshRule = rule{
	Name:   "defaults-not-asked",
	Reason: "the server would not say what Git's text alone becomes under another name, so that fields which nobody owns were not compared",
}

var fieldRules = []rule{
	{
		Name:     "autoscaler-owns-replicas",
		Reason:   "a HorizontalPodAutoscaler of the set targets the object and writes spec.replicas through its scale subresource, also where Git names a number",
		declared: true,
		field: func(set *evidence.Set, object *evidence.Object, p path, who owner) bool {
			return len(p) == 2 && p.under("spec", "replicas") && (who.subresource == "scale" || who == owner{}) && autoscaled(set, object)
		},
	},
	{
		Name:   "deployment-revision",
		Reason: "the Deployment controller counts rollouts in the annotation deployment.kubernetes.io/revision",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			return who.manager == "kube-controller-manager" && object.Group == "apps" && object.Kind == "Deployment" &&
				p.under("metadata", "annotations", "deployment.kubernetes.io/revision")
		},
	},
	{
		Name:   "volume-binding",
		Reason: "the volume controllers bind a claim: its volume's name and the pv.kubernetes.io and volume.kubernetes.io annotations",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			if object.Kind != "PersistentVolumeClaim" || object.Group != "" || (who.manager != "kube-controller-manager" && who.manager != "kube-scheduler") {
				return false
			}
			if len(p) == 3 && p.under("metadata", "annotations") && p[2].FieldName != nil {
				name := *p[2].FieldName
				return strings.HasPrefix(name, "pv.kubernetes.io/") || strings.HasPrefix(name, "volume.kubernetes.io/") || strings.HasPrefix(name, "volume.beta.kubernetes.io/")
			}
			return p.under("spec", "volumeName")
		},
	},
	{
		Name:   "service-addresses",
		Reason: "the API server allocates a Service's cluster IPs and node ports where Git names none",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			if object.Kind != "Service" || object.Group != "" || (who != owner{}) || !p.under("spec") {
				return false
			}
			last := p[len(p)-1].FieldName
			return p.under("spec", "clusterIP") && !declares(object, "spec", "clusterIP") ||
				p.under("spec", "clusterIPs") && !declares(object, "spec", "clusterIPs") && !declares(object, "spec", "clusterIP") ||
				p.under("spec", "healthCheckNodePort") && !declares(object, "spec", "healthCheckNodePort") ||
				p.under("spec", "ports") && last != nil && *last == "nodePort" // one that Git names is told as declared
		},
	},
	{
		Name:   "job-identity",
		Reason: "the API server puts a Job's own name and uid into its selector, its labels and those of its Pods",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			if object.Kind != "Job" || object.Group != "batch" || (who != owner{}) {
				return false
			}
			last := p[len(p)-1].FieldName
			return last != nil && (p.under("spec", "selector", "matchLabels") || p.under("metadata", "labels") || p.under("spec", "template", "metadata", "labels")) &&
				slices.Contains([]string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}, *last)
		},
	},
	{
		Name:   "autoscaler-status",
		Reason: "read as autoscaling/v1, an autoscaler's conditions and current metrics are annotations, which the API server makes from its status",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			return object.Kind == "HorizontalPodAutoscaler" && object.APIVersion == "autoscaling/v1" && (who == owner{}) &&
				(p.under("metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions") || p.under("metadata", "annotations", "autoscaling.alpha.kubernetes.io/current-metrics"))
		},
	},
	{
		Name:   "pod-binding",
		Reason: "a bare Pod gets its node from the scheduler, and a token volume of a random name from the API server",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			return object.Kind == "Pod" && object.Group == "" && (p.under("spec", "nodeName") && !declares(object, "spec", "nodeName") || (who == owner{}) && tokenVolume(p))
		},
	},
	{
		Name:   "token-secret",
		Reason: "the token controller fills a Secret of type kubernetes.io/service-account-token",
		field: func(_ *evidence.Set, object *evidence.Object, p path, who owner) bool {
			return object.Kind == "Secret" && object.Group == "" && object.Content["type"] == "kubernetes.io/service-account-token" &&
				who.manager == "kube-controller-manager" && (p.under("data") || p.under("metadata", "annotations", "kubernetes.io/service-account.uid"))
		},
	},
	{
		Name:     "aggregated-rules",
		Reason:   "the controller fills the rules of a ClusterRole that has an aggregationRule",
		declared: true,
		field: func(_ *evidence.Set, object *evidence.Object, p path, _ owner) bool {
			_, aggregated := object.Content["aggregationRule"]
			return aggregated && object.Kind == "ClusterRole" && p.under("rules")
		},
	},
}

// declares tells whether Git's text has the field.
func declares(object *evidence.Object, names ...string) bool {
	var value any = object.Content
	for _, name := range names {
		m, ok := value.(map[string]any)
		if !ok {
			return false
		}
		if value, ok = m[name]; !ok {
			return false
		}
	}
	return true
}

// tokenVolume tells whether the path is the name of a volume or of its mount: those of the token
// volume are random. Any other volume that is not Git's is told by its other fields.
func tokenVolume(p path) bool {
	last := p[len(p)-1].FieldName
	return last != nil && *last == "name" && (p.under("spec", "volumes") && len(p) == 4 || p.under("spec", "containers") && len(p) == 6 && *p[3].FieldName == "volumeMounts")
}

// autoscaled tells whether an autoscaler of the set targets the object.
func autoscaled(set *evidence.Set, object *evidence.Object) bool {
	for _, o := range set.Objects {
		if o.Kind != "HorizontalPodAutoscaler" || o.Group != "autoscaling" || o.Namespace != object.Namespace {
			continue
		}
		spec, _ := o.Content["spec"].(map[string]any)
		target, _ := spec["scaleTargetRef"].(map[string]any)
		apiVersion, _ := target["apiVersion"].(string)
		group, _ := evidence.SplitAPIVersion(apiVersion)
		if target["kind"] == object.Kind && target["name"] == object.Name && (group == object.Group || apiVersion == "") {
			return true
		}
	}
	return false
}

var objectRules = []rule{
	{
		Name:   "namespace-of-the-run",
		Reason: "the run makes the clean namespace that Git does not declare",
		object: func(c *comparison, o evidence.Listed) bool {
			return o.Kind == "Namespace" && o.Group == "" && slices.Contains(c.in.Namespaces, o.Name)
		},
	},
	{
		Name:   "stub-of-the-run",
		Reason: "the run makes a stub, marked as one, in the place of an input that is declared, or of what --explain-all goes past",
		object: func(c *comparison, o evidence.Listed) bool { return slices.Contains(c.in.Stubs, o.ID) },
	},
	{
		Name:   "made-in-every-namespace",
		Reason: "Kubernetes puts ServiceAccount default and ConfigMap kube-root-ca.crt into every namespace",
		object: func(_ *comparison, o evidence.Listed) bool {
			return o.Group == "" && (o.Kind == "ServiceAccount" && o.Name == "default" || o.Kind == "ConfigMap" && o.Name == "kube-root-ca.crt")
		},
	},
	{
		Name:   "endpoints-of-a-service",
		Reason: "the endpoints controller makes an Endpoints of the name of each Service, without an owner",
		object: func(c *comparison, o evidence.Listed) bool {
			if o.Group != "" || o.Kind != "Endpoints" {
				return false
			}
			service := evidence.ID{Kind: "Service", Namespace: o.Namespace, Name: o.Name}
			return c.declared[service] || slices.ContainsFunc(c.in.Before.Objects, func(b evidence.Listed) bool { return b.ID == service })
		},
	},
	{
		Name:   "address-of-a-service",
		Reason: "the API server makes an IPAddress for each cluster IP of a Service of the set",
		object: func(c *comparison, o evidence.Listed) bool {
			return o.Group == "networking.k8s.io" && o.Kind == "IPAddress" && c.serviceHas(o.Name)
		},
	},
	{
		Name:   "claim-of-a-statefulset",
		Reason: "the StatefulSet controller makes a claim a replica from each volumeClaimTemplate, without an owner",
		object: func(c *comparison, o evidence.Listed) bool {
			return o.Group == "" && o.Kind == "PersistentVolumeClaim" && c.claimOfStatefulSet(o.ID)
		},
	},
	{
		Name:   "volume-of-a-claim",
		Reason: "the provisioner makes a PersistentVolume pvc-UID for a claim of that UID",
		object: func(c *comparison, o evidence.Listed) bool {
			uid, ok := strings.CutPrefix(o.Name, "pvc-")
			return ok && o.Group == "" && o.Kind == "PersistentVolume" && c.uidIsExplained(uid)
		},
	},
	{
		Name:   "api-of-a-definition",
		Reason: "the API server registers an APIService for each version of a CustomResourceDefinition of the set",
		object: func(c *comparison, o evidence.Listed) bool {
			_, group, _ := strings.Cut(o.Name, ".")
			return o.Group == "apiregistration.k8s.io" && o.Kind == "APIService" && definesGroup(c.in.Set, group)
		},
	},
	{
		Name:   "token-tracking",
		Reason: "the API server keeps ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking from some time after its start",
		object: func(_ *comparison, o evidence.Listed) bool {
			return o.ID == evidence.ID{Kind: "ConfigMap", Namespace: "kube-system", Name: "kube-apiserver-legacy-service-account-token-tracking"}
		},
	},
	{
		Name:   "leases-and-node-state",
		Reason: "Kubernetes' own components keep leases and per-node storage state",
		object: func(_ *comparison, o evidence.Listed) bool {
			return o.Group == "coordination.k8s.io" && (o.Namespace == "kube-system" || o.Namespace == "kube-node-lease") ||
				o.Group == "storage.k8s.io" && (o.Kind == "CSINode" || o.Kind == "VolumeAttachment")
		},
	},
}

// serviceHas tells whether a live Service of the set has that cluster IP.
func (c *comparison) serviceHas(name string) bool {
	ip := net.ParseIP(name)
	for i, live := range c.in.Live {
		if c.in.Set.Objects[i].Kind != "Service" || live.Content == nil {
			continue
		}
		spec, _ := live.Content["spec"].(map[string]any)
		ips, _ := spec["clusterIPs"].([]any)
		for _, candidate := range ips {
			text, _ := candidate.(string)
			if ip != nil && ip.Equal(net.ParseIP(text)) {
				return true
			}
		}
	}
	return false
}

func (c *comparison) claimOfStatefulSet(claim evidence.ID) bool {
	for _, o := range c.in.Set.Objects {
		if o.Kind != "StatefulSet" || o.Namespace != claim.Namespace {
			continue
		}
		spec, _ := o.Content["spec"].(map[string]any)
		templates, _ := spec["volumeClaimTemplates"].([]any)
		for _, t := range templates {
			template, _ := t.(map[string]any)
			meta, _ := template["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			if ordinal, ok := strings.CutPrefix(claim.Name, name+"-"+o.Name+"-"); ok && name != "" && ordinal != "" && strings.Trim(ordinal, "0123456789") == "" {
				return true
			}
		}
	}
	return false
}

func definesGroup(set *evidence.Set, group string) bool {
	for _, o := range set.Objects {
		spec, _ := o.Content["spec"].(map[string]any)
		if o.Kind == "CustomResourceDefinition" && spec["group"] == group {
			return true
		}
	}
	return false
}
