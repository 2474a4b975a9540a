package source_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// hub serves the repositories of a folder over HTTP and counts the requests by repository.
type hub struct {
	*httptest.Server
	dir  string
	hits map[string]*atomic.Int32
}

func newHub(t *testing.T, names ...string) *hub {
	t.Helper()
	h := &hub{dir: t.TempDir(), hits: map[string]*atomic.Int32{}}
	for _, name := range names {
		h.hits[name] = &atomic.Int32{}
	}
	backend := filepath.Join(repo{t, h.dir}.run("--exec-path"), "git-http-backend")
	handler := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + h.dir, "GIT_HTTP_EXPORT_ALL=1"}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")[0]
		if n := h.hits[name]; n != nil {
			n.Add(1)
		}
		if name == "broken.git" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

// put serves a repository under a name.
func (h *hub) put(r repo, name string) {
	r.t.Helper()
	r.run("clone", "-q", "--bare", r.dir, filepath.Join(h.dir, name))
}

func TestSubmoduleOfURL(t *testing.T) {
	lib, recorded := library(t)
	elsewhere := newHub(t, "lib.git")
	elsewhere.put(lib, "lib.git")
	young := newRepo(t) // has not the commit
	young.commit("other")
	canary := filepath.Join(t.TempDir(), "canary")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for name, test := range map[string]struct{ url, want string }{
		"relative":             {"../lib.git", ""},
		"same host":            {"HOST/lib.git", ""},
		"same host, upper":     {"HTTP://HOSTNAME/lib.git", ""},
		"nested, relative":     {"../middle.git", ""},
		"other host":           {elsewhere.URL + "/lib.git", "not at the scheme and host"},
		"other scheme":         {"git://HOSTNAME/lib.git", "not at the scheme and host"},
		"file":                 {"file://" + lib.dir, "not at the scheme and host"},
		"path":                 {lib.dir, "is a path of one machine"},
		"option":               {"--upload-pack=touch " + canary, "is not a URL"},
		"option as host":       {"ssh://-oProxyCommand=touch%20" + canary + "/x", "not at the scheme and host"},
		"program":              {"ext::sh -c touch% " + canary, "is not a URL"},
		"short form of SSH":    {"git@HOSTNAME:lib.git", "not at the scheme and host"},
		"password":             {"https://user:hunter2@other.invalid/lib.git", "not at the scheme and host"},
		"none":                 {"", "gives no URL"},
		"no such repository":   {"../gone.git", "repository not found"},
		"has not the commit":   {"../young.git", "no branch or tag"},
		"climbs over the root": {"../../../../lib.git", ""},
		"server in trouble":    {"../broken.git", "trouble"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, "main.git", "lib.git", "unrelated.git")
			host := strings.TrimPrefix(h.URL, "http://")
			h.put(lib, "lib.git")
			h.put(young, "young.git")
			middle := newRepo(t)
			middle.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n")
			middle.commit("declared")
			middle.run("update-index", "--add", "--cacheinfo", "160000,"+recorded+",lib")
			middle.run("commit", "-q", "-m", "gitlink")
			h.put(middle, "middle.git")

			r := newRepo(t)
			url := strings.NewReplacer("HOSTNAME", host, "HOST", h.URL).Replace(test.url)
			commit, file := recorded, "vendor/base/x"
			if strings.Contains(url, "middle") {
				commit, file = middle.run("rev-parse", "HEAD"), "vendor/lib/base/x"
			}
			r.write(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor\n\turl = \""+url+"\"\n[submodule \"u\"]\n\tpath = unrelated\n\turl = ../unrelated.git\n")
			r.write("own", "own text")
			r.commit("declared")
			r.run("update-index", "--add", "--cacheinfo", "160000,"+commit+",vendor")
			r.run("update-index", "--add", "--cacheinfo", "160000,"+commit+",unrelated")
			r.run("commit", "-q", "-m", "gitlink")
			h.put(r, "main.git")

			tree := open(t, h.URL+"/main.git", "main")
			if got := read(t, tree, "own"); got != "own text" || h.hits["lib.git"].Load() != 0 {
				t.Errorf("read %q; the submodule's repository was asked %d times before it was needed", got, h.hits["lib.git"].Load())
			}
			data, err := tree.ReadFile(file)
			var fault *source.SubmoduleError
			switch {
			case test.want == "":
				if err != nil || string(data) != "recorded" {
					t.Errorf("read %q, %v", data, err)
				}
			case test.want == "trouble":
				if err == nil || errors.As(err, &fault) {
					t.Errorf("got %v, want trouble, which is not the repository's fault", err)
				}
			case !errors.As(err, &fault) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2"):
				t.Errorf("got %v, want a SubmoduleError that says %q", err, test.want)
			}
			if n := elsewhere.hits["lib.git"].Load() + h.hits["unrelated.git"].Load(); n != 0 {
				t.Errorf("%d requests went to another host or an unrelated submodule", n)
			}
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "rebuild-check-*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program ran")
	}
}

// TestSubmoduleOfFileURL: a repository given by file:// may have a sibling as its submodule; one
// given as a folder is never left.
func TestSubmoduleOfFileURL(t *testing.T) {
	lib, recorded := library(t)
	h := newHub(t)
	h.put(lib, "lib.git")
	r := newRepo(t)
	r.write(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor\n\turl = ../lib.git\n")
	r.commit("declared")
	r.run("update-index", "--add", "--cacheinfo", "160000,"+recorded+",vendor")
	r.run("commit", "-q", "-m", "gitlink")
	h.put(r, "main.git")
	if got := read(t, open(t, "file://"+h.dir+"/main.git", "main"), "vendor/base/x"); got != "recorded" {
		t.Errorf("read %q", got)
	}
	var fault *source.SubmoduleError
	if _, err := open(t, h.dir+"/main.git", "main").ReadFile("vendor/base/x"); !errors.As(err, &fault) {
		t.Errorf("given as a folder: %v, want a SubmoduleError", err)
	}
}

func TestResolveURL(t *testing.T) {
	for _, test := range []struct{ base, address, full, why string }{
		{"https://h.example/a/b.git", "../c.git", "https://h.example/a/c.git", ""},
		{"https://u:p@h.example:8443/a/b.git/", "../../c", "https://u:p@h.example:8443/c", ""},
		{"https://h.example/a/b.git", "./c", "https://h.example/a/b.git/c", ""},
		{"git@h.example:a/b.git", "../c.git", "git@h.example:a/c.git", ""},
		{"git@h.example:a/b.git", "../../../c.git", "", "leads nowhere"},
		{"git@h.example:a.git", "../-oProxyCommand=x", "", "leads nowhere"},
		{"git@h.example:a/b.git", "ssh://git@H.example/a/c.git", "ssh://git@H.example/a/c.git", ""},
		{"git@h.example:a/b.git", "git@other.example:c.git", "", "not at the scheme and host"},
		{"git@h.example:a/b.git", "git@h.example:-oProxyCommand=x", "", "not at the scheme and host"},
		{"https://h.example/a.git", "http://h.example/c.git", "", "not at the scheme and host"},
		{"https://h.example/a.git", "https://h.example:444/c.git", "", "not at the scheme and host"},
		{"https://h.example/a.git", "https://h.example@other.example/c.git", "", "not at the scheme and host"},
		{"https://h.example/a.git", "https://h.example/c.git\n", "", "is not a URL"},
		{"https://h.example/a.git", "..\\c.git", "", "is a path"},
	} {
		full, why := source.ResolveURL(test.base, test.address)
		if full != test.full || (test.why == "") != (why == "") || !strings.Contains(why, test.why) {
			t.Errorf("%s from %s: %q, %q; want %q, %q", test.address, test.base, full, why, test.full, test.why)
		}
	}
}
