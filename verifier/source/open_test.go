package source_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

func TestOpenPlaces(t *testing.T) {
	r := newRepo(t)
	r.write("deep/er/a", "main text")
	main := r.commit("first")
	side := r.dir + "-side"
	r.run("worktree", "add", "-q", "-b", "side", side)
	s := repo{t, side}
	s.write("deep/er/a", "side text")
	sideCommit := s.commit("side")
	bare := r.dir + ".git"
	r.run("clone", "-q", "--bare", r.dir, bare)
	bareSide := bare + "-side"
	repo{t, bare}.run("worktree", "add", "-q", bareSide, "side")
	shared, again := r.dir+"-shared", r.dir+"-again"
	r.run("clone", "-q", "--shared", r.dir, shared)
	r.run("clone", "-q", "--shared", shared, again)
	relative := r.dir + "-relative"
	r.run("clone", "-q", "--shared", r.dir, relative)
	if err := os.WriteFile(filepath.Join(relative, ".git/objects/info/alternates"), []byte("../../../repo/.git/objects\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, packed := range []string{"loose", "packed"} {
		if packed == "packed" {
			r.run("gc", "-q")
			repo{t, bare}.run("gc", "-q")
		}
		for name, test := range map[string]struct{ dir, commit, text string }{
			"root":                {r.dir, main, "main text"},
			"subfolder":           {filepath.Join(r.dir, "deep/er"), main, "main text"},
			"bare":                {bare, main, "main text"},
			"the .git folder":     {filepath.Join(r.dir, ".git"), main, "main text"},
			"linked worktree":     {side, sideCommit, "side text"},
			"worktree of bare":    {bareSide, sideCommit, "side text"},
			"alternates":          {shared, main, "main text"},
			"alternates of those": {again, main, "main text"},
			"relative alternates": {relative, main, "main text"},
			"file URL":            {"file://" + r.dir, main, "main text"},
		} {
			t.Run(packed+"/"+name, func(t *testing.T) {
				tree := open(t, test.dir, "HEAD")
				if got := tree.Revision().Commit; got != test.commit {
					t.Errorf("commit %s, want %s", got, test.commit)
				}
				if got := read(t, tree, "deep/er/a"); got != test.text {
					t.Errorf("read %q, want %q", got, test.text)
				}
			})
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Open(t.Context(), shared, "HEAD"); err == nil || !strings.Contains(err.Error(), "alternates") {
		t.Errorf("lost alternates: %v", err)
	}
}

func TestOpenHTTP(t *testing.T) {
	r := newRepo(t)
	r.write("a", "text")
	want := r.commit("first")
	r.run("tag", "-a", "v1", "-m", "x")
	r.run("branch", "topic")
	backend := filepath.Join(strings.TrimSpace(r.run("--exec-path")), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1"}})
	defer server.Close()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, rev := range []string{"HEAD", "main", "topic", "origin/topic", "v1", want[:9]} {
		tree := open(t, server.URL+"/repo/.git", rev)
		if got := tree.Revision(); got.Commit != want || got.Dirty != nil {
			t.Errorf("%s: %+v, want commit %s", rev, got, want)
		}
		if got := read(t, tree, "a"); got != "text" {
			t.Errorf("%s: read %q", rev, got)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := source.Open(t.Context(), server.URL+"/repo/.git", "mian")
	var usage *source.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "near names: main") {
		t.Errorf("unknown revision: %v", err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	if _, err = source.Open(t.Context(), gone.URL+"/x", "HEAD"); !errors.As(err, &usage) {
		t.Errorf("no such repository: %v", err)
	}
	gone.Close()
	_, err = source.Open(t.Context(), strings.Replace(gone.URL, "://", "://user:hunter2@", 1)+"/x", "HEAD")
	if usage = nil; err == nil || errors.As(err, &usage) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a server that does not answer: %v", err)
	}
	if left, _ := os.ReadDir(temp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestShallow(t *testing.T) {
	r := newRepo(t)
	first := r.commit("first")
	second := r.commit("second")
	shallow := r.dir + "-shallow"
	r.run("clone", "-q", "--depth", "1", "file://"+r.dir, shallow)
	if got := open(t, shallow, "HEAD").Revision().Commit; got != second {
		t.Errorf("HEAD is %s, want %s", got, second)
	}
	for _, rev := range []string{"HEAD~1", first} {
		_, err := source.Open(t.Context(), shallow, rev)
		var usage *source.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "shallow clone lacks") {
			t.Errorf("%s: %v", rev, err)
		}
	}
}

func TestFormatsThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		config []string
		want   string
	}{
		"sha256":            {nil, "SHA256"},
		"reftable":          {[]string{"core.repositoryformatversion=1", "extensions.refStorage=reftable"}, "reftable"},
		"unknown extension": {[]string{"core.repositoryformatversion=1", "extensions.fancy=true"}, "fancy"},
		"future version":    {[]string{"core.repositoryformatversion=7"}, "version 7"},
		"twin: harmless":    {[]string{"core.repositoryformatversion=1", "extensions.worktreeConfig=true", "extensions.objectFormat=sha1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var options []string
			if name == "sha256" {
				options = []string{"--object-format=sha256"}
			}
			r := newRepo(t, options...)
			r.commit("first")
			for _, pair := range test.config {
				key, value, _ := strings.Cut(pair, "=")
				r.run("config", "--file", ".git/config", key, value)
			}
			tree, err := source.Open(t.Context(), r.dir, "HEAD")
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				tree.Close()
				return
			}
			var usage *source.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a UsageError with %q", err, test.want)
			}
		})
	}
}

func TestNoRepository(t *testing.T) {
	for _, where := range []string{t.TempDir(), "/does/not/exist", "gopher://example.invalid/x"} {
		var usage *source.UsageError
		if _, err := source.Open(t.Context(), where, "HEAD"); !errors.As(err, &usage) {
			t.Errorf("Open(%s): %v, want a UsageError", where, err)
		}
	}
}

func TestDirty(t *testing.T) {
	r := newRepo(t)
	r.write("a", "committed")
	r.commit("first")
	if got := open(t, r.dir, "HEAD").Revision().Dirty; len(got) != 0 {
		t.Errorf("a clean work tree: %v", got)
	}
	hook := filepath.Join(t.TempDir(), "canary")
	r.run("config", "core.fsmonitor", "touch "+hook)
	r.write("a", "changed")
	r.write("new file", "x")
	tree := open(t, r.dir, "HEAD")
	if got := tree.Revision().Dirty; len(got) != 2 || got[0] != "a" || got[1] != "new file" {
		t.Errorf("dirty %v, want a and new file", got)
	}
	if got := read(t, tree, "a"); got != "committed" {
		t.Errorf("read %q from the work tree", got)
	}
	if _, err := tree.Stat("new file"); err == nil {
		t.Error("an uncommitted file is in the tree")
	}
	if _, err := os.Stat(hook); err == nil {
		t.Error("the repository's fsmonitor hook ran")
	}
	t.Setenv("PATH", "")
	if _, err := exec.LookPath("git"); err == nil {
		t.Skip("git is found without PATH")
	}
	if got := open(t, r.dir, "HEAD").Revision(); got.Dirty != nil || got.Commit == "" {
		t.Errorf("without git: %+v", got)
	}
}
