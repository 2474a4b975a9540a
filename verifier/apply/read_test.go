package apply

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const settings = "/api/v1/namespaces/app/configmaps/c"

func TestReadOne(t *testing.T) {
	live := thing("v1", "ConfigMap", "app", "c")
	moving := func() http.HandlerFunc { // another resourceVersion at each look, none that of the dry-run
		var looks atomic.Int64
		return func(w http.ResponseWriter, _ *http.Request) {
			o := thing("v1", "ConfigMap", "app", "c")
			o["metadata"].(object)["resourceVersion"] = strconv.FormatInt(looks.Add(1), 10)
			answer(w, o)
		}
	}
	fresh := "PATCH " + strings.TrimSuffix(settings, "/c") + "/" + evidence.FreshName
	for name, c := range map[string]struct {
		kind     string
		handlers map[string]http.HandlerFunc
		missing  bool
		read     bool
		errs     string
		freshErr string
	}{
		"there": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: gives(live), "PATCH " + settings: gives(live), fresh: gives(live)}, false, true, "", ""},
		"404": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: refuses(404, metav1.StatusReasonNotFound, "not found")}, true, false, "", ""},
		"403": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: refuses(403, metav1.StatusReasonForbidden, "not for you")}, false, false, "not for you", ""},
		"500": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: refuses(500, metav1.StatusReasonInternalError, "etcd is down")}, false, false, "etcd is down", ""},
		"kind is not served": {"example.com/v1 Widget app c", nil, false, false, "the cluster serves no Widget", ""},
		"dry-run refused": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: gives(live), "PATCH " + settings: refuses(422, metav1.StatusReasonInvalid, "unknown field")}, false, false, "unknown field", ""},
		"never at rest": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: moving(), "PATCH " + settings: gives(live)}, false, false, "changed while it was read", ""},
		"fresh refused": {"v1 ConfigMap app c", map[string]http.HandlerFunc{
			"GET " + settings: gives(live), "PATCH " + settings: gives(live), fresh: refuses(422, metav1.StatusReasonInvalid, "the name is fixed")}, false, true, "", "the name is fixed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, core, maps.Clone(c.handlers))
			set := setOf(c.kind)
			got := s.client.Read(t.Context(), set)[0]
			if got.Object != set.Objects[0].ID || got.Missing != c.missing || (got.Content != nil) != c.read || (got.Fresh != nil) != (c.read && c.freshErr == "") {
				t.Errorf("live %+v", got)
			}
			if (c.errs == "") != (got.Error == "") || !strings.Contains(got.Error, c.errs) {
				t.Errorf("error %q, want %q", got.Error, c.errs)
			}
			if (c.freshErr == "") != (got.FreshError == "") || !strings.Contains(got.FreshError, c.freshErr) {
				t.Errorf("error of the fresh object %q, want %q", got.FreshError, c.freshErr)
			}
			if git := set.Objects[0]; git.Name != "c" || git.Content["metadata"].(object)["name"] != "c" {
				t.Errorf("Git's own object was changed: %+v", git)
			}
		})
	}
}

func inventory(t *testing.T, handlers map[string]http.HandlerFunc) (*server, evidence.Inventory) {
	pod := thing("v1", "Pod", "app", "web")
	pod["metadata"].(object)["ownerReferences"] = []object{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner"}}
	all := map[string]http.HandlerFunc{
		// Two pages: a reader that stops after the first would call the second's objects absent.
		"GET /api/v1/configmaps": func(w http.ResponseWriter, r *http.Request) {
			page := object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": object{"resourceVersion": "10"},
				"items": []object{thing("v1", "ConfigMap", "app", "second")}}
			if r.URL.Query().Get("continue") == "" {
				page["metadata"], page["items"] = object{"resourceVersion": "10", "continue": "more"}, []object{thing("v1", "ConfigMap", "app", "first")}
			}
			answer(w, page)
		},
		"GET /api/v1/secrets":           lists("meta.k8s.io/v1", "PartialObjectMetadata", thing("v1", "Secret", "app", "s")),
		"GET /api/v1/pods":              lists("meta.k8s.io/v1", "PartialObjectMetadata", pod),
		"GET /apis/apps/v1/deployments": lists("meta.k8s.io/v1", "PartialObjectMetadata"),
	}
	maps.Copy(all, handlers)
	s := newServer(t, map[string][]string{
		"v1":                {"ConfigMap configmaps namespaced", "Secret secrets namespaced", "Pod pods namespaced", "Pod pods/log namespaced", "Event events namespaced"},
		"apps/v1":           {"Deployment deployments namespaced"},
		"events.k8s.io/v1":  {"Event events namespaced"},
		"metrics.k8s.io/v1": {"PodMetrics pods namespaced"},
	}, all)
	return s, s.client.Inventory(t.Context())
}

func names(list []evidence.Listed) []string {
	var got []string
	for _, o := range list {
		got = append(got, o.ID.String())
	}
	return got
}

func TestInventory(t *testing.T) {
	s, got := inventory(t, nil)
	if diff := cmp.Diff([]string{"ConfigMap/app/first", "ConfigMap/app/second", "Pod/app/web", "Secret/app/s"}, names(got.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if got.Kinds != 4 || len(got.Unread) > 0 {
		t.Errorf("%d kinds, unread %q; want 4 and none", got.Kinds, got.Unread)
	}
	if pod := got.Objects[2]; pod.UID != "Pod-web" || !cmp.Equal(pod.Owners, []string{"owner"}) {
		t.Errorf("pod %+v", pod)
	}
	for _, path := range []string{"GET /api/v1/events", "GET /apis/events.k8s.io/v1/events", "GET /apis/metrics.k8s.io/v1/pods", "GET /api/v1/pods/log"} {
		if len(s.requests(path)) > 0 {
			t.Errorf("%s was asked for", path)
		}
	}
}

func TestInventoryUnread(t *testing.T) {
	for name, c := range map[string]struct {
		handlers map[string]http.HandlerFunc
		kinds    int
		unread   []string
	}{
		"one kind is forbidden": {map[string]http.HandlerFunc{"GET /api/v1/secrets": refuses(403, metav1.StatusReasonForbidden, "not for you")}, 3, []string{"secrets.: not for you"}},
		"one kind fails":        {map[string]http.HandlerFunc{"GET /apis/apps/v1/deployments": refuses(500, metav1.StatusReasonInternalError, "etcd is down")}, 3, []string{"deployments.apps: etcd is down"}},
		"one kind is not found": {map[string]http.HandlerFunc{"GET /api/v1/pods": refuses(404, metav1.StatusReasonNotFound, "no such kind")}, 3, []string{"pods.: no such kind"}},
		"a second page fails": {map[string]http.HandlerFunc{"GET /api/v1/configmaps": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("continue") != "" {
				refuse(w, 500, metav1.StatusReasonInternalError, "etcd is down")
				return
			}
			answer(w, object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": object{"continue": "more"}, "items": []object{thing("v1", "ConfigMap", "app", "first")}})
		}}, 3, []string{"configmaps.: etcd is down"}},
		"one group is not told": {map[string]http.HandlerFunc{"GET /apis/apps/v1": refuses(503, metav1.StatusReasonServiceUnavailable, "starting")}, 3, []string{"apps/v1: starting"}},
		"nothing is told":       {map[string]http.HandlerFunc{"GET /api": refuses(503, metav1.StatusReasonServiceUnavailable, "starting"), "GET /apis": refuses(503, metav1.StatusReasonServiceUnavailable, "starting")}, 0, []string{"discovery: the server is currently unable to handle the request"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := inventory(t, c.handlers)
			if got.Kinds != c.kinds {
				t.Errorf("%d kinds, want %d", got.Kinds, c.kinds)
			}
			if diff := cmp.Diff(c.unread, got.Unread); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
		})
	}
}
