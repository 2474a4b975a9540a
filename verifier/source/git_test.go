package source_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// repo is a real repository on disk, made by the git command.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T, options ...string) repo {
	t.Helper()
	r := repo{t, filepath.Join(t.TempDir(), "repo")}
	r.run(append(append([]string{"init", "-q", "-b", "main"}, options...), r.dir)...)
	return r
}

func (r repo) run(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	if _, err := os.Stat(r.dir); err == nil {
		cmd.Dir = r.dir
	}
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) link(name, target string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// commit records everything in the work tree and returns the commit's id.
func (r repo) commit(message string) string {
	r.t.Helper()
	r.run("add", "-A")
	r.run("commit", "-q", "--allow-empty", "-m", message)
	return r.run("rev-parse", "HEAD")
}

func open(t *testing.T, dir, rev string) *source.Tree {
	t.Helper()
	tree, err := source.Open(t.Context(), dir, rev)
	if err != nil {
		t.Fatalf("Open(%s, %s): %v", dir, rev, err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tree
}

func read(t *testing.T, tree *source.Tree, name string) string {
	t.Helper()
	data, err := tree.ReadFile(name)
	if err != nil {
		t.Fatalf("ReadFile(%s): %v", name, err)
	}
	return string(data)
}
