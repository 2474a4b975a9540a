package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// worst is a set in the worst order: each object stands before what it needs.
var worst = []string{
	"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration - hook",
	"example.com/v1 Widget app w",
	"apps/v1 Deployment app web",
	"v1 Service app web",
	"rbac.authorization.k8s.io/v1 RoleBinding app b",
	"v1 Secret app s",
	"v1 ConfigMap app c",
	"apiextensions.k8s.io/v1 CustomResourceDefinition - widgets.example.com",
	"v1 Namespace - app",
}

func worstSet(more ...string) *evidence.Set {
	set := setOf(append(slices.Clone(worst), more...)...)
	for i := range set.Objects {
		if o := &set.Objects[i]; o.Kind == "CustomResourceDefinition" {
			o.Content["spec"] = object{"group": "example.com", "names": object{"kind": "Widget"}, "versions": []any{object{"name": "v1"}}}
		}
	}
	return set
}

func TestStage(t *testing.T) {
	want := []int{4, 3, 3, 2, 2, 1, 1, 0, 0}
	var got []int
	for _, o := range worstSet().Objects {
		got = append(got, stage(o.ID))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	for _, id := range []evidence.ID{{Group: "example.com", Kind: "Namespace"}, {Group: "example.com", Kind: "Secret"}} {
		if got := stage(id); got != 3 {
			t.Errorf("stage of %s is %d; the group tells it from Kubernetes' own", id, got)
		}
	}
}

// applying answers everything that Apply of the worst set asks for. The definition is served once it
// is applied.
func applying(t *testing.T) *server {
	ok := func(w http.ResponseWriter, r *http.Request) { answer(w, thing("v1", "Any", "", "any")) }
	s := newServer(t, core, map[string]http.HandlerFunc{
		"PATCH /api/v1/namespaces/app":                                                      ok,
		"PATCH /api/v1/namespaces/app/secrets/s":                                            ok,
		"PATCH /api/v1/namespaces/app/configmaps/c":                                         ok,
		"PATCH /api/v1/namespaces/app/services/web":                                         ok,
		"PATCH /apis/apps/v1/namespaces/app/deployments/web":                                ok,
		"PATCH /apis/example.com/v1/namespaces/app/widgets/w":                               ok,
		"PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/app/rolebindings/b":            ok,
		"PATCH /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook":  ok,
		"GET /api/v1/namespaces/app/serviceaccounts":                                        lists("v1", "ServiceAccount"),
		"WATCH /api/v1/namespaces/app/serviceaccounts":                                      watches(event("ADDED", thing("v1", "ServiceAccount", "app", "default"))),
		"GET /api/v1/namespaces/app/configmaps":                                             lists("v1", "ConfigMap", thing("v1", "ConfigMap", "app", "kube-root-ca.crt")),
		"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions":                       lists("apiextensions.k8s.io/v1", "CustomResourceDefinition", thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com")),
		"PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com": ok,
	})
	established := make(chan struct{})
	s.handlers["WATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions"] = func(w http.ResponseWriter, r *http.Request) {
		o := thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com")
		o["status"] = object{"conditions": []object{{"type": "Established", "status": "True"}}}
		close(established)
		watches(event("MODIFIED", o))(w, r)
	}
	// Discovery lags behind: it tells of the new kind the second time it is asked.
	asked := 0
	s.handlers["GET /apis"] = func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-established:
			if asked++; asked == 2 {
				s.serves("example.com/v1", "Widget widgets namespaced")
			}
		default:
		}
		s.discovery(w, "/apis")
	}
	return s
}

func TestApplyOrder(t *testing.T) {
	s := applying(t)
	set := worstSet()
	applied, err := s.client.Apply(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	if len(applied) != len(worst) {
		t.Errorf("%d answers for %d objects", len(applied), len(worst))
	}
	last := 0
	for _, a := range applied {
		if a.Error != "" {
			t.Errorf("%s: %s", a.Object, a.Error)
		}
		if n := stage(a.Object); n < last {
			t.Errorf("%s of stage %d was answered after one of stage %d", a.Object, n, last)
		} else {
			last = n
		}
	}
	// What the server saw: stages in order, and the ground settled before the first object that needs it.
	sent := s.requests("")
	at := func(line string) int {
		i := slices.Index(sent, line)
		if i < 0 {
			t.Fatalf("%s was not sent", line)
		}
		return i
	}
	chain := []string{
		"PATCH /api/v1/namespaces/app", "WATCH /api/v1/namespaces/app/serviceaccounts", "PATCH /api/v1/namespaces/app/secrets/s",
		"PATCH /api/v1/namespaces/app/services/web", "PATCH /apis/apps/v1/namespaces/app/deployments/web",
		"PATCH /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
	}
	for i := 1; i < len(chain); i++ {
		if at(chain[i-1]) > at(chain[i]) {
			t.Errorf("%s came after %s", chain[i-1], chain[i])
		}
	}
	if at("WATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions") > at("PATCH /apis/example.com/v1/namespaces/app/widgets/w") {
		t.Error("the custom object was sent before its definition was established")
	}
}

func TestApplyRecordsRefusals(t *testing.T) {
	s := applying(t)
	s.handlers["PATCH /api/v1/namespaces/app/secrets/s"] = refuses(422, metav1.StatusReasonInvalid, `Secret "s" is invalid: data: bad`)
	s.handlers["PATCH /apis/apps/v1/namespaces/app/deployments/web"] = refuses(409, metav1.StatusReasonConflict, "conflict with kubectl")
	set := worstSet("example.com/v1 Unheard app u")
	applied, err := s.client.Apply(t.Context(), set)
	if err != nil {
		t.Fatalf("refusals are no trouble: %v", err)
	}
	refused := map[string]string{}
	for _, a := range applied {
		if a.Error != "" {
			refused[a.Object.String()] = a.Reason + " " + a.Error
		}
	}
	for id, text := range map[string]string{
		"Secret/app/s": "Invalid Secret", "Deployment/app/web": "Conflict conflict with kubectl", "Unheard.example.com/app/u": "the cluster serves no Unheard in example.com/v1",
	} {
		if !strings.Contains(refused[id], text) {
			t.Errorf("%s: %q, want %q", id, refused[id], text)
		}
	}
	if len(refused) != 3 || len(applied) != len(set.Objects) {
		t.Errorf("%d answers, refused: %q", len(applied), refused)
	}
	if len(s.requests("PATCH /apis/admissionregistration.k8s.io")) != 1 {
		t.Error("the stages after a refusal were not sent")
	}
}

func TestApplyTrouble(t *testing.T) {
	s := applying(t)
	s.handlers["PATCH /api/v1/namespaces/app/secrets/s"] = refuses(503, metav1.StatusReasonServiceUnavailable, "starting")
	applied, err := s.client.Apply(t.Context(), worstSet())
	if err == nil || !strings.Contains(err.Error(), "applying Secret/app/s") || !strings.Contains(err.Error(), "starting") {
		t.Errorf("error %v, want the trouble and its object", err)
	}
	for _, a := range applied {
		if a.Error != "" && a.Reason != evidence.ReasonTrouble {
			t.Errorf("%s has reason %q: trouble must not look like a refusal", a.Object, a.Reason)
		}
	}
	if len(s.requests("PATCH /apis/apps/")) != 0 {
		t.Error("it went on after trouble")
	}
}

// A group whose discovery fails is not one that the cluster lacks: that would blame the repository.
func TestApplyWhileDiscoveryFails(t *testing.T) {
	s := applying(t)
	s.handlers["GET /apis/apps/v1"] = refuses(503, metav1.StatusReasonServiceUnavailable, "starting")
	applied, err := s.client.Apply(t.Context(), worstSet())
	if err == nil || !strings.Contains(err.Error(), "asking what apps/v1 serves") {
		t.Errorf("error %v, want the trouble", err)
	}
	for _, a := range applied {
		if a.Error != "" && a.Reason != evidence.ReasonTrouble {
			t.Errorf("%s has reason %q: trouble must not look like a refusal", a.Object, a.Reason)
		}
	}
}

func TestTroubled(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, refusedConnection := http.Get(gone.URL)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"invalid":             {t.Context(), apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "w", nil), false},
		"conflict":            {t.Context(), apierrors.NewConflict(widgets, "w", errors.New("x")), false},
		"forbidden":           {t.Context(), apierrors.NewForbidden(widgets, "w", errors.New("x")), false},
		"bad request":         {t.Context(), apierrors.NewBadRequest("x"), false},
		"not found":           {t.Context(), apierrors.NewNotFound(widgets, "w"), false},
		"unserved kind":       {t.Context(), fmt.Errorf("x: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Widget"}}), false},
		"wrapped refusal":     {t.Context(), fmt.Errorf("x: %w", apierrors.NewBadRequest("x")), false},
		"server timeout":      {t.Context(), apierrors.NewServerTimeout(widgets, "patch", 1), true},
		"timeout":             {t.Context(), apierrors.NewTimeoutError("x", 1), true},
		"too many requests":   {t.Context(), apierrors.NewTooManyRequests("x", 1), true},
		"service unavailable": {t.Context(), apierrors.NewServiceUnavailable("x"), true},
		"internal error":      {t.Context(), apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"field not in schema": {t.Context(), apierrors.NewInternalError(errors.New("failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema")), false},
		"failing webhook":     {t.Context(), apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com"`)), false},
		"no connection":       {t.Context(), refusedConnection, true},
		"context ended":       {cancelled, apierrors.NewBadRequest("x"), true},
		"something else":      {t.Context(), errors.New("x"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := troubled(c.ctx, c.err); got != c.want {
				t.Errorf("troubled(%v) = %v, want %v", c.err, got, c.want)
			}
		})
	}
}
