package images

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

func TestReferences(t *testing.T) {
	var set evidence.Set
	content := `{"spec":{"template":{"spec":{
		"initContainers":[{"name":"i","image":"b"}],
		"containers":[{"name":"c","image":"a:1"},{"name":"d","image":"a:1"},{"name":"e"}],
		"volumes":[{"name":"m","image":{"reference":"models@sha256:` + strings.Repeat("0", 64) + `"}},{"name":"e","emptyDir":{}}]}}}}`
	object := evidence.Object{ID: evidence.ID{Group: "apps", Kind: "Deployment", Name: "web"}, Origin: evidence.Origin{File: "f", Line: 1},
		Lines: map[string]int{"spec.template.spec.containers[1].image": 9}}
	if err := json.Unmarshal([]byte(content), &object.Content); err != nil {
		t.Fatal(err)
	}
	set.Objects = append(set.Objects, object)
	var got []string
	for _, image := range References(&set) {
		for _, use := range image.Uses {
			got = append(got, fmt.Sprint(image.Reference[:1], image.Pinned, " ", use.Field, " ", use.Origin))
		}
	}
	want := []string{
		"afalse spec.template.spec.containers[0].image f:1",
		"afalse spec.template.spec.containers[1].image f:9",
		"bfalse spec.template.spec.initContainers[0].image f:1",
		"mtrue spec.template.spec.volumes[0].image.reference f:1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestResolveProvesTheChain(t *testing.T) {
	fake := newRegistry(t)
	amd, amdConfig := fake.image(t, "app", "amd", "linux/amd64", "amd")
	arm, _ := fake.image(t, "app", "arm", "linux/arm64/v8", "arm")
	index := fake.index(t, "app", "1", "unknown/unknown", arm, "linux/arm64/v8", arm, "linux/amd64", amd)
	size := int64(1000 + len(`{"architecture":"amd64","author":"amd","os":"linux","variant":""}`))
	base := fake.host() + "/app"
	whole := evidence.Image{Endpoint: fake.URL, Index: index, Manifest: amd, Config: amdConfig, Platform: "linux/amd64", Size: size}
	single := whole
	single.Index = ""
	cases := []struct {
		name, reference, platform, codes string
		want                             evidence.Image
	}{
		{"index by tag", base + ":1", "linux/amd64", "warn image-unpinned", whole},
		{"index by digest", base + "@" + index, "", "", whole},
		{"tag and digest", base + ":1@" + index, "", "", whole},
		{"the digest wins over the tag", base + ":arm@" + index, "", "warn mutable-tag", whole},
		{"tag is gone, the digest is there", base + ":none@" + index, "", "", whole},
		{"single manifest", base + ":amd", "", "warn image-unpinned", single},
		{"single manifest of another platform", base + ":arm", "", "fail image-platform-missing, warn image-unpinned", evidence.Image{Endpoint: fake.URL}},
		{"index without the platform", base + "@" + index, "linux/s390x", "fail image-platform-missing", evidence.Image{Endpoint: fake.URL, Index: index}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := fast(nil)
			options.Platform = c.platform
			list := use(c.reference)
			got, findings := Resolve(context.Background(), list, options)
			c.want.Reference, c.want.Uses, c.want.Pinned = c.reference, list[0].Uses, strings.Contains(c.reference, "@")
			if !reflect.DeepEqual(got[0], c.want) {
				t.Errorf("got  %+v\nwant %+v", got[0], c.want)
			}
			if codes(findings) != c.codes {
				t.Errorf("got %+v, want %s", findings, c.codes)
			}
			if list[0].Endpoint != "" {
				t.Error("the caller's list was changed")
			}
		})
	}
}

func TestUnpinnedSaysThePinnedForm(t *testing.T) {
	fake := newRegistry(t)
	digest, _ := fake.image(t, "app", "1", "", "a")
	_, findings := Resolve(context.Background(), use(fake.host()+"/app:1"), fast(nil))
	if len(findings) != 1 || findings[0].Do != "pin it: "+fake.host()+"/app@"+digest || findings[0].Origin.String() != "web.yaml:12" {
		t.Errorf("got %+v", findings)
	}
}

func TestMirrors(t *testing.T) {
	fake := newRegistry(t)
	digest, _ := fake.image(t, "library/nginx", "latest", "", "nginx")
	fake.image(t, "team/app", "1", "", "app")
	cases := []struct{ name, host, reference string }{
		{"short", "docker.io", "nginx"},
		{"long", "docker.io", "index.docker.io/library/nginx:latest"},
		{"host in the other spelling", "index.docker.io", "docker.io/nginx"},
		{"by digest", "docker.io", "docker.io/library/nginx@" + digest},
		{"other host", "ghcr.io", "ghcr.io/team/app:1"},
		{"host with a port", "registry.example:5000", "registry.example:5000/team/app:1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := fast(nil)
			options.Mirrors = []scenario.Mirror{{Host: "unused.example", Endpoint: "http://127.0.0.1:1"}, {Host: c.host, Endpoint: fake.URL}}
			got, findings := Resolve(context.Background(), use(c.reference), options)
			if !got[0].Resolved() || got[0].Endpoint != fake.URL || len(drop(findings, "image-unpinned")) > 0 {
				t.Errorf("got %+v %+v", got, findings)
			}
		})
	}
	t.Run("nowhere else", func(t *testing.T) {
		origin := newRegistry(t)
		origin.image(t, "app", "1", "", "a")
		origin.requests = nil
		options := fast(nil)
		options.Mirrors = []scenario.Mirror{{Host: origin.host(), Endpoint: fake.URL}}
		_, findings := Resolve(context.Background(), use(origin.host()+"/app:1"), options)
		if codes(drop(findings, "image-unpinned")) != "fail missing-image" || len(origin.requests) > 0 {
			t.Errorf("got %+v, the origin saw %q", findings, origin.requests)
		}
	})
	t.Run("https endpoint without a known certificate", func(t *testing.T) {
		secure := serve(t, httptest.NewTLSServer)
		options := fast(nil)
		options.Mirrors = []scenario.Mirror{{Host: "docker.io", Endpoint: secure.URL}}
		_, findings := Resolve(context.Background(), use("nginx"), options)
		if codes(drop(findings, "image-unpinned")) != "inconclusive registry-unavailable" || !strings.Contains(findings[0].Message, "certificate") || !strings.Contains(findings[0].Do, "docker.io=") {
			t.Errorf("got %+v", findings)
		}
	})
	t.Run("https endpoint", func(t *testing.T) {
		secure := serve(t, httptest.NewTLSServer)
		secure.image(t, "library/nginx", "latest", "", "nginx")
		pool := http.DefaultTransport.(*http.Transport)
		before := pool.TLSClientConfig
		pool.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
		defer func() { pool.TLSClientConfig = before }()
		options := fast(nil)
		options.Mirrors = []scenario.Mirror{{Host: "docker.io", Endpoint: secure.URL}}
		got, findings := Resolve(context.Background(), use("nginx"), options)
		if !got[0].Resolved() || got[0].Endpoint != secure.URL {
			t.Errorf("got %+v %+v", got, findings)
		}
	})
}

// TestOneLookup: fifty Pods, four spellings, two distinct references.
func TestOneLookup(t *testing.T) {
	fake := newRegistry(t)
	fake.image(t, "library/nginx", "latest", "", "nginx")
	fake.image(t, "library/nginx", "2", "", "nginx2")
	fake.requests = nil
	var set evidence.Set
	for i := range 50 {
		spelling := []string{"nginx", "docker.io/nginx", "index.docker.io/library/nginx:latest", "nginx:2"}[i%4]
		set.Objects = append(set.Objects, evidence.Object{ID: evidence.ID{Kind: "Pod", Name: fmt.Sprint("p", i)}, Content: map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": spelling}}}}})
	}
	options := fast(nil)
	options.Mirrors = []scenario.Mirror{{Host: "docker.io", Endpoint: fake.URL}}
	got, findings := Resolve(context.Background(), References(&set), options)
	if len(got) != 4 || len(findings) != 4 {
		t.Fatalf("got %d images, %+v", len(got), findings)
	}
	for i, image := range got {
		if !image.Resolved() || !strings.HasPrefix(findings[i].Do, "pin it: "+strings.TrimSuffix(strings.TrimSuffix(findings[i].Object, ":latest"), ":2")+"@sha256:") {
			t.Errorf("got %+v %+v", image, findings[i])
		}
	}
	for _, request := range []string{"/manifests/latest", "/manifests/2"} {
		if n := fake.count(request); n != 1 {
			t.Errorf("%s was asked for %d times", request, n)
		}
	}
	if n := fake.count("GET /v2/library/nginx"); n != 4 {
		t.Errorf("%d requests, want two manifests and two configs: %q", n, fake.requests)
	}
}

func TestRecheck(t *testing.T) {
	fake := newRegistry(t)
	first, _ := fake.image(t, "app", "1", "", "a")
	other, _ := fake.image(t, "app", "other", "", "b")
	resolved, _ := Resolve(context.Background(), append(use(fake.host()+"/app:1"), use(fake.host()+"/app@"+first)...), fast(nil))
	cases := []struct {
		name, want, after string
		change            func()
	}{
		{"still", "", first, func() {}},
		{"lying header, same content", "fail image-digest-mismatch", "", func() {
			fake.before = func(w http.ResponseWriter, r *http.Request) bool {
				body, _ := fake.fetch(r.URL.Path)
				w.Header().Set("Docker-Content-Digest", other)
				w.Header().Set("Content-Type", ociManifest)
				w.Write(body)
				return true
			}
		}},
		{"moved", "fail image-tag-moved", other, func() { fake.before = nil; fake.image(t, "app", "1", "", "b") }},
		{"trouble", "inconclusive registry-unavailable", "", func() {
			fake.before = func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(500); return true }
		}},
		{"gone", "fail image-gone", "", func() {
			fake.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/v2/" {
					return false
				}
				http.NotFound(w, r)
				return true
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.change()
			got, findings := Recheck(context.Background(), resolved, fast(nil))
			if codes(findings) != c.want || got[0].After != c.after || got[1].After != "" {
				t.Errorf("got %+v\n%+v", got, findings)
			}
			if c.want == "fail image-tag-moved" && (!strings.Contains(findings[0].Message, first) || !strings.Contains(findings[0].Message, other)) {
				t.Errorf("both digests belong in the message: %+v", findings)
			}
		})
	}
}
