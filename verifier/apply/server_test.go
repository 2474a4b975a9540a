package apply

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// object is a JSON object.
type object = map[string]any

// server is an API server as far as one test needs it: it serves discovery of its kinds, and answers
// each "METHOD /path" with a handler of the test; what has none is 404. Watches have WATCH as method.
type server struct {
	t      *testing.T
	url    string
	client *Client

	mutex    sync.Mutex
	kinds    map[string][]metav1.APIResource // by group/version
	handlers map[string]http.HandlerFunc
	log      []string
}

// core are the kinds that most tests need, "kind plural namespaced" by group/version.
var core = map[string][]string{
	"v1": {"Namespace namespaces", "Node nodes", "ConfigMap configmaps namespaced", "Secret secrets namespaced", "Service services namespaced",
		"ServiceAccount serviceaccounts namespaced", "Event events namespaced", "Pod pods namespaced"},
	"apps/v1":                         {"Deployment deployments namespaced"},
	"apiextensions.k8s.io/v1":         {"CustomResourceDefinition customresourcedefinitions"},
	"rbac.authorization.k8s.io/v1":    {"RoleBinding rolebindings namespaced"},
	"admissionregistration.k8s.io/v1": {"ValidatingWebhookConfiguration validatingwebhookconfigurations"},
}

func newServer(t *testing.T, kinds map[string][]string, handlers map[string]http.HandlerFunc) *server {
	t.Helper()
	s := &server{t: t, kinds: map[string][]metav1.APIResource{}, handlers: handlers}
	for gv, list := range kinds {
		s.serves(gv, list...)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	s.url = web.URL
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}]}", web.URL)
	var err error
	if s.client, err = Connect([]byte(config)); err != nil {
		t.Fatal(err)
	}
	return s
}

// serves adds kinds to what discovery tells.
func (s *server) serves(groupVersion string, kinds ...string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, text := range kinds {
		words := strings.Fields(text)
		s.kinds[groupVersion] = append(s.kinds[groupVersion], metav1.APIResource{
			Kind: words[0], Name: words[1], Namespaced: slices.Contains(words, "namespaced"), Verbs: metav1.Verbs{"get", "list", "watch", "patch"},
		})
	}
}

// requests are those that were sent so far and begin with prefix, in their order.
func (s *server) requests(prefix string) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var list []string
	for _, line := range s.log {
		if strings.HasPrefix(line, prefix) {
			list = append(list, line)
		}
	}
	return list
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if r.URL.Query().Get("watch") == "true" {
		method = "WATCH"
	}
	line := method + " " + r.URL.Path
	s.mutex.Lock()
	s.log = append(s.log, line)
	handler := s.handlers[line]
	s.mutex.Unlock()
	switch {
	case handler != nil:
		handler(w, r)
	case !s.discovery(w, r.URL.Path):
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path+" not found")
	}
}

// discovery answers as a server does that does not know aggregated discovery.
func (s *server) discovery(w http.ResponseWriter, path string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	switch resources, ok := s.kinds[gv]; {
	case path == "/version":
		answer(w, object{"gitVersion": "v1.37.0"})
	case path == "/api":
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for gv := range s.kinds {
			if parsed, _ := schema.ParseGroupVersion(gv); parsed.Group != "" {
				version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: parsed.Version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: parsed.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		answer(w, list)
	case ok && strings.HasPrefix(path, "/api"):
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: resources})
	default:
		return false
	}
	return true
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a client that went away is no fault of the test
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
	})
}

func refuses(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, reason, message) }
}

// gives answers with one object.
func gives(o object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, o) }
}

// lists answers with a list.
func lists(apiVersion, kind string, items ...object) http.HandlerFunc {
	if items == nil {
		items = []object{}
	}
	return gives(object{"apiVersion": apiVersion, "kind": kind + "List", "metadata": object{"resourceVersion": "10"}, "items": items})
}

// watches sends the events one after the other and then stays open.
func watches(events ...object) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, e := range events {
			answer(w, e)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func event(kind string, o object) object { return object{"type": kind, "object": o} }

// thing is an object with no more than its name.
func thing(apiVersion, kind, namespace, name string) object {
	metadata := object{"name": name, "uid": kind + "-" + name, "resourceVersion": "7"}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// setOf makes a set of "apiVersion kind namespace name", in that order; "-" is no namespace.
func setOf(texts ...string) *evidence.Set {
	set := &evidence.Set{}
	for _, text := range texts {
		f := strings.Fields(text)
		group, _ := evidence.SplitAPIVersion(f[0])
		namespace := strings.TrimPrefix(f[2], "-")
		set.Objects = append(set.Objects, evidence.Object{
			ID: evidence.ID{Group: group, Kind: f[1], Namespace: namespace, Name: f[3]}, APIVersion: f[0], Content: thing(f[0], f[1], namespace, f[3]),
		})
	}
	return set
}
