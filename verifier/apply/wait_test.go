package apply

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func node(name, ready string) object {
	n := thing("v1", "Node", "", name)
	n["status"] = object{
		"conditions": []object{{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}},
		"nodeInfo":   object{"operatingSystem": "linux", "architecture": "arm64", "kernelVersion": "6.1", "containerRuntimeVersion": "containerd://2.1", "kubeletVersion": "v1.37.0"},
	}
	return n
}

func wanted(name string) evidence.Node {
	return evidence.Node{Name: name, Platform: "linux/arm64", Kernel: "6.1", Runtime: "containerd://2.1", Kubelet: "v1.37.0"}
}

// mended is the node with another kernel.
func mended(n object) object {
	n["status"].(object)["nodeInfo"].(object)["kernelVersion"] = "6.2"
	return n
}

func TestWaitReady(t *testing.T) {
	for name, c := range map[string]struct {
		list   []object
		events []object
		count  int
		want   []evidence.Node
	}{
		"ready in the list":         {[]object{node("b", "True"), node("a", "True")}, nil, 2, []evidence.Node{wanted("a"), wanted("b")}},
		"ready by watch":            {[]object{node("a", "False")}, []object{event("MODIFIED", node("a", "Unknown")), event("MODIFIED", node("a", "True"))}, 1, []evidence.Node{wanted("a")}},
		"the second joins by watch": {[]object{node("a", "True")}, []object{event("ADDED", node("b", "False")), event("MODIFIED", node("b", "True"))}, 2, []evidence.Node{wanted("a"), wanted("b")}},
		"one is deleted, then comes again": {[]object{node("a", "True")}, []object{event("DELETED", node("a", "True")), event("ADDED", node("b", "True")), event("ADDED", mended(node("a", "True")))}, 2,
			[]evidence.Node{{Name: "a", Platform: "linux/arm64", Kernel: "6.2", Runtime: "containerd://2.1", Kubelet: "v1.37.0"}, wanted("b")}},
		"one falls back, then comes": {[]object{node("a", "True")}, []object{event("MODIFIED", node("a", "False")), event("ADDED", node("b", "True")), event("MODIFIED", mended(node("a", "True")))}, 2,
			[]evidence.Node{{Name: "a", Platform: "linux/arm64", Kernel: "6.2", Runtime: "containerd://2.1", Kubelet: "v1.37.0"}, wanted("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, core, map[string]http.HandlerFunc{"GET /api/v1/nodes": lists("v1", "Node", c.list...), "WATCH /api/v1/nodes": watches(c.events...)})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			version, nodes, err := s.client.WaitReady(ctx, c.count)
			if err != nil || version != "v1.37.0" {
				t.Fatalf("version %q, %v", version, err)
			}
			if diff := cmp.Diff(c.want, nodes); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("never", func(t *testing.T) {
		s := newServer(t, core, map[string]http.HandlerFunc{"GET /api/v1/nodes": lists("v1", "Node", node("a", "True"), node("b", "False")), "WATCH /api/v1/nodes": watches()})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, _, err := s.client.WaitReady(ctx, 2); err == nil || !strings.Contains(err.Error(), "waiting for 2 ready nodes (1 are)") {
			t.Errorf("error %v, want how many are ready", err)
		}
	})
}

func TestAwaitGone(t *testing.T) {
	const list, watch = "GET /api/v1/namespaces", "WATCH /api/v1/namespaces"
	app := thing("v1", "Namespace", "", "app")
	t.Run("absent at once", func(t *testing.T) {
		s := newServer(t, core, map[string]http.HandlerFunc{list: lists("v1", "Namespace")})
		if err := s.client.awaitGone(t.Context(), "app"); err != nil || len(s.requests(watch)) > 0 {
			t.Errorf("error %v, %d watches", err, len(s.requests(watch)))
		}
	})
	t.Run("deleted by watch", func(t *testing.T) {
		selectors := make(chan string, 2)
		s := newServer(t, core, map[string]http.HandlerFunc{
			list: func(w http.ResponseWriter, r *http.Request) {
				selectors <- r.URL.Query().Get("fieldSelector")
				lists("v1", "Namespace", app)(w, r)
			},
			watch: func(w http.ResponseWriter, r *http.Request) {
				selectors <- r.URL.Query().Get("fieldSelector")
				watches(event("MODIFIED", app), event("DELETED", app))(w, r)
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.client.awaitGone(ctx, "app"); err != nil {
			t.Fatal(err)
		}
		if a, b := <-selectors, <-selectors; a != "metadata.name=app" || b != a {
			t.Errorf("asked for %q and %q: another namespace's end would count", a, b)
		}
	})
	t.Run("it stays", func(t *testing.T) {
		s := newServer(t, core, map[string]http.HandlerFunc{list: lists("v1", "Namespace", app), watch: watches(event("MODIFIED", app))})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.client.awaitGone(ctx, "app"); err == nil || !strings.Contains(err.Error(), "waiting for namespace app to go") {
			t.Errorf("error %v, want that it is still there", err)
		}
	})
	t.Run("the list fails", func(t *testing.T) {
		s := newServer(t, core, map[string]http.HandlerFunc{list: refuses(403, "Forbidden", "not for you")})
		if err := s.client.awaitGone(t.Context(), "app"); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v: what cannot be read is not gone", err)
		}
	})
}
