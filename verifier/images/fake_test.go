package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// fakeRegistry is a real in-memory registry with a handler in front that tests make faulty.
type fakeRegistry struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	// before answers a request itself when it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newRegistry(t *testing.T) *fakeRegistry { return serve(t, httptest.NewServer) }

func serve(t *testing.T, start func(http.Handler) *httptest.Server) *fakeRegistry {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	fake := &fakeRegistry{}
	fake.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fake.mu.Lock()
		fake.requests = append(fake.requests, r.Method+" "+r.URL.Path)
		before := fake.before
		fake.mu.Unlock()
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	fake.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(fake.Close)
	return fake
}

func (f *fakeRegistry) host() string { return strings.TrimPrefix(f.URL, "http://") }

func (f *fakeRegistry) count(part string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, request := range f.requests {
		if strings.Contains(request, part) {
			n++
		}
	}
	return n
}

// put stores content at a path below /v2/ and gives its digest.
func (f *fakeRegistry) put(t *testing.T, path, mediaType, content string) string {
	t.Helper()
	method, url := http.MethodPut, f.URL+"/v2/"+path
	digest := hashLike("sha256:", []byte(content))
	if strings.Contains(path, "/blobs/") {
		method, url = http.MethodPost, url+"uploads/?digest="+digest
	}
	request, err := http.NewRequest(method, url, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := f.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("storing %s: %s", path, response.Status)
	}
	return digest
}

const ociManifest, ociIndex = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"

// image stores an image and gives the digests of its manifest and config.
func (f *fakeRegistry) image(t *testing.T, repository, tag, platform, salt string) (manifest, config string) {
	t.Helper()
	p, err := parsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]string{"os": p.OS, "architecture": p.Architecture, "variant": p.Variant, "author": salt})
	config = f.put(t, repository+"/blobs/", "", string(text))
	layer := f.put(t, repository+"/blobs/", "", "layer"+salt)
	manifest = f.put(t, repository+"/manifests/"+tag, ociManifest, fmt.Sprintf(
		`{"schemaVersion":2,"mediaType":%q,"config":{"digest":%q,"size":%d},"layers":[{"digest":%q,"size":1000}]}`, ociManifest, config, len(text), layer))
	return manifest, config
}

// index stores an index of platform -> manifest, in the order given.
func (f *fakeRegistry) index(t *testing.T, repository, tag string, entries ...string) string {
	t.Helper()
	var list []string
	for i := 0; i < len(entries); i += 2 {
		p, _ := parsePlatform(entries[i])
		list = append(list, fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":1,"platform":{"os":%q,"architecture":%q,"variant":%q}}`, ociManifest, entries[i+1], p.OS, p.Architecture, p.Variant))
	}
	return f.put(t, repository+"/manifests/"+tag, ociIndex, `{"schemaVersion":2,"mediaType":"`+ociIndex+`","manifests":[`+strings.Join(list, ",")+`]}`)
}

// fast are options without the user's credentials, and with pauses that pass at once and are noted.
func fast(pauses *[]time.Duration) Options {
	var mu sync.Mutex
	return Options{Keychain: authn.NewMultiKeychain(), sleep: func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		if pauses != nil {
			*pauses = append(*pauses, d)
		}
		return ctx.Err()
	}}
}

func use(reference string) []evidence.Image {
	return []evidence.Image{{Reference: reference, Uses: []evidence.Use{{
		Object: evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "web"},
		Field:  "spec.template.spec.containers[0].image", Origin: evidence.Origin{File: "web.yaml", Line: 12},
	}}}}
}

func codes(findings []evidence.Finding) string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Severity)+" "+f.Code)
	}
	return strings.Join(out, ", ")
}

// fetch reads a path of the real registry behind the handler.
func (f *fakeRegistry) fetch(path string) ([]byte, error) {
	f.mu.Lock()
	before := f.before
	f.before = nil
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.before = before; f.mu.Unlock() }()
	response, err := http.Get(f.URL + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	return body.Bytes(), err
}
