package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
)

// keychain is what the user's Docker config would hold, by registry host.
type keychain map[string]authn.Authenticator

func (k keychain) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	switch found, ok := k[resource.RegistryStr()]; {
	case !ok:
		return authn.Anonymous, nil
	case found == nil:
		return nil, errors.New("helper broke: SECRET")
	default:
		return found, nil
	}
}

func TestAuthorization(t *testing.T) {
	user := &authn.Basic{Username: "u", Password: "p"}
	wrong := &authn.Basic{Username: "u", Password: "x"}
	basic := func(f *fakeRegistry, w http.ResponseWriter, r *http.Request) bool {
		if name, password, _ := r.BasicAuth(); name == "u" && password == "p" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	bearer := func(f *fakeRegistry, w http.ResponseWriter, r *http.Request) bool {
		name, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && name == "u" && password == "p":
			if r.URL.Query().Get("scope") != "repository:app:pull" {
				return true
			}
			io.WriteString(w, `{"token":"t"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") == "Bearer t":
			return false
		default:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="s"`, f.URL))
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	}
	open := func(*fakeRegistry, http.ResponseWriter, *http.Request) bool { return false }
	cases := []struct {
		name  string
		front func(*fakeRegistry, http.ResponseWriter, *http.Request) bool
		auth  authn.Authenticator
		broke bool
		want  string
	}{
		{name: "basic", front: basic, auth: user},
		{name: "basic, wrong password", front: basic, auth: wrong, want: "unauthorized"},
		{name: "basic, nobody", front: basic, auth: authn.Anonymous, want: "unauthorized"},
		{name: "bearer", front: bearer, auth: user},
		{name: "bearer, wrong password", front: bearer, auth: wrong, want: "unauthorized"},
		{name: "bearer, nobody", front: bearer, auth: authn.Anonymous, want: "unauthorized"},
		{name: "public, the helper fails", front: open, broke: true},
		{name: "private, the helper fails", front: basic, broke: true, want: "credential helper"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fake := newRegistry(t)
			digest, _ := fake.image(t, "app", "1", "", "a")
			fake.before = func(w http.ResponseWriter, r *http.Request) bool { return c.front(fake, w, r) }
			options := fast(nil)
			options.Keychain = keychain{fake.host(): c.auth}
			if c.broke {
				options.Keychain = keychain{fake.host(): nil}
			}
			got, findings := Resolve(context.Background(), use(fake.host()+"/app@"+digest), options)
			if c.want == "" {
				if len(findings) > 0 || !got[0].Resolved() {
					t.Errorf("got %+v %+v", got, findings)
				}
				return
			}
			if codes(findings) != "inconclusive registry-unavailable" || !strings.Contains(findings[0].Message, c.want) || strings.Contains(fmt.Sprint(findings), "SECRET") {
				t.Errorf("got %+v", findings)
			}
		})
	}
}

// TestRedirects: a registry elsewhere cannot send this process to an address that only it can reach.
func TestRedirects(t *testing.T) {
	cases := []struct {
		name, from, to string
		refused        bool
	}{
		{"to another host", "https://reg.example/v2/", "https://cdn.example/x", false},
		{"to the metadata service", "https://reg.example/v2/", "https://169.254.169.254/x", true},
		{"to this machine", "https://reg.example/v2/", "https://localhost/x", true},
		{"to plain http", "https://reg.example/v2/", "http://cdn.example/x", true},
		{"on this machine", "http://127.0.0.1:5000/v2/", "http://127.0.0.1:9000/x", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			from, _ := http.NewRequest(http.MethodGet, c.from, nil)
			to, _ := http.NewRequest(http.MethodGet, c.to, nil)
			if err := checkRedirect(to, []*http.Request{from}); (err != nil) != c.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
