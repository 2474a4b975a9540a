package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// library makes a repository whose file base/x says "recorded" in the commit that it returns and
// "tip" in the newest one.
func library(t *testing.T) (repo, string) {
	t.Helper()
	lib := newRepo(t)
	lib.write("base/x", "recorded")
	recorded := lib.commit("first")
	lib.write("base/x", "tip")
	lib.commit("second")
	return lib, recorded
}

// add records a submodule at a path of r.
func (r repo) submodule(lib repo, commit, path string, options ...string) {
	r.t.Helper()
	r.run(append(append([]string{"submodule", "--quiet", "add"}, options...), lib.dir, path)...)
	repo{r.t, filepath.Join(r.dir, path)}.run("checkout", "-q", commit)
	r.commit("submodule")
}

// TestSubmoduleOnDisk: the recorded commit is read wherever git keeps it, not the branch's tip and
// not the submodule's work tree.
func TestSubmoduleOnDisk(t *testing.T) {
	lib, recorded := library(t)
	for name, prepare := range map[string]func(t *testing.T) (dir, path string){
		"absorbed": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			return r.dir, "vendor"
		},
		"branch elsewhere and files edited": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			repo{t, filepath.Join(r.dir, "vendor")}.run("checkout", "-q", "main")
			r.write("vendor/base/x", "edited")
			return r.dir, "vendor"
		},
		"name is not the path": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "third party/lib", "--name", "odd/name")
			return r.dir, "third party/lib"
		},
		"folder emptied": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			r.run("submodule", "--quiet", "deinit", "-f", "vendor")
			return r.dir, "vendor"
		},
		"own Git folder, not declared": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.run("clone", "-q", lib.dir, filepath.Join(r.dir, "vendor"))
			repo{t, filepath.Join(r.dir, "vendor")}.run("checkout", "-q", recorded)
			r.commit("gitlink")
			return r.dir, "vendor"
		},
		"linked worktree, objects in the common folder": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			r.run("worktree", "add", "-q", r.dir+"-side", "HEAD")
			return r.dir + "-side", "vendor"
		},
		"linked worktree, objects of its own": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			clone := repo{t, r.dir + "-clone"}
			r.run("clone", "-q", r.dir, clone.dir)
			clone.run("worktree", "add", "-q", clone.dir+"-side", "HEAD")
			repo{t, clone.dir + "-side"}.run("submodule", "--quiet", "update", "--init")
			if err := os.RemoveAll(filepath.Join(clone.dir+"-side", "vendor")); err != nil { // which names the objects too
				t.Fatal(err)
			}
			return clone.dir + "-side", "vendor"
		},
		"bare": func(t *testing.T) (string, string) {
			r := newRepo(t)
			r.submodule(lib, recorded, "vendor")
			return filepath.Join(r.dir, ".git"), "vendor"
		},
		"nested": func(t *testing.T) (string, string) {
			middle := newRepo(t)
			middle.submodule(lib, recorded, "deep/lib")
			r := newRepo(t)
			r.submodule(middle, "main", "vendor")
			r.run("submodule", "--quiet", "update", "--init", "--recursive")
			return r.dir, "vendor/deep/lib"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := prepare(t)
			tree := open(t, dir, "HEAD")
			if got := read(t, tree, path+"/base/x"); got != "recorded" {
				t.Errorf("read %q, want what the recorded commit has", got)
			}
			if e, err := tree.Stat(path + "/."); err != nil || e.Kind != source.Dir || e.Path != path {
				t.Errorf("the submodule's folder: %+v, %v", e, err)
			}
			list, err := tree.List(path)
			if err != nil || len(list) != 1 || list[0].Path != path+"/base" {
				t.Errorf("List = %+v, %v", list, err)
			}
		})
	}
}

// TestSubmoduleLinks: links pass the border of a submodule as they do on a disk, and not that of the
// repository.
func TestSubmoduleLinks(t *testing.T) {
	lib := newRepo(t)
	lib.write("x", "in the library")
	lib.link("up", "../own")
	lib.link("out", "../../own")
	recorded := lib.commit("first")
	r := newRepo(t)
	r.write("own", "in the repository")
	r.link("alias", "vendor/x")
	r.submodule(lib, recorded, "vendor")
	tree := open(t, r.dir, "HEAD")
	if got := read(t, tree, "alias"); got != "in the library" {
		t.Errorf("a link into the submodule reads %q", got)
	}
	if got := read(t, tree, "vendor/up"); got != "in the repository" {
		t.Errorf("a link out of the submodule reads %q", got)
	}
	var link *source.LinkError
	if _, err := tree.ReadFile("vendor/out"); !errors.As(err, &link) {
		t.Errorf("a link out of the repository: %v", err)
	}
}

func TestSubmoduleMissing(t *testing.T) {
	lib, recorded := library(t)
	missing := func(t *testing.T, tree *source.Tree, declared, why string) {
		t.Helper()
		for range 2 {
			_, err := tree.ReadFile("vendor/base/x")
			var fault *source.SubmoduleError
			if !errors.As(err, &fault) || fault.Path != "vendor" || fault.Commit != recorded || fault.Declared != declared || !strings.Contains(err.Error(), why) {
				t.Errorf("got %v, want a SubmoduleError declared at %q that says %q", err, declared, why)
			}
		}
		if got := read(t, tree, "own"); got != "own text" {
			t.Errorf("another path reads %q", got)
		}
		if e, err := tree.Stat("vendor"); err != nil || e.Kind != source.Submodule {
			t.Errorf("the submodule itself: %+v, %v", e, err)
		}
	}
	made := func(t *testing.T, options ...string) repo {
		r := newRepo(t)
		r.write("own", "own text")
		r.submodule(lib, recorded, "vendor", options...)
		return r
	}
	t.Run("not fetched", func(t *testing.T) {
		r := made(t)
		r.run("clone", "-q", r.dir, r.dir+"-clone")
		missing(t, open(t, r.dir+"-clone", "HEAD"), ".gitmodules:2", "git submodule update --init")
	})
	t.Run("not declared", func(t *testing.T) {
		r := newRepo(t)
		r.write("own", "own text")
		r.commit("own")
		r.run("update-index", "--add", "--cacheinfo", "160000,"+recorded+",vendor")
		r.run("commit", "-q", "-m", "gitlink")
		missing(t, open(t, r.dir, "HEAD"), "", "which .gitmodules does not declare")
	})
	t.Run("commit not fetched", func(t *testing.T) {
		r := made(t)
		clone := repo{t, r.dir + "-clone"}
		r.run("clone", "-q", r.dir, clone.dir)
		other := newRepo(t)
		other.commit("other")
		clone.run("clone", "-q", "--bare", other.dir, filepath.Join(clone.dir, ".git/modules/vendor"))
		missing(t, open(t, clone.dir, "HEAD"), ".gitmodules:2", "does not have that commit")
	})
	t.Run("name that leads elsewhere", func(t *testing.T) {
		r := made(t)
		clone := repo{t, r.dir + "-clone"}
		r.run("clone", "-q", r.dir, clone.dir)
		clone.write(".gitmodules", "[submodule \"../other\"]\n\tpath = vendor\n\turl = https://example.invalid/x\n")
		clone.run("clone", "-q", "--bare", lib.dir, filepath.Join(clone.dir, ".git/other"))
		clone.run("add", ".gitmodules")
		clone.run("commit", "-q", "-m", "hostile")
		missing(t, open(t, clone.dir, "HEAD"), "", "does not hold it")
	})
	t.Run("work tree leads elsewhere by a link", func(t *testing.T) {
		r := made(t)
		clone := repo{t, r.dir + "-clone"}
		r.run("clone", "-q", r.dir, clone.dir)
		if err := os.Remove(filepath.Join(clone.dir, "vendor")); err != nil {
			t.Fatal(err)
		}
		clone.link("vendor", lib.dir)
		missing(t, open(t, clone.dir, "HEAD"), ".gitmodules:2", "does not hold it")
	})
	t.Run("format that cannot be read", func(t *testing.T) {
		r := made(t)
		repo{t, filepath.Join(r.dir, "vendor")}.run("config", "extensions.fancy", "true")
		repo{t, filepath.Join(r.dir, "vendor")}.run("config", "core.repositoryformatversion", "0")
		missing(t, open(t, r.dir, "HEAD"), ".gitmodules:2", "extension fancy")
	})
	t.Run("too many", func(t *testing.T) {
		r := newRepo(t)
		for i := range 70 {
			r.run("update-index", "--add", "--cacheinfo", fmt.Sprintf("160000,%s,m%02d", recorded, i))
		}
		r.run("commit", "-q", "-m", "gitlinks")
		tree := open(t, r.dir, "HEAD")
		for i := range 70 {
			_, err := tree.ReadFile(fmt.Sprintf("m%02d/x", i))
			if err == nil || strings.Contains(err.Error(), "more than 64") != (i >= 64) {
				t.Errorf("submodule %d: %v", i, err)
			}
		}
	})
}

// TestSubmoduleIntegrity: a forged commit in the submodule's objects is told as such.
func TestSubmoduleIntegrity(t *testing.T) {
	lib, recorded := library(t)
	r := newRepo(t)
	r.submodule(lib, recorded, "vendor")
	objects := filepath.Join(r.dir, ".git/modules/vendor/objects")
	other := lib.run("rev-parse", "main")
	data, err := os.ReadFile(filepath.Join(objects, other[:2], other[2:]))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(objects, recorded[:2], recorded[2:])
	os.Remove(file)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, r.dir, "HEAD").ReadFile("vendor/base/x")
	var integrity *source.IntegrityError
	if !errors.As(err, &integrity) || integrity.Object != recorded {
		t.Errorf("got %v, want an IntegrityError for %s", err, recorded)
	}
}
