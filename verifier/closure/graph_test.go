package closure

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// edges writes a graph as lines: what, state, by whom, needed by, where.
func edges(graph []evidence.Reference) []string {
	var out []string
	for _, r := range graph {
		line := string(r.State) + " " + r.Object.String()
		if r.Key != "" {
			line += " key " + r.Key
		}
		if r.Optional {
			line += " optional"
		}
		if r.By != "" {
			line += " by " + r.By
		}
		if r.Finding != nil {
			line += " (" + r.Finding.Code + ")"
		}
		out = append(out, line+" < "+r.NeededBy.String()+" @ "+r.Field)
	}
	return out
}

// graphSet has a reference of every state, in no order.
var graphSet = strings.Join([]string{
	pod("serviceAccountName: default\nvolumes: [{name: v, secret: {secretName: tls}}]\ncontainers:\n- name: c\n  image: i\n" +
		"  env: [{name: A, valueFrom: {secretKeyRef: {name: gone, key: token}}}, {name: B, valueFrom: {configMapKeyRef: {name: cm, key: b}}}, {name: C, valueFrom: {configMapKeyRef: {name: cm, key: c}}}, {name: D, valueFrom: {configMapKeyRef: {name: cm, key: d, optional: true}}}]\n" +
		"  envFrom: [{secretRef: {name: may, optional: true}}]"),
	object("v1", "ConfigMap", "cm", "data: {b: x}"),
	crd(certGroup, "Certificate", "Namespaced"),
	object(certGroup+"/v1", "Certificate", "cert", "spec: {secretName: tls}"),
}, "\n---\n")

func TestGraph(t *testing.T) {
	want := []string{
		"given Namespace/app by the run creates it < ConfigMap/app/cm @ metadata.namespace",
		"given Namespace/app by the run creates it < Pod/app/p @ metadata.namespace",
		"missing Secret/app/may optional < Pod/app/p @ spec.containers[0].envFrom[0].secretRef.name",
		"missing Secret/app/gone key token (missing-secret) < Pod/app/p @ spec.containers[0].env[0].valueFrom.secretKeyRef.name",
		"set ConfigMap/app/cm key b < Pod/app/p @ spec.containers[0].env[1].valueFrom.configMapKeyRef.name",
		"missing ConfigMap/app/cm key c (missing-key) < Pod/app/p @ spec.containers[0].env[2].valueFrom.configMapKeyRef.key",
		"missing ConfigMap/app/cm key d optional < Pod/app/p @ spec.containers[0].env[3].valueFrom.configMapKeyRef.key",
		"given ServiceAccount/app/default by the controller manager puts it in every namespace < Pod/app/p @ spec.serviceAccountName",
		"made Secret/app/tls by Certificate.cert-manager.io/app/cert < Pod/app/p @ spec.volumes[0].secret.secretName",
		"set CustomResourceDefinition.apiextensions.k8s.io/certificates.cert-manager.io < Certificate.cert-manager.io/app/cert @ apiVersion",
		"given Namespace/app by the run creates it < Certificate.cert-manager.io/app/cert @ metadata.namespace",
	}
	set := setOf(t, graphSet)
	graph := Graph(set, options)
	if got := edges(graph); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	slices.Reverse(set.Objects)
	if got := edges(Graph(set, options)); !reflect.DeepEqual(got, want) {
		t.Errorf("the order of the set shows:\n%s", strings.Join(got, "\n"))
	}
	var told []evidence.Finding
	for _, r := range graph {
		if r.Finding != nil {
			told = append(told, *r.Finding)
			if r.Finding.Origin != r.Origin || r.Finding.Field != r.Field {
				t.Errorf("the finding is elsewhere: %+v", r)
			}
		}
	}
	if missing := Missing(set, options); len(missing) != 2 || len(told) != 2 {
		t.Errorf("missing %q, in the graph %q", lines(missing), lines(told))
	}
}
