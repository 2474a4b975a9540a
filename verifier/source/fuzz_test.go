package source_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// forge writes Git objects that no honest tool would.
type forge struct {
	t     testing.TB
	dir   string
	blobs map[string]bool
	ids   [][]byte
}

func newForge(t testing.TB) *forge {
	f := &forge{t: t, dir: t.TempDir(), blobs: map[string]bool{}}
	for _, dir := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(f.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forge) object(kind string, content []byte) []byte {
	whole := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	sum := sha1.Sum(whole)
	id := hex.EncodeToString(sum[:])
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	w.Write(whole)
	w.Close()
	dir := filepath.Join(f.dir, "objects", id[:2])
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, id[2:]), packed.Bytes(), 0o600)); err != nil {
		f.t.Fatal(err)
	}
	if kind == "blob" {
		f.blobs[string(content)] = true
	}
	f.ids = append(f.ids, sum[:])
	return sum[:]
}

func (f *forge) commit(tree []byte) string {
	return hex.EncodeToString(f.object("commit", fmt.Appendf(nil, "tree %x\nauthor t <t> 0 +0000\ncommitter t <t> 0 +0000\n\nx\n", tree)))
}

// FuzzTree reads trees of any shape. Whatever they hold, only blobs of the repository come back, and
// in bounded time. The input is a program: each step makes a blob, a link's target or a tree of
// objects that exist.
func FuzzTree(f *testing.F) {
	canary := filepath.Join(f.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("of the host"), 0o600); err != nil {
		f.Fatal(err)
	}
	names := []string{"a", "b", "..", ".", "", ".git", ".GIT", "git~1", "a/b", "con", "aux.yaml", "A", "x\ny", "\xff\xfe", "/etc", ".gitmodules", ".gitattributes", "a.yaml", "a ", "\u200c.git"}
	targets := []string{"/etc/passwd", "/proc/self/environ", canary, "..", "../..", "a", "b", "./a/../b", "a/a/a/a/a", "", ".", "//", "../../../../../../etc/passwd", "a\x00b", "\xff\xfe"}
	modes := []string{"40000", "100644", "100755", "120000", "160000", "100664", "040000", "0", "100000", "177777", "99", "40755"}
	f.Add([]byte{0, 1, 0, 1, 5, 2, 3, 1, 0, 0, 3, 1, 1, 0, 4, 2})
	f.Add([]byte{0, 2, 2, 0, 1, 0, 2, 1, 0, 0, 1, 2, 2, 0, 0, 1, 1, 1, 1, 3})
	f.Add(bytes.Repeat([]byte{2, 2, 0, 0, 255, 0, 1, 255}, 40)) // each tree holds the last one twice
	f.Add([]byte{1, 5, 1, 6, 2, 2, 3, 1, 0, 3, 0, 1})           // a -> b -> a
	f.Add([]byte{0, 2, 2, 4, 15, 0, 1, 16, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 600 {
			return
		}
		watchdog := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("reading takes too long: %v", program)) })
		defer watchdog.Stop()
		next := func() int {
			if len(program) == 0 {
				return 0
			}
			b := program[0]
			program = program[1:]
			return int(b)
		}
		made := newForge(t)
		made.object("blob", []byte("first"))
		root := made.object("tree", nil)
		for len(program) > 0 {
			switch next() % 3 {
			case 0:
				made.object("blob", []byte{'#', byte(next())})
			case 1:
				made.object("blob", []byte(targets[next()%len(targets)]))
			case 2:
				var tree []byte
				for range next()%4 + 1 {
					tree = fmt.Appendf(tree, "%s %s\x00", modes[next()%len(modes)], names[next()%len(names)])
					back := next()
					id := make([]byte, 20) // an object that is not there
					if back < 250 || len(made.ids) > 0 && back == 255 {
						id = made.ids[len(made.ids)-1-(255-back)%len(made.ids)]
					}
					tree = append(tree, id...)
				}
				root = made.object("tree", tree)
			}
		}
		tree, err := source.Open(t.Context(), made.dir, made.commit(root))
		if err != nil {
			return
		}
		defer tree.Close()
		look := func(name string) {
			data, err := tree.ReadFile(name)
			if err == nil && !made.blobs[string(data)] || bytes.Contains(data, []byte("of the host")) {
				t.Errorf("%q gives %q, which no blob holds", name, data)
			}
			if e, err := tree.Stat(name); err == nil && (path.IsAbs(e.Path) || e.Path != path.Clean(e.Path) || e.Path == "..") {
				t.Errorf("Stat(%q) = %+v", name, e)
			}
			_, _ = tree.List(name)
		}
		seen := 0
		enough := errors.New("enough")
		_ = tree.Walk(".", func(e source.Entry) error {
			if seen++; seen > 60 {
				return enough
			}
			look(e.Path)
			for _, name := range names[:4] {
				look(e.Path + "/" + name)
			}
			return nil
		})
		for _, name := range append(targets, names...) {
			look(name)
		}
		for _, f := range tree.Findings() {
			if f.Object == "" {
				t.Errorf("finding %+v", f)
			}
		}
	})
}
