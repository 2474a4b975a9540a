package images

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func TestFaults(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.WriteHeader(code)
			io.WriteString(w, body)
			return true
		}
	}
	answer := func(part, contentType, body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			w.Header().Set("Content-Type", contentType)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			io.WriteString(w, body)
			return true
		}
	}
	const lie = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	cases := []struct {
		name     string
		before   func(http.ResponseWriter, *http.Request) bool
		want     string
		says     string
		requests int
	}{
		{"none", nil, "", "", 1},
		{"401", status(401, ""), "inconclusive registry-unavailable", "unauthorized", 1},
		{"403 without words", status(403, ""), "inconclusive registry-unavailable", "unauthorized", 1},
		{"403", status(403, `{"errors":[{"code":"DENIED"}]}`), "inconclusive registry-unavailable", "unauthorized", 1},
		{"404 that means denied", status(404, `{"errors":[{"code":"DENIED"}]}`), "inconclusive registry-unavailable", "unauthorized", 1},
		{"404", status(404, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`), "fail missing-image", "MANIFEST_UNKNOWN", 1},
		{"404 without words", status(404, "<html>"), "fail missing-image", "404", 1},
		{"400 name unknown", status(400, `{"errors":[{"code":"NAME_UNKNOWN"}]}`), "fail missing-image", "NAME_UNKNOWN", 1},
		{"429 for ever", status(429, ""), "inconclusive registry-unavailable", "429", 3},
		{"500", status(500, ""), "inconclusive registry-unavailable", "500", 3},
		{"503", status(503, ""), "inconclusive registry-unavailable", "503", 3},
		{"cut off", answer("/manifests/", ociManifest, "{", "Content-Length", "400"), "inconclusive registry-unavailable", "did not answer", 3},
		{"lying digest header", answer("/manifests/", ociManifest, `{"schemaVersion":2}`, "Docker-Content-Digest", lie), "fail image-digest-mismatch", "promised", 1},
		{"schema 1", answer("/manifests/", "application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1,"name":"app"}`), "fail image-unverified", "schema 1", 1},
		{"not JSON", answer("/manifests/", ociManifest, `hello`), "fail image-unverified", "not JSON", 1},
		{"index and image at once", answer("/manifests/", ociManifest, `{"schemaVersion":2,"manifests":[],"layers":[]}`), "fail image-unverified", "both", 1},
		{"a config that is no digest", answer("/manifests/", ociManifest, `{"schemaVersion":2,"config":{"digest":"../x"}}`), "fail image-unverified", "no digest", 1},
		{"another config", answer("/blobs/", "", `{}`), "fail image-digest-mismatch", "config", 1},
		{"no config", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.NotFound(w, r)
				return true
			}
			return false
		}, "fail missing-image", "config sha256:", 1},
		{"not a registry", func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }, "inconclusive registry-unavailable", "404", 0},
		{"ping unavailable", func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(502); return true }, "inconclusive registry-unavailable", "502", 0},
		{"redirect to elsewhere on this machine is followed", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/1") {
				http.Redirect(w, r, strings.Replace(r.URL.Path, "/manifests/1", "/manifests/2", 1), http.StatusTemporaryRedirect)
				return true
			}
			return false
		}, "", "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fake := newRegistry(t)
			fake.image(t, "app", "2", "", "a")
			fake.image(t, "app", "1", "", "a")
			fake.requests, fake.before = nil, c.before
			got, findings := Resolve(context.Background(), use(fake.host()+"/app:1"), fast(nil))
			findings = drop(findings, "image-unpinned")
			if codes(findings) != c.want {
				t.Fatalf("got %+v, want %s", findings, c.want)
			}
			if n := fake.count("GET /v2/app/manifests/1"); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if got[0].Resolved() != (c.want == "") {
				t.Errorf("got %+v", got[0])
			}
			if c.want == "" {
				return
			}
			f := findings[0]
			if !strings.Contains(f.Message, c.says) || f.Object != fake.host()+"/app:1" || f.NeededBy != "Deployment/app/web" || f.Field == "" || f.Origin.String() != "web.yaml:12" {
				t.Errorf("got %+v, want it to say %q", f, c.says)
			}
			if f.Code == "registry-unavailable" && (!strings.Contains(f.Message, fake.host()) || !strings.Contains(f.Do, "--registry-mirror "+fake.host()+"=")) {
				t.Errorf("the endpoint and the way out are not named: %+v", f)
			}
		})
	}
}

func drop(findings []evidence.Finding, code string) []evidence.Finding {
	var rest []evidence.Finding
	for _, f := range findings {
		if f.Code != code {
			rest = append(rest, f)
		}
	}
	return rest
}

func TestPinnedDigestMustMatch(t *testing.T) {
	fake := newRegistry(t)
	digest, _ := fake.image(t, "app", "1", "", "a")
	fake.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, digest) {
			w.Header().Set("Content-Type", ociManifest)
			io.WriteString(w, `{"schemaVersion":2}`)
			return true
		}
		return false
	}
	_, findings := Resolve(context.Background(), use(fake.host()+"/app@"+digest), fast(nil))
	if codes(findings) != "fail image-digest-mismatch" || findings[0].Want != digest {
		t.Errorf("got %+v", findings)
	}
}

func TestRetryAfter(t *testing.T) {
	fake := newRegistry(t)
	fake.image(t, "app", "1", "", "a")
	refusals := 2
	fake.before = func(w http.ResponseWriter, r *http.Request) bool {
		if refusals == 0 || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		refusals--
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	var pauses []time.Duration
	got, findings := Resolve(context.Background(), use(fake.host()+"/app:1"), fast(&pauses))
	if codes(findings) != "warn image-unpinned" || !got[0].Resolved() {
		t.Errorf("got %+v %+v", got, findings)
	}
	if !reflect.DeepEqual(pauses, []time.Duration{7 * time.Second, 7 * time.Second}) {
		t.Errorf("paused %v", pauses)
	}

	refusals, pauses = 99, nil
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, findings = Resolve(ctx, use(fake.host()+"/app:1"), fast(&pauses))
	if codes(findings) != "inconclusive registry-unavailable, warn image-unpinned" || len(pauses) > 0 {
		t.Errorf("a pause beyond the time limit is no use: got %+v, paused %v", findings, pauses)
	}
}

func TestNoAnswer(t *testing.T) {
	silent := newRegistry(t)
	release := make(chan struct{})
	defer close(release)
	silent.before = func(http.ResponseWriter, *http.Request) bool { <-release; return true }
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, findings := Resolve(ctx, use(silent.host()+"/app:1"), fast(nil))
	if codes(drop(findings, "image-unpinned")) != "inconclusive registry-unavailable" || !strings.Contains(findings[0].Message, "in time") {
		t.Errorf("got %+v", findings)
	}

	gone := newRegistry(t)
	gone.Close()
	_, findings = Resolve(context.Background(), use(gone.host()+"/app:1"), fast(nil))
	if codes(drop(findings, "image-unpinned")) != "inconclusive registry-unavailable" || !strings.Contains(findings[0].Message, "refused") {
		t.Errorf("got %+v", findings)
	}
}
