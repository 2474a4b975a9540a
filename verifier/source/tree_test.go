package source_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

func TestTreePaths(t *testing.T) {
	r := newRepo(t)
	r.write("base/cm.yaml", "base text")
	r.write("CM.yaml", "upper")
	r.write("cm.yaml", "lower")
	r.write("NUL.yaml", "device")
	r.write("b/aux/...", "odd")
	r.write("weird\nname", "newline")
	r.link("overlays/prod/cm.yaml", "../../base/cm.yaml")
	r.link("linked", "base")
	r.link("overlays/up", "../linked/../base/cm.yaml")
	r.link("dangling", "nowhere")
	r.link("passwd", "/etc/passwd")
	r.link("escape", "../../../../etc/passwd")
	r.link("loop-a", "loop-b")
	r.link("loop-b", "loop-a")
	r.commit("files")
	r.run("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("ab", 20)+",vendor")
	r.run("commit", "-q", "-m", "submodule")
	tree := open(t, r.dir, "HEAD")
	for name, want := range map[string]string{
		"base/cm.yaml": "base text", "./base//cm.yaml": "base text", "base/../cm.yaml": "lower", "CM.yaml": "upper", "cm.yaml": "lower",
		"overlays/prod/cm.yaml": "base text", "linked/cm.yaml": "base text", "overlays/up": "base text",
		"NUL.yaml": "device", "b/aux/...": "odd", "weird\nname": "newline",
	} {
		if got := read(t, tree, name); got != want {
			t.Errorf("%q reads %q, want %q", name, got, want)
		}
	}
	var usage *source.UsageError
	for _, name := range []string{"nope", "base/nope", "dangling", "cm.yaml/x", "../repo/cm.yaml", "/etc/passwd", "base/../../repo/cm.yaml"} {
		if _, err := tree.ReadFile(name); !errors.As(err, &usage) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, want a UsageError that is fs.ErrNotExist", name, err)
		}
	}
	if _, err := tree.ReadFile("base"); !errors.As(err, &usage) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: %v", err)
	}
	var link *source.LinkError
	for name, want := range map[string]string{"passwd": "out of the repository", "escape": "out of the repository", "loop-a": "never ends"} {
		_, err := tree.ReadFile(name)
		if !errors.As(err, &link) || !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "root:") {
			t.Errorf("%q: %v, want a LinkError that says %q", name, err, want)
		}
	}
	var submodule *source.SubmoduleError
	for _, name := range []string{"vendor", "vendor/base/x"} {
		if _, err := tree.ReadFile(name); !errors.As(err, &submodule) || submodule.Path != "vendor" || submodule.Commit != strings.Repeat("ab", 20) {
			t.Errorf("%q: %v", name, err)
		}
	}
	e, err := tree.Stat("linked/cm.yaml")
	if want := (source.Entry{Path: "base/cm.yaml", Kind: source.File, Mode: 0o100644, Size: 9}); err != nil || e != want {
		t.Errorf("Stat = %+v, %v; want %+v", e, err, want)
	}
	kinds := map[string]string{}
	err = tree.Walk(".", func(e source.Entry) error {
		kinds[e.Path] = e.Kind
		if e.Path == "overlays" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"vendor": source.Submodule, "linked": source.Symlink, "base": source.Dir, "base/cm.yaml": source.File, "overlays": source.Dir, "overlays/up": ""} {
		if kinds[name] != want {
			t.Errorf("Walk says %s is %q, want %q", name, kinds[name], want)
		}
	}
}

func TestIntegrity(t *testing.T) {
	for _, kind := range []string{"blob", "tree", "commit"} {
		t.Run(kind, func(t *testing.T) {
			r := newRepo(t)
			r.write("a", "honest")
			r.commit("first")
			id := r.run("rev-parse", map[string]string{"blob": "HEAD:a", "tree": "HEAD^{tree}", "commit": "HEAD"}[kind])
			if tree := open(t, r.dir, "HEAD"); read(t, tree, "a") != "honest" {
				t.Fatal("the twin is not read")
			}
			// The same kind of object, validly packed, with other content.
			text := r.run("cat-file", kind, id)
			if kind == "tree" {
				text = "100644 a\x00" + strings.Repeat("x", 20)
			}
			text = strings.Replace(text, "honest", "forged", 1) + "\nmore\n"
			var packed bytes.Buffer
			w := zlib.NewWriter(&packed)
			fmt.Fprintf(w, "%s %d\x00%s", kind, len(text), text)
			w.Close()
			file := filepath.Join(r.dir, ".git/objects", id[:2], id[2:])
			os.Remove(file)
			if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			tree, err := source.Open(t.Context(), r.dir, "HEAD")
			if kind == "blob" && err == nil {
				defer tree.Close()
				_, err = tree.ReadFile("a")
			}
			var integrity *source.IntegrityError
			if !errors.As(err, &integrity) || integrity.Object != id {
				t.Errorf("got %v, want an IntegrityError for %s", err, id)
			}
		})
	}
}

// TestIntegrityOfPacks changes every byte of a small pack in turn: each read gives the honest bytes
// or an error.
func TestIntegrityOfPacks(t *testing.T) {
	r := newRepo(t)
	honest := strings.Repeat("some honest text that packs well\n", 40)
	r.write("a", honest)
	r.commit("first")
	r.write("a", honest+"more\n")
	r.commit("second")
	r.run("gc", "-q")
	packs, err := filepath.Glob(filepath.Join(r.dir, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	good, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(packs[0], 0o600)
	failed := 0
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		if err := os.WriteFile(packs[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := source.Open(t.Context(), filepath.Join(r.dir, ".git"), "HEAD~1")
		if err != nil {
			failed++
			continue
		}
		if data, err := tree.ReadFile("a"); err != nil {
			failed++
		} else if string(data) != honest {
			t.Errorf("byte %d changed: read %q", i, data)
		}
		tree.Close()
	}
	if failed == 0 {
		t.Error("no change of the pack was noticed")
	}
}
