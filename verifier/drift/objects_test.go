package drift

import (
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// listed is an object of the inventory; its UID is its name with a u- before it, its owners are UIDs.
func listed(group, kind, namespace, name string, owners ...string) evidence.Listed {
	return evidence.Listed{ID: evidence.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}, UID: "u-" + name, Owners: owners, Generation: 1}
}

func TestObjects(t *testing.T) {
	deployment := keep(webGit, webServer, webOurs)
	svc := service("ports: []", "clusterIP: 10.96.0.9, clusterIPs: [10.96.0.9, 'fd00::9'], ports: []")
	set := keep(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}`, `{"f:spec":{"f:volumeClaimTemplates":{}}}`)
	crd := keep(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com}}`, `{"f:spec":{"f:group":{}}}`)
	declared := []evidence.Listed{listed("apps", "Deployment", "ns", "web"), listed("apps", "StatefulSet", "ns", "db"), {ID: evidence.ID{Kind: "Service", Namespace: "ns", Name: "web"}, UID: "u-svc"}}
	before := []evidence.Listed{listed("apps", "DaemonSet", "kube-system", "proxy"), listed("", "ConfigMap", "kube-system", "old")}

	cases := []struct {
		name  string
		extra []evidence.Listed
		want  []string
		rule  string
	}{
		{"nothing more", nil, nil, ""},
		{"an extra object", []evidence.Listed{listed("", "ConfigMap", "ns", "stray")}, []string{"object extra ConfigMap/ns/stray"}, ""},
		{"owned by an object of Git", []evidence.Listed{listed("apps", "ReplicaSet", "ns", "rs", "u-web")}, nil, ""},
		{"owned through a chain", []evidence.Listed{listed("", "Pod", "ns", "pod", "u-rs"), listed("apps", "ReplicaSet", "ns", "rs", "u-web")}, nil, ""},
		{"owned by what was there before", []evidence.Listed{listed("", "Pod", "kube-system", "pod", "u-proxy")}, nil, ""},
		{"owned by an extra object", []evidence.Listed{listed("apps", "ReplicaSet", "ns", "rs", "u-sly"), listed("apps", "Deployment", "ns", "sly")},
			[]string{"object extra Deployment/ns/sly", "object extra ReplicaSet/ns/rs"}, ""},
		{"owned by nothing that is there", []evidence.Listed{listed("", "Pod", "ns", "pod", "u-gone")}, []string{"object extra Pod/ns/pod"}, ""},
		{"owned in a circle", []evidence.Listed{listed("", "Pod", "ns", "a", "u-b"), listed("", "Pod", "ns", "b", "u-a")}, []string{"object extra Pod/ns/a", "object extra Pod/ns/b"}, ""},
		{"a look-alike by its name", []evidence.Listed{listed("apps", "ReplicaSet", "ns", "web-5d")}, []string{"object extra ReplicaSet/ns/web-5d"}, ""},
		{"an object of Git in another namespace", []evidence.Listed{listed("apps", "Deployment", "other", "web2"), {ID: evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "other", Name: "web"}, UID: "x"}},
			[]string{"object extra Deployment/other/web", "object extra Deployment/other/web2"}, ""},
		{"the namespace of the run", []evidence.Listed{listed("", "Namespace", "", "ns")}, nil, "namespace-of-the-run 1"},
		{"another namespace", []evidence.Listed{listed("", "Namespace", "", "other")}, []string{"object extra Namespace/other"}, ""},
		{"root certificate", []evidence.Listed{listed("", "ConfigMap", "ns", "kube-root-ca.crt")}, nil, "made-in-every-namespace 1"},
		{"root certificate as a Secret", []evidence.Listed{listed("", "Secret", "ns", "kube-root-ca.crt")}, []string{"object extra Secret/ns/kube-root-ca.crt"}, ""},
		{"default ServiceAccount", []evidence.Listed{listed("", "ServiceAccount", "ns", "default")}, nil, "made-in-every-namespace 1"},
		{"another ServiceAccount", []evidence.Listed{listed("", "ServiceAccount", "ns", "builder")}, []string{"object extra ServiceAccount/ns/builder"}, ""},
		{"Endpoints of a Service of Git", []evidence.Listed{{ID: evidence.ID{Kind: "Endpoints", Namespace: "ns", Name: "web"}, UID: "e"}}, nil, "endpoints-of-a-service 1"},
		{"other Endpoints", []evidence.Listed{listed("", "Endpoints", "ns", "outside")}, []string{"object extra Endpoints/ns/outside"}, ""},
		{"Endpoints of the name, elsewhere", []evidence.Listed{{ID: evidence.ID{Kind: "Endpoints", Namespace: "other", Name: "web"}, UID: "e"}}, []string{"object extra Endpoints/other/web"}, ""},
		{"address of a Service of Git", []evidence.Listed{listed("networking.k8s.io", "IPAddress", "", "10.96.0.9")}, nil, "address-of-a-service 1"},
		{"address in another spelling", []evidence.Listed{listed("networking.k8s.io", "IPAddress", "", "fd00:0:0:0:0:0:0:9")}, nil, "address-of-a-service 1"},
		{"another address", []evidence.Listed{listed("networking.k8s.io", "IPAddress", "", "10.96.0.99")}, []string{"object extra IPAddress.networking.k8s.io/10.96.0.99"}, ""},
		{"an address that is none", []evidence.Listed{listed("networking.k8s.io", "IPAddress", "", "x")}, []string{"object extra IPAddress.networking.k8s.io/x"}, ""},
		{"claim of a StatefulSet", []evidence.Listed{listed("", "PersistentVolumeClaim", "ns", "data-db-0")}, nil, "claim-of-a-statefulset 1"},
		{"claim like one of a StatefulSet", []evidence.Listed{listed("", "PersistentVolumeClaim", "ns", "data-db-x")}, []string{"object extra PersistentVolumeClaim/ns/data-db-x"}, ""},
		{"claim of another template", []evidence.Listed{listed("", "PersistentVolumeClaim", "ns", "logs-db-0")}, []string{"object extra PersistentVolumeClaim/ns/logs-db-0"}, ""},
		{"claim of a StatefulSet elsewhere", []evidence.Listed{listed("", "PersistentVolumeClaim", "other", "data-db-0")}, []string{"object extra PersistentVolumeClaim/other/data-db-0"}, ""},
		{"volume of such a claim", []evidence.Listed{listed("", "PersistentVolumeClaim", "ns", "data-db-0"), listed("", "PersistentVolume", "", "pvc-u-data-db-0")}, nil, "claim-of-a-statefulset 1,volume-of-a-claim 1"},
		{"volume of a claim that is gone", []evidence.Listed{listed("", "PersistentVolume", "", "pvc-u-data-db-0")}, []string{"object extra PersistentVolume/pvc-u-data-db-0"}, ""},
		{"volume of an extra claim", []evidence.Listed{listed("", "PersistentVolumeClaim", "ns", "stray"), listed("", "PersistentVolume", "", "pvc-u-stray")},
			[]string{"object extra PersistentVolume/pvc-u-stray", "object extra PersistentVolumeClaim/ns/stray"}, ""},
		{"API of a definition of Git", []evidence.Listed{listed("apiregistration.k8s.io", "APIService", "", "v1.example.com")}, nil, "api-of-a-definition 1"},
		{"API of another group", []evidence.Listed{listed("apiregistration.k8s.io", "APIService", "", "v1.sly.example.com")}, []string{"object extra APIService.apiregistration.k8s.io/v1.sly.example.com"}, ""},
		{"lease of a component", []evidence.Listed{listed("coordination.k8s.io", "Lease", "kube-system", "leader")}, nil, "leases-and-node-state 1"},
		{"lease of the workload", []evidence.Listed{listed("coordination.k8s.io", "Lease", "ns", "leader")}, []string{"object extra Lease.coordination.k8s.io/ns/leader"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := input(deployment, svc, set, crd)
			in.Live[2].Fresh, in.Live[3].Fresh = in.Live[2].Content, in.Live[3].Content
			in.Namespaces = []string{"ns"}
			in.Before.Objects = before
			in.Now.Objects = slices.Concat(before, declared, c.extra)
			got := Compare(in)
			if lines := told(got); !slices.Equal(lines, c.want) {
				t.Errorf("got %q, want %q", lines, c.want)
			}
			var applied string
			for _, r := range rules(got) {
				if !strings.HasPrefix(r, "service-addresses") {
					if applied != "" {
						applied += ","
					}
					applied += r
				}
			}
			if applied != c.rule {
				t.Errorf("rules: got %q, want %q", applied, c.rule)
			}
		})
	}
}

func TestClean(t *testing.T) {
	proxy, coredns := listed("apps", "DaemonSet", "kube-system", "proxy"), listed("apps", "Deployment", "kube-system", "coredns")
	lease, oldPod := listed("coordination.k8s.io", "Lease", "kube-system", "leader"), listed("", "Pod", "kube-system", "proxy-a", "u-proxy")
	slice := listed("discovery.k8s.io", "EndpointSlice", "kube-system", "dns")
	settings := listed("", "ConfigMap", "kube-system", "settings")
	before := []evidence.Listed{proxy, coredns, lease, oldPod, slice, settings}
	rewritten := func(o evidence.Listed) evidence.Listed { o.Version = "2"; return o }
	changed := func(o evidence.Listed) evidence.Listed { o.Generation++; return o }
	again := func(o evidence.Listed) evidence.Listed { o.UID += "-again"; return o }
	cases := []struct {
		name       string
		after      []evidence.Listed
		left, lost string
	}{
		{"as before", before, "", ""},
		{"a leftover", append(slices.Clone(before), listed("", "Namespace", "", "ns")), "Namespace/ns", ""},
		{"a cluster-wide leftover", append(slices.Clone(before), listed("rbac.authorization.k8s.io", "ClusterRole", "", "r")), "ClusterRole.rbac.authorization.k8s.io/r", ""},
		{"what a leftover owns", append(slices.Clone(before), listed("", "Pod", "ns", "p", "u-gone")), "Pod/ns/p", ""},
		{"a ConfigMap written to", []evidence.Listed{proxy, coredns, lease, oldPod, slice, rewritten(settings)}, "ConfigMap/kube-system/settings", ""},
		{"lost", []evidence.Listed{proxy, lease, oldPod, slice, settings}, "", "Deployment/kube-system/coredns"},
		{"changed", []evidence.Listed{proxy, changed(coredns), lease, oldPod, slice, settings}, "Deployment/kube-system/coredns", ""},
		{"deleted and made again", []evidence.Listed{proxy, again(coredns), lease, oldPod, slice, settings}, "Deployment/kube-system/coredns", "Deployment/kube-system/coredns"},
		{"a new lease of a component", append(slices.Clone(before), listed("coordination.k8s.io", "Lease", "kube-system", "new")), "", ""},
		{"a new lease elsewhere", append(slices.Clone(before), listed("coordination.k8s.io", "Lease", "ns", "new")), "Lease.coordination.k8s.io/ns/new", ""},
		{"a lease that ended", []evidence.Listed{proxy, coredns, oldPod, slice, settings}, "", ""},
		{"a Pod made again by its DaemonSet", []evidence.Listed{proxy, coredns, lease, listed("", "Pod", "kube-system", "proxy-b", "u-proxy"), slice, settings}, "", ""},
		{"an EndpointSlice follows its Pods", []evidence.Listed{proxy, coredns, lease, oldPod, changed(slice), settings}, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Clean(evidence.Inventory{Objects: before, Kinds: 60}, evidence.Inventory{Objects: c.after, Kinds: 59})
			join := func(ids []evidence.ID) (all string) {
				for _, id := range ids {
					all += id.String()
				}
				return all
			}
			if join(got.Left) != c.left || join(got.Lost) != c.lost || got.Listed != 59 {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("unread", func(t *testing.T) {
		got := Clean(evidence.Inventory{Objects: before}, evidence.Inventory{Unread: []string{"pods: forbidden"}})
		if len(got.Unread) != 1 || len(got.Lost) != 0 {
			t.Errorf("what was not read is not lost: %+v", got)
		}
	})
}

func TestBits(t *testing.T) {
	lock := evidence.Image{Reference: "r/app:1", Index: "sha256:index", Manifest: "sha256:manifest", Config: "sha256:config", Uses: []evidence.Use{{Origin: evidence.Origin{File: "web.yaml", Line: 9}}}}
	single := evidence.Image{Reference: "r/app:1", Manifest: "sha256:manifest", Config: "sha256:config"}
	ready := func(reference, digest string) evidence.Container {
		return evidence.Container{Pod: evidence.ID{Kind: "Pod", Name: "p"}, Name: "c", Reference: reference, Digest: digest, Ready: true}
	}
	waiting := ready("r/app:1", "")
	waiting.Ready = false
	wrong := ready("r/app:1", "sha256:other")
	wrong.Ready = false
	cases := []struct {
		name      string
		image     evidence.Image
		container evidence.Container
		want      []string
		unread    int
	}{
		{"index", lock, ready("r/app:1", "sha256:index"), nil, 0},
		{"manifest", lock, ready("r/app:1", "sha256:manifest"), nil, 0},
		{"config", lock, ready("r/app:1", "sha256:config"), nil, 0},
		{"other bits", lock, ready("r/app:1", "sha256:other"), []string{"bits changed c: sha256:index -> sha256:other"}, 0},
		{"other bits, and no index", single, ready("r/app:1", "sha256:other"), []string{"bits changed c: sha256:manifest -> sha256:other"}, 0},
		{"other bits in a container that is not ready", lock, wrong, []string{"bits changed c: sha256:index -> sha256:other"}, 0},
		{"an image that nothing of Git names", lock, ready("r/sly:1", "sha256:sly"), []string{"bits extra c:  -> r/sly:1 sha256:sly"}, 0},
		{"ready, and no digest", single, ready("r/app:1", ""), nil, 1},
		{"not ready, and no digest", lock, waiting, nil, 0},
		{"never resolved", evidence.Image{Reference: "r/app:1"}, ready("r/app:1", "sha256:other"), nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(Input{Set: &evidence.Set{}, Images: []evidence.Image{c.image}, Containers: []evidence.Container{c.container}})
			if !slices.Equal(told(got), c.want) || len(got.Unread) != c.unread {
				t.Errorf("got %q and unread %q, want %q", told(got), got.Unread, c.want)
			}
			if c.name == "other bits" && got.Differences[0].Origin.String() != "web.yaml:9" {
				t.Errorf("it has no origin: %+v", got.Differences[0])
			}
		})
	}
}
