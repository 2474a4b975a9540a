package closure

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

var options = Options{Created: []string{"app"}, Target: "app"}

func lines(findings []evidence.Finding) []string {
	var out []string
	for _, f := range findings {
		line := f.Code + " " + f.Object
		if f.NeededBy != "" {
			line += " < " + f.NeededBy
		}
		out = append(out, line+" @ "+f.Field)
	}
	return out
}

// TestMissing holds a fault a row, and beside it the set in which it is mended, which must be quiet.
func TestMissing(t *testing.T) {
	const (
		configKey = "env: [{name: A, valueFrom: {configMapKeyRef: {name: cm, key: a}}}]"
		secretKey = "env: [{name: A, valueFrom: {secretKeyRef: {name: sec, key: token}}}]"
		envField  = "spec.containers[0].env[0].valueFrom."
	)
	with := func(documents ...string) string { return strings.Join(documents, "\n---\n") }
	cases := []struct {
		name, fault, twin string
		want              []string
	}{
		{"config map key, no config map", container(configKey), with(container(configKey), object("v1", "ConfigMap", "cm", "data: {a: b}")),
			[]string{"missing-configmap ConfigMap/app/cm key a < Pod/app/p @ " + envField + "configMapKeyRef.name"}},
		{"config map key, no key", with(container(configKey), object("v1", "ConfigMap", "cm", "data: {b: b}")), with(container(configKey), object("v1", "ConfigMap", "cm", "binaryData: {a: Yg==}")),
			[]string{"missing-key ConfigMap/app/cm key a < Pod/app/p @ " + envField + "configMapKeyRef.key"}},
		{"secret key, no secret", container(secretKey), container(strings.Replace(secretKey, "token}", "token, optional: true}", 1)),
			[]string{"missing-secret Secret/app/sec key token < Pod/app/p @ " + envField + "secretKeyRef.name"}},
		{"secret in another namespace", with(container(secretKey), strings.Replace(object("v1", "Secret", "sec", "stringData: {token: x}"), "namespace: app", "namespace: default", 1)),
			with(container(secretKey), object("v1", "Secret", "sec", "stringData: {token: x}")),
			[]string{"missing-secret Secret/app/sec key token < Pod/app/p @ " + envField + "secretKeyRef.name"}},
		{"secret key, no key", with(container(secretKey), object("v1", "Secret", "sec", "data: {tokn: x}")), with(container(secretKey), object("v1", "Secret", "sec", "type: Opaque")),
			[]string{"missing-key Secret/app/sec key token < Pod/app/p @ " + envField + "secretKeyRef.key"}},
		{"optional for one, required for another", with(container(secretKey), strings.Replace(container(strings.Replace(secretKey, "token}", "token, optional: true}", 1)), "name: p,", "name: q,", 1)),
			with(strings.Replace(container(strings.Replace(secretKey, "token}", "token, optional: true}", 1)), "name: p,", "name: q,", 1)),
			[]string{"missing-secret Secret/app/sec key token < Pod/app/p @ " + envField + "secretKeyRef.name"}},
		{"envFrom config map", container("envFrom: [{configMapRef: {name: cm}}]"), container("envFrom: [{configMapRef: {name: cm, optional: true}}]"),
			[]string{"missing-configmap ConfigMap/app/cm < Pod/app/p @ spec.containers[0].envFrom[0].configMapRef.name"}},
		{"envFrom secret", container("envFrom: [{secretRef: {name: sec}}]"), with(container("envFrom: [{secretRef: {name: sec}}]"), object("v1", "Secret", "sec", "")),
			[]string{"missing-secret Secret/app/sec < Pod/app/p @ spec.containers[0].envFrom[0].secretRef.name"}},
		{"volume config map", pod("volumes: [{name: v, configMap: {name: cm}}]"), pod("volumes: [{name: v, configMap: {name: kube-root-ca.crt}}]"),
			[]string{"missing-configmap ConfigMap/app/cm < Pod/app/p @ spec.volumes[0].configMap.name"}},
		{"volume secret item", with(pod("volumes: [{name: v, secret: {secretName: sec, items: [{key: a, path: a}, {key: b, path: b}]}}]"), object("v1", "Secret", "sec", "data: {a: x}")),
			with(pod("volumes: [{name: v, secret: {secretName: sec, items: [{key: a, path: a}]}}]"), object("v1", "Secret", "sec", "data: {a: x}")),
			[]string{"missing-key Secret/app/sec key b < Pod/app/p @ spec.volumes[0].secret.items[1].key"}},
		{"projected", pod("volumes: [{name: v, projected: {sources: [{configMap: {name: cm}}, {secret: {name: sec}}]}}]"),
			pod("volumes: [{name: v, projected: {sources: [{configMap: {name: cm, optional: true}}, {secret: {name: sec, optional: true}}, {serviceAccountToken: {path: t}}]}}]"),
			[]string{"missing-configmap ConfigMap/app/cm < Pod/app/p @ spec.volumes[0].projected.sources[0].configMap.name", "missing-secret Secret/app/sec < Pod/app/p @ spec.volumes[0].projected.sources[1].secret.name"}},
		{"subPath", with(pod("containers: [{name: c, image: i, volumeMounts: [{name: v, subPath: x.yaml, mountPath: /x}]}]\nvolumes: [{name: v, configMap: {name: cm}}]"), object("v1", "ConfigMap", "cm", "data: {y.yaml: x}")),
			with(pod("containers: [{name: c, image: i, volumeMounts: [{name: v, subPath: x.yaml, mountPath: /x}]}]\nvolumes: [{name: v, configMap: {name: cm}}]"), object("v1", "ConfigMap", "cm", "data: {x.yaml: x}")),
			[]string{"missing-key ConfigMap/app/cm key x.yaml < Pod/app/p @ spec.containers[0].volumeMounts[0].subPath"}},
		{"secret of a volume plugin", pod("volumes: [{name: v, iscsi: {secretRef: {name: sec}}}, {name: w, csi: {driver: d, nodePublishSecretRef: {name: sec2}}}]"), pod("volumes: [{name: v, emptyDir: {}}]"),
			[]string{"missing-secret Secret/app/sec < Pod/app/p @ spec.volumes[0].iscsi.secretRef.name", "missing-secret Secret/app/sec2 < Pod/app/p @ spec.volumes[1].csi.nodePublishSecretRef.name"}},
		{"service account", pod("serviceAccountName: robot"), pod("serviceAccountName: default"),
			[]string{"missing-serviceaccount ServiceAccount/app/robot < Pod/app/p @ spec.serviceAccountName"}},
		{"pull secret of a Pod", pod("imagePullSecrets: [{name: pull}]"), with(pod("imagePullSecrets: [{name: pull}]"), object("v1", "Secret", "pull", "")),
			[]string{"missing-secret Secret/app/pull < Pod/app/p @ spec.imagePullSecrets[0].name"}},
		{"pull secret of a ServiceAccount", object("v1", "ServiceAccount", "sa", "imagePullSecrets: [{name: pull}]"), object("v1", "ServiceAccount", "sa", ""),
			[]string{"missing-secret Secret/app/pull < ServiceAccount/app/sa @ imagePullSecrets[0].name"}},
		{"claim", pod("volumes: [{name: v, persistentVolumeClaim: {claimName: disk}}]"), with(pod("volumes: [{name: v, persistentVolumeClaim: {claimName: disk}}]"), object("v1", "PersistentVolumeClaim", "disk", "spec: {}")),
			[]string{"missing-pvc PersistentVolumeClaim/app/disk < Pod/app/p @ spec.volumes[0].persistentVolumeClaim.claimName"}},
		{"claim of a StatefulSet", with(pod("volumes: [{name: v, persistentVolumeClaim: {claimName: disk-db-2}}]"), object("apps/v1", "StatefulSet", "db", "spec: {replicas: 2, volumeClaimTemplates: [{metadata: {name: disk}, spec: {}}]}")),
			with(pod("volumes: [{name: v, persistentVolumeClaim: {claimName: disk-db-1}}]"), object("apps/v1", "StatefulSet", "db", "spec: {replicas: 2, volumeClaimTemplates: [{metadata: {name: disk}, spec: {}}]}")),
			[]string{"missing-pvc PersistentVolumeClaim/app/disk-db-2 < Pod/app/p @ spec.volumes[0].persistentVolumeClaim.claimName"}},
		{"priority class", pod("priorityClassName: gold"), pod("priorityClassName: system-node-critical"),
			[]string{"missing-priorityclass PriorityClass.scheduling.k8s.io/gold < Pod/app/p @ spec.priorityClassName"}},
		{"runtime class", pod("runtimeClassName: gvisor"), with(pod("runtimeClassName: gvisor"), cluster("node.k8s.io/v1", "RuntimeClass", "gvisor", "handler: runsc")),
			[]string{"missing-runtimeclass RuntimeClass.node.k8s.io/gvisor < Pod/app/p @ spec.runtimeClassName"}},
		{"storage class", object("v1", "PersistentVolumeClaim", "d", "spec: {storageClassName: fast}"), object("v1", "PersistentVolumeClaim", "d", "spec: {storageClassName: standard}"),
			[]string{"missing-storageclass StorageClass.storage.k8s.io/fast < PersistentVolumeClaim/app/d @ spec.storageClassName"}},
		{"class of a made volume", object("v1", "PersistentVolumeClaim", "d", "spec: {storageClassName: manual}"), with(object("v1", "PersistentVolumeClaim", "d", "spec: {storageClassName: manual}"), cluster("v1", "PersistentVolume", "v", "spec: {storageClassName: manual}")),
			[]string{"missing-storageclass StorageClass.storage.k8s.io/manual < PersistentVolumeClaim/app/d @ spec.storageClassName"}},
		{"empty storage class", object("v1", "PersistentVolumeClaim", "d", `spec: {storageClassName: ""}`), with(object("v1", "PersistentVolumeClaim", "d", `spec: {storageClassName: ""}`), cluster("v1", "PersistentVolume", "v", "spec: {}")),
			[]string{"missing-pvc PersistentVolume/* < PersistentVolumeClaim/app/d @ spec.storageClassName"}},
		{"empty is not absent", object("v1", "PersistentVolumeClaim", "d", `spec: {storageClassName: ""}`), object("v1", "PersistentVolumeClaim", "d", "spec: {}"),
			[]string{"missing-pvc PersistentVolume/* < PersistentVolumeClaim/app/d @ spec.storageClassName"}},
		{"named volume", object("v1", "PersistentVolumeClaim", "d", "spec: {volumeName: v}"), with(object("v1", "PersistentVolumeClaim", "d", "spec: {volumeName: v}"), cluster("v1", "PersistentVolume", "v", "spec: {}")),
			[]string{"missing-pvc PersistentVolume/v < PersistentVolumeClaim/app/d @ spec.volumeName"}},
		{"claim template", object("apps/v1", "StatefulSet", "db", "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: fast}}]}"), object("apps/v1", "StatefulSet", "db", "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {}}]}"),
			[]string{"missing-storageclass StorageClass.storage.k8s.io/fast < StatefulSet/app/db @ spec.volumeClaimTemplates[0].spec.storageClassName"}},
		{"ephemeral claim", pod("volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]"), pod("volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]"),
			[]string{"missing-storageclass StorageClass.storage.k8s.io/fast < Pod/app/p @ spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName"}},
		{"service of a StatefulSet", object("apps/v1", "StatefulSet", "db", "spec: {serviceName: db}"), with(object("apps/v1", "StatefulSet", "db", "spec: {serviceName: db}"), object("v1", "Service", "db", "")),
			[]string{"missing-service Service/app/db < StatefulSet/app/db @ spec.serviceName"}},
		{"service of the same kind in another group", with(object("apps/v1", "StatefulSet", "db", "spec: {serviceName: db}"), object("serving.knative.dev/v1", "Service", "db", ""), crd("serving.knative.dev", "Service", "Namespaced")),
			with(object("apps/v1", "StatefulSet", "db", "spec: {serviceName: db}"), object("v1", "Service", "db", "")),
			[]string{"missing-service Service/app/db < StatefulSet/app/db @ spec.serviceName"}},
		{"namespace", strings.Replace(object("v1", "ConfigMap", "cm", ""), "namespace: app", "namespace: shop", 1), with(strings.Replace(object("v1", "ConfigMap", "cm", ""), "namespace: app", "namespace: shop", 1), cluster("v1", "Namespace", "shop", "")),
			[]string{"missing-namespace Namespace/shop < ConfigMap/shop/cm @ metadata.namespace"}},
		{"namespace that only looks like Kubernetes' own", strings.Replace(object("v1", "ConfigMap", "cm", ""), "namespace: app", "namespace: kube-prometheus", 1), strings.Replace(object("v1", "ConfigMap", "cm", ""), "namespace: app", "namespace: kube-system", 1),
			[]string{"missing-namespace Namespace/kube-prometheus < ConfigMap/kube-prometheus/cm @ metadata.namespace"}},
		{"cluster role", cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "b", "roleRef: {kind: ClusterRole, name: reader}"), cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "b", "roleRef: {kind: ClusterRole, name: 'system:auth-delegator'}"),
			[]string{"missing-role ClusterRole.rbac.authorization.k8s.io/reader < ClusterRoleBinding.rbac.authorization.k8s.io/b @ roleRef.name"}},
		{"role", object("rbac.authorization.k8s.io/v1", "RoleBinding", "b", "roleRef: {kind: Role, name: view}"), object("rbac.authorization.k8s.io/v1", "RoleBinding", "b", "roleRef: {kind: ClusterRole, name: view}"),
			[]string{"missing-role Role.rbac.authorization.k8s.io/app/view < RoleBinding.rbac.authorization.k8s.io/app/b @ roleRef.name"}},
		{"ingress", object("networking.k8s.io/v1", "Ingress", "i", "spec: {ingressClassName: nginx, tls: [{secretName: tls}], defaultBackend: {service: {name: a}}, rules: [{http: {paths: [{backend: {service: {name: b}}}]}}]}"),
			with(object("networking.k8s.io/v1", "Ingress", "i", "spec: {ingressClassName: nginx, tls: [{secretName: tls}], defaultBackend: {service: {name: a}}, rules: [{http: {paths: [{backend: {service: {name: b}}}]}}]}"),
				object("v1", "Service", "a", ""), object("v1", "Service", "b", ""), object("v1", "Secret", "tls", ""), cluster("networking.k8s.io/v1", "IngressClass", "nginx", "")),
			[]string{"missing-ingressclass IngressClass.networking.k8s.io/nginx < Ingress.networking.k8s.io/app/i @ spec.ingressClassName",
				"missing-secret Secret/app/tls < Ingress.networking.k8s.io/app/i @ spec.tls[0].secretName",
				"missing-service Service/app/a < Ingress.networking.k8s.io/app/i @ spec.defaultBackend.service.name",
				"missing-service Service/app/b < Ingress.networking.k8s.io/app/i @ spec.rules[0].http.paths[0].backend.service.name"}},
		{"TLS secret that cert-manager makes", object("networking.k8s.io/v1", "Ingress", "i", "spec: {tls: [{secretName: tls}]}"), "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, annotations: {cert-manager.io/cluster-issuer: le}}\nspec: {tls: [{secretName: tls}]}",
			[]string{"missing-secret Secret/app/tls < Ingress.networking.k8s.io/app/i @ spec.tls[0].secretName"}},
		{"route", with(crd(gatewayGroup, "HTTPRoute", "Namespaced"), object(gatewayGroup+"/v1", "HTTPRoute", "r", "spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a}]}]}")),
			with(crd(gatewayGroup, "HTTPRoute", "Namespaced"), crd(gatewayGroup, "Gateway", "Namespaced"), crd(gatewayGroup, "GatewayClass", "Cluster"), cluster(gatewayGroup+"/v1", "GatewayClass", "c", ""),
				object(gatewayGroup+"/v1", "Gateway", "gw", "spec: {gatewayClassName: c}"), object("v1", "Service", "a", ""), object(gatewayGroup+"/v1", "HTTPRoute", "r", "spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a}]}]}")),
			[]string{"missing-service Service/app/a < HTTPRoute.gateway.networking.k8s.io/app/r @ spec.rules[0].backendRefs[0].name", "object-missing Gateway.gateway.networking.k8s.io/app/gw < HTTPRoute.gateway.networking.k8s.io/app/r @ spec.parentRefs[0].name"}},
		{"scale target", object("autoscaling/v2", "HorizontalPodAutoscaler", "h", "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}"), with(object("autoscaling/v2", "HorizontalPodAutoscaler", "h", "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}"), object("apps/v1", "Deployment", "web", "")),
			[]string{"object-missing Deployment/app/web < HorizontalPodAutoscaler.autoscaling/app/h @ spec.scaleTargetRef.name"}},
		{"webhook", cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w", "webhooks: [{clientConfig: {service: {name: s, namespace: app}}}]"), cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w", "webhooks: [{clientConfig: {url: 'https://x'}}]"),
			[]string{"missing-service Service/app/s < ValidatingWebhookConfiguration.admissionregistration.k8s.io/w @ webhooks[0].clientConfig.service.name"}},
		{"API service", cluster("apiregistration.k8s.io/v1", "APIService", "v1.x", "spec: {service: {name: s, namespace: app}}"), cluster("apiregistration.k8s.io/v1", "APIService", "v1.x", "spec: {}"),
			[]string{"missing-service Service/app/s < APIService.apiregistration.k8s.io/v1.x @ spec.service.name"}},
		{"definition", object("x.example/v1", "Policy", "a", ""), with(object("x.example/v1", "Policy", "a", ""), crd("x.example", "Policy", "Namespaced")),
			[]string{"missing-crd CustomResourceDefinition.apiextensions.k8s.io/policies.x.example < Policy.x.example/app/a @ apiVersion"}},
		{"definition of another version", with(object("x.example/v1alpha1", "Thing", "a", ""), crd("x.example", "Thing", "Namespaced")), with(object("x.example/v1", "Thing", "a", ""), crd("x.example", "Thing", "Namespaced")),
			[]string{"missing-crd CustomResourceDefinition.apiextensions.k8s.io/things.x.example version v1alpha1 < Thing.x.example/app/a @ apiVersion"}},
		{"removed version", object("policy/v1beta1", "PodDisruptionBudget", "a", ""), object("policy/v1", "PodDisruptionBudget", "a", ""),
			[]string{"api-removed PodDisruptionBudget.policy/app/a @ apiVersion"}},
		{"removed for one kind of a version", object("networking.k8s.io/v1beta1", "Ingress", "a", ""), cluster("networking.k8s.io/v1beta1", "ServiceCIDR", "a", ""),
			[]string{"api-removed Ingress.networking.k8s.io/app/a @ apiVersion"}},
		{"extended resource", container("resources: {limits: {cpu: 1, nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1}}"), container("resources: {limits: {cpu: 1, hugepages-2Mi: 2Mi, kubernetes.io/own: 1, nvidia.com/gpu: '0'}}"),
			[]string{`missing-node-resource NodeResource/nvidia.com/gpu < Pod/app/p @ spec.containers[0].resources.limits["nvidia.com/gpu"]`}},
		{"SOPS", with(container(secretKey), object("v1", "Secret", "sec", "data: {token: ENC}\nsops: {age: []}")), with(container(secretKey), object("v1", "Secret", "sec", "data: {token: x}")),
			[]string{"input-encrypted Secret/app/sec @ sops"}},
		{"sealed", with(container(secretKey), crd(sealedGroup, "SealedSecret", "Namespaced"), object(sealedGroup+"/v1", "SealedSecret", "sec", "spec: {encryptedData: {token: x}}")), with(container(secretKey), object("v1", "Secret", "sec", "data: {token: x}")),
			[]string{"input-encrypted SealedSecret.bitnami.com/app/sec @ spec.encryptedData"}},
		{"external secret in another namespace", with(container(secretKey), crd(externalGroup, "ExternalSecret", "Namespaced"), strings.Replace(object(externalGroup+"/v1", "ExternalSecret", "e", "spec: {target: {name: sec}}"), "namespace: app", "namespace: default", 1)),
			with(container(secretKey), crd(externalGroup, "ExternalSecret", "Namespaced"), object(externalGroup+"/v1", "ExternalSecret", "e", "spec: {target: {name: sec}}")),
			[]string{"missing-secret Secret/app/sec key token < Pod/app/p @ " + envField + "secretKeyRef.name"}},
		{"store of an external secret, and its definition", with(container(secretKey), object(externalGroup+"/v1", "ExternalSecret", "sec", "spec: {secretStoreRef: {kind: ClusterSecretStore, name: vault}}")),
			with(container(secretKey), crd(externalGroup, "ExternalSecret", "Namespaced"), crd(externalGroup, "ClusterSecretStore", "Cluster"), cluster(externalGroup+"/v1", "ClusterSecretStore", "vault", ""), object(externalGroup+"/v1", "ExternalSecret", "sec", "spec: {secretStoreRef: {kind: ClusterSecretStore, name: vault}}")),
			[]string{"missing-crd CustomResourceDefinition.apiextensions.k8s.io/externalsecrets.external-secrets.io < ExternalSecret.external-secrets.io/app/sec @ apiVersion",
				"object-missing ClusterSecretStore.external-secrets.io/vault < ExternalSecret.external-secrets.io/app/sec @ spec.secretStoreRef.name"}},
		{"issuer of a certificate", with(pod("volumes: [{name: v, secret: {secretName: tls}}]"), crd(certGroup, "Certificate", "Namespaced"), object(certGroup+"/v1", "Certificate", "c", "spec: {secretName: tls, issuerRef: {name: le}}")),
			with(pod("volumes: [{name: v, secret: {secretName: tls}}]"), crd(certGroup, "Certificate", "Namespaced"), crd(certGroup, "Issuer", "Namespaced"), object(certGroup+"/v1", "Issuer", "le", ""), object(certGroup+"/v1", "Certificate", "c", "spec: {secretName: tls, issuerRef: {name: le}}")),
			[]string{"object-missing Issuer.cert-manager.io/app/le < Certificate.cert-manager.io/app/c @ spec.issuerRef.name"}},
		{"template inside a custom resource", with(crd("x.example", "Fleet", "Namespaced"), object("x.example/v1", "Fleet", "f", "spec: {pools: [{template: {spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}}]}")),
			with(crd("x.example", "Fleet", "Namespaced"), object("x.example/v1", "Fleet", "f", "spec: {pools: [{template: {spec: {containers: [{name: c, image: i}]}}}]}")),
			[]string{"missing-serviceaccount ServiceAccount/app/robot < Fleet.x.example/app/f @ spec.pools[0].template.spec.serviceAccountName"}},
		{"scope of a custom resource", with(crd("x.example", "Thing", "Namespaced"), "apiVersion: x.example/v1\nkind: Thing\nmetadata: {name: a, namespace: shop}"), with(crd("x.example", "Thing", "Cluster"), cluster("x.example/v1", "Thing", "a", "")),
			[]string{"missing-namespace Namespace/shop < Thing.x.example/shop/a @ metadata.namespace"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := lines(Missing(setOf(t, c.fault), options)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if got := lines(Missing(setOf(t, c.twin), options)); len(got) > 0 {
				t.Errorf("the twin is not quiet: %q", got)
			}
		})
	}
}

func TestMissingSaysWhereAndWhatToDo(t *testing.T) {
	set := setOf(t, container("env: [{name: A, valueFrom: {secretKeyRef: {name: model-registri, key: token}}}]")+"\n---\n"+object("v1", "Secret", "model-registry", "data: {token: x}"))
	got := Missing(set, options)
	want := []evidence.Finding{{
		Code: "missing-secret", Severity: evidence.Fail, Object: "Secret/app/model-registri key token", NeededBy: "Pod/app/p",
		Field: "spec.containers[0].env[0].valueFrom.secretKeyRef.name", Origin: evidence.Origin{File: "all.yaml", Line: 8},
		Message: "not in the repository", Do: "add it to the repository; did you mean model-registry?",
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSuggestions(t *testing.T) {
	cases := []struct{ name, documents, want string }{
		{"two edits", pod("serviceAccountName: rob") + "\n---\n" + object("v1", "ServiceAccount", "robot", ""), "; did you mean robot?"},
		{"three edits", pod("serviceAccountName: robot") + "\n---\n" + object("v1", "ServiceAccount", "rabbits", ""), ""},
		{"another namespace", pod("serviceAccountName: robot") + "\n---\n" + strings.Replace(object("v1", "ServiceAccount", "robot", ""), "namespace: app", "namespace: default", 1), "; one of this name is in namespace default"},
		{"another kind", pod("serviceAccountName: robot") + "\n---\n" + object("v1", "Secret", "robot", ""), ""},
		{"short names are not near", pod("serviceAccountName: ab") + "\n---\n" + object("v1", "ServiceAccount", "cd", ""), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Missing(setOf(t, c.documents), options)
			if len(got) != 1 || got[0].Do != "add it to the repository"+c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestPullSecretsOnlyWarn(t *testing.T) {
	got := Missing(setOf(t, pod("imagePullSecrets: [{name: pull}]")), options)
	if len(got) != 1 || got[0].Severity != evidence.Warn {
		t.Errorf("got %+v", got)
	}
}

func TestTarget(t *testing.T) {
	set := setOf(t, cluster("v1", "Pod", "p", "spec: {serviceAccountName: robot}")+"\n---\n"+object("v1", "ServiceAccount", "robot", ""))
	if got := lines(Missing(set, options)); len(got) > 0 {
		t.Errorf("an object without a namespace lives in the target: %q", got)
	}
	got := lines(Missing(set, Options{Created: []string{"app"}, Target: "shop"}))
	want := []string{"missing-namespace Namespace/shop < Pod/p @ metadata.namespace", "missing-serviceaccount ServiceAccount/shop/robot < Pod/p @ spec.serviceAccountName"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHostileShapes: content of any shape is data, never a panic.
func TestHostileShapes(t *testing.T) {
	set := setOf(t, strings.Join([]string{
		pod("containers: text\nvolumes: {a: b}\nimagePullSecrets: [1, null, [x]]\nserviceAccountName: 7"),
		container("env: [null, {valueFrom: []}]\nenvFrom: {a: b}\nresources: {limits: [1]}"),
		object("networking.k8s.io/v1", "Ingress", "i", "spec: [1]"),
		object("v1", "PersistentVolumeClaim", "c", "spec: {storageClassName: 5}"),
		cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x", "spec: text"),
	}, "\n---\n"))
	Missing(set, options)
	Refused(set)
}

// TestThousandObjects holds the figure of 1,000 objects in under a second.
func TestThousandObjects(t *testing.T) {
	var documents []string
	for i := range 1000 {
		documents = append(documents, strings.Replace(container("env: [{name: A, valueFrom: {secretKeyRef: {name: secret-"+fmt.Sprint(i)+", key: token}}}]"), "name: p,", fmt.Sprintf("name: p%d,", i), 1))
	}
	set := setOf(t, strings.Join(documents, "\n---\n"))
	start := time.Now()
	if got := len(Missing(set, options)); got != 1000 {
		t.Errorf("got %d findings", got)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}
