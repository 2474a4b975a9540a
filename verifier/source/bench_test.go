package source_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// TestReadForBenchmark is one measurement of ci/bench-source: it reads a folder of a repository once,
// through this package or by go-git alone, and prints the time, the peak resident set and the processor time.
func TestReadForBenchmark(t *testing.T) {
	dir, folder, by := os.Getenv("BENCH_REPOSITORY"), os.Getenv("BENCH_FOLDER"), os.Getenv("BENCH_BY")
	if dir == "" {
		t.Skip("ci/bench-source runs this")
	}
	start := time.Now()
	files, bytes, err := map[string]func(*testing.T, string, string) (int, int, error){"source": readBySource, "go-git": readByGoGit}[by](t, dir, folder)
	seconds := time.Since(start).Seconds()
	if err != nil {
		t.Fatal(err)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	processor := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	fmt.Printf("measured %.4f s %d MB %.4f s of processor %d files %d bytes\n", seconds, usage.Maxrss>>10, processor, files, bytes)
}

func readBySource(t *testing.T, dir, folder string) (files, bytes int, err error) {
	tree, err := source.Open(t.Context(), dir, "main")
	if err != nil {
		return 0, 0, err
	}
	defer tree.Close()
	err = tree.Walk(folder, func(e source.Entry) error {
		if e.Kind != source.File {
			return nil
		}
		data, err := tree.ReadFile(e.Path)
		files, bytes = files+1, bytes+len(data)
		return err
	})
	return files, bytes, err
}

// readByGoGit reads the same objects without hashing them.
func readByGoGit(t *testing.T, dir, folder string) (files, bytes int, err error) {
	r, err := git.PlainOpen(dir)
	if err != nil {
		return 0, 0, err
	}
	id, err := r.ResolveRevision(plumbing.Revision("main"))
	if err != nil {
		return 0, 0, err
	}
	commit, err := r.CommitObject(*id)
	if err != nil {
		return 0, 0, err
	}
	root, err := commit.Tree()
	if err != nil {
		return 0, 0, err
	}
	tree, err := root.Tree(folder)
	if err != nil {
		return 0, 0, err
	}
	err = tree.Files().ForEach(func(f *object.File) error {
		r, err := f.Reader()
		if err != nil {
			return err
		}
		var text strings.Builder
		_, err = io.Copy(&text, r)
		files, bytes = files+1, bytes+text.Len()
		return err
	})
	return files, bytes, err
}
