package source_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// treeHash computes a folder's tree id from what the tree gives out.
func treeHash(t *testing.T, tree *source.Tree, dir string) []byte {
	t.Helper()
	list, err := tree.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	key := func(e source.Entry) string { // Git's order: folders as if they ended with a slash
		if e.Kind == source.Dir {
			return e.Path + "/"
		}
		return e.Path
	}
	slices.SortFunc(list, func(a, b source.Entry) int { return strings.Compare(key(a), key(b)) })
	hash := func(kind string, content []byte) []byte {
		sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
		return sum[:]
	}
	var content []byte
	for _, e := range list {
		var id []byte
		switch e.Kind {
		case source.Dir:
			id = treeHash(t, tree, e.Path)
		case source.Submodule:
			id, _ = hex.DecodeString(tree.Gitlink(e.Path))
		case source.Symlink:
			text, err := tree.Text(dir, path.Base(e.Path))
			if err != nil || int64(len(text)) != e.Size {
				t.Errorf("%s: %d bytes, want %d; %v", e.Path, len(text), e.Size, err)
			}
			id = hash("blob", []byte(text))
		default:
			data, err := tree.ReadFile(e.Path)
			if err != nil || int64(len(data)) != e.Size {
				t.Errorf("%s: %d bytes, want %d; %v", e.Path, len(data), e.Size, err)
			}
			id = hash("blob", data)
		}
		content = append(fmt.Appendf(content, "%o %s\x00", e.Mode, path.Base(e.Path)), id...)
	}
	return hash("tree", content)
}

// TestTreeHash: what is given out hashes to the commit's tree, odd names, modes, links and bytes
// included, and nothing else that lies in the work tree.
func TestTreeHash(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "ignored*\n")
	r.write(".gitattributes", "*.txt text eol=crlf ident\n")
	r.write("a.txt", "line $Id$\nline\n")
	r.write("gen.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(r.dir, "gen.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.link("dangling", "no/where")
	r.link("absolute", "/etc/passwd")
	r.link("not\xffutf", "\xff\xfe")
	for _, name := range []string{"con", "aux.yaml", "NUL.tar.gz", "com1", "end.", "end ", " lead", "a b", "new\nline", "tab\tname", "\xff\xfe.yaml", "quote\"'", "back\\slash", "star*", "-option", "\u202egnp.exe", "A", "a/x", "a.b", "a0", "~", strings.Repeat("n", 250)} {
		r.write(name, "content of "+name)
	}
	r.write("ignored.yaml", "ignored")
	r.commit("odd")
	r.run("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("ab", 20)+",vendor")
	r.run("commit", "-q", "-m", "gitlink")
	want := r.run("rev-parse", "HEAD^{tree}")
	r.write("a.txt", "edited")
	r.write("new.yaml", "new")
	r.run("add", "new.yaml")
	r.run("config", "core.autocrlf", "true")
	tree := open(t, r.dir, "HEAD")
	if got := hex.EncodeToString(treeHash(t, tree, ".")); got != want || tree.Revision().Tree != want {
		t.Errorf("the tree given out hashes to %s, the report says %s; want %s", got, tree.Revision().Tree, want)
	}
	for _, name := range []string{"ignored.yaml", "new.yaml"} {
		if _, err := tree.ReadFile(name); err == nil {
			t.Errorf("%s of the work tree was read", name)
		}
	}
}

// TestRevisionMovesMeanwhile: a tag that moves after it was resolved changes nothing, here and at a
// remote; the next Open sees it.
func TestRevisionMovesMeanwhile(t *testing.T) {
	r := newRepo(t)
	r.write("a", "old")
	old := r.commit("old")
	r.run("tag", "v1")
	r.write("a", "new")
	recent := r.commit("new")
	h := newHub(t)
	h.put(r, "x.git")
	bare := repo{t, filepath.Join(h.dir, "x.git")}
	for _, where := range []string{r.dir, "file://" + r.dir, h.URL + "/x.git"} {
		for _, at := range []repo{r, bare} {
			at.run("tag", "-f", "v1", old)
			at.run("branch", "-f", "side", old)
		}
		before := open(t, where, "v1")
		for _, at := range []repo{r, bare} {
			at.run("tag", "-f", "v1", recent)
			at.run("gc", "-q", "--prune=now")
		}
		if got := read(t, before, "a"); got != "old" || before.Revision().Commit != old {
			t.Errorf("%s: read %q of commit %s after the tag moved, want that of %s", where, got, before.Revision().Commit, old)
		}
		if got := hex.EncodeToString(treeHash(t, before, ".")); got != before.Revision().Tree {
			t.Errorf("%s: the tree read is %s, the report says %s", where, got, before.Revision().Tree)
		}
		if after := open(t, where, "v1"); read(t, after, "a") != "new" || after.Revision().Commit != recent {
			t.Errorf("%s: the tag's new commit is not seen", where)
		}
	}
}

// TestLinksToTheHost: no chain of links gives a byte of the host, nor does an error.
func TestLinksToTheHost(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRepo(t)
	r.write("d/file", "inside")
	up := strings.Repeat("../", 30)
	for name, target := range map[string]string{
		"absolute": secret, "environ": "/proc/self/environ", "climb": up + secret[1:], "chain1": "chain2", "chain2": "d/../absolute",
		"d/dir": filepath.Dir(secret), "root": "/", "up": up, "parent": "..", "gitdir": ".git/config", "long": strings.Repeat("d/../", 2000) + "d/file",
		"wide-a": strings.Repeat("wide-b/../", 300) + "d/file", "wide-b": strings.Repeat("wide-c/../", 300) + "d", "wide-c": "d",
	} {
		if len(target) < 4000 {
			r.link(name, target)
		} else { // longer than a disk allows
			r.run("update-index", "--add", "--cacheinfo", "120000,"+r.hash(target)+","+name)
		}
	}
	r.link("fine", "d/../d/./file")
	for i := range 45 {
		r.link(fmt.Sprintf("hop%d", i), fmt.Sprintf("hop%d", i+1))
	}
	r.link("hop45", "d/file")
	r.run("add", "d", "fine", "hop*", "absolute", "environ", "climb", "chain*", "root", "up", "parent", "gitdir", "wide*")
	r.run("commit", "-q", "-m", "links")
	tree := open(t, r.dir, "HEAD")
	for _, name := range []string{"absolute", "environ", "climb", "chain1", "chain2", "d/dir/secret", "root/etc/passwd", "up/etc/passwd", "parent/x", "gitdir", "long", "wide-a", "hop0", "hop1/../x"} {
		data, err := tree.ReadFile(name)
		if err == nil || data != nil || strings.Contains(err.Error(), "canary of the host") {
			t.Errorf("%s gives %q, %v", name, data, err)
		}
	}
	for _, name := range []string{"fine", "hop6", "wide-c/file"} {
		if got := read(t, tree, name); got != "inside" {
			t.Errorf("the twin %s reads %q", name, got)
		}
	}
}

// TestForgedTrees: names that would change the meaning of a path are refused wherever they stand.
func TestForgedTrees(t *testing.T) {
	for name, bad := range map[string]string{"dots": "..", "dot": ".", "empty": "", "slash": "../x", "git": ".git", "git in capitals": ".GIT", "twice": "a", "twin": "b"} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			blob := f.object("blob", []byte("text"))
			tree := append(append(fmt.Appendf(nil, "100644 a\x00"), blob...), append(fmt.Appendf(nil, "100644 %s\x00", bad), blob...)...)
			got, err := source.Open(t.Context(), f.dir, f.commit(f.object("tree", tree)))
			var integrity *source.IntegrityError
			switch {
			case err == nil && name != "twin":
				t.Errorf("a tree with the name %q was read", bad)
			case err != nil && (name == "twin" || !errors.As(err, &integrity)):
				t.Errorf("got %v, want an IntegrityError", err)
			}
			if err == nil {
				got.Close()
			}
		})
	}
}

// TestIntegrityOfIndexes changes every byte of a pack's index in turn: each read gives the honest
// bytes or an error.
func TestIntegrityOfIndexes(t *testing.T) {
	r := newRepo(t)
	r.write("a", "honest")
	r.write("b", "other")
	r.commit("first")
	r.run("gc", "-q")
	files, err := filepath.Glob(filepath.Join(r.dir, ".git/objects/pack/*.idx"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(files[0], 0o600)
	failed := 0
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x03
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := source.Open(t.Context(), filepath.Join(r.dir, ".git"), "HEAD")
		if err != nil {
			failed++
			continue
		}
		if data, err := tree.ReadFile("a"); err != nil {
			failed++
		} else if string(data) != "honest" {
			t.Errorf("byte %d changed: read %q", i, data)
		}
		tree.Close()
	}
	if failed == 0 {
		t.Error("no change of the index was noticed")
	}
}

// TestNoCredentials: what a URL holds of secrets is in no error, whatever goes wrong, and the URL
// without them is.
func TestNoCredentials(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == http.StatusFound {
			http.Redirect(w, r, "http://elsewhere.invalid/x", answer)
			return
		}
		w.WriteHeader(answer)
		fmt.Fprint(w, "not git")
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for name, url := range map[string]string{
		"password": "http://me:hunter2@" + host + "/x", "escaped": "http://me:hunter2%40%2F@" + host + "/x", "token": "http://hunter2@" + host + "/x",
		"query": "http://" + host + "/x?access_token=hunter2", "scheme": "gopher://me:hunter2@" + host + "/x", "not a URL": "http://me:hunter2@[" + host + "/x",
		"port": "http://me:hunter2@127.0.0.1:1/x", "ssh": "ssh://me:hunter2@127.0.0.1:1/x", "file": "file://me:hunter2@localhost/no/such", "no host": "https://me:hunter2@/x", "control": "http://me:hunter2@" + host + "/x\n",
	} {
		for _, answer = range []int{200, 302, 401, 403, 404, 500} {
			_, err := source.Open(t.Context(), url, "main")
			if err == nil {
				t.Fatalf("%s: no error", name)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "hunter2") {
					t.Errorf("%s, answer %d: the credential is in %q", name, answer, e)
				}
			}
		}
	}
	if got := source.Redact("https://me:pw@h.example/a?token=1"); got != "https://xxxxx@h.example/a?xxxxx" {
		t.Errorf("redacted %s", got)
	}
	for _, plain := range []string{"https://h.example/a", "git@h.example:a", "/a/b?c", "../x", "ssh://git@h.example/a"} {
		if got := source.Redact(plain); got != plain {
			t.Errorf("%s became %s", plain, got)
		}
	}
	if got := source.Scrub("dial me p@ss p%40ss", "https://me:p%40ss@h.example/a"); strings.Contains(got, "ss ") || strings.HasSuffix(got, "p%40ss") {
		t.Errorf("scrubbed to %q", got)
	}
}
