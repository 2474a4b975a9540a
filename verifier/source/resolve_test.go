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

func TestRevisionNames(t *testing.T) {
	r := newRepo(t)
	r.write("a", "1")
	first := r.commit("first")
	r.run("tag", "light")
	r.write("a", "2")
	second := r.commit("second")
	r.run("tag", "-a", "v1", "-m", "x")
	r.run("tag", "-a", "v1-signed", "-m", "y", "v1")
	r.run("branch", "team/feature", first)
	r.run("update-ref", "refs/remotes/origin/topic", first)
	r.run("update-ref", "refs/heads/HEAD", first)
	merge := strings.TrimSpace(r.run("commit-tree", "-p", second, "-p", first, "-m", "m", second+"^{tree}"))
	for _, packed := range []bool{false, true} {
		if packed {
			r.run("update-ref", "refs/heads/merged", merge)
			r.run("gc", "-q")
		}
		for rev, want := range map[string]string{
			first: first, first[:7]: first, first[:8]: first, strings.ToUpper(first[:12]): first,
			"main": second, "heads/main": second, "refs/heads/main": second, "light": first,
			"v1": second, "v1-signed": second, "tags/v1": second, "v1^{}": second, "v1^{commit}": second, "v1^0": second,
			"team/feature": first, "origin/topic": first,
			"HEAD": second, "@": second, "": second, "HEAD~1": first, "HEAD^": first, "HEAD~0": second, "v1-signed~": first,
			merge + "^2": first, merge + "^1~1": first,
		} {
			t.Run(fmt.Sprintf("packed=%v/%s", packed, rev), func(t *testing.T) {
				tree := open(t, r.dir, rev)
				got := tree.Revision()
				if got.Commit != want {
					t.Errorf("commit %s, want %s", got.Commit, want)
				}
				if wantTree := r.run("rev-parse", want+"^{tree}"); got.Tree != wantTree {
					t.Errorf("tree %s, want %s", got.Tree, wantTree)
				}
			})
		}
	}
}

func TestRevisionIsUsageError(t *testing.T) {
	r := newRepo(t)
	r.write("a", "1")
	id := r.commit("first")
	blob := r.run("rev-parse", "HEAD:a")
	r.run("tag", "of-blob", blob)
	for name, test := range map[string]struct{ rev, want string }{
		"unknown, with near name":  {"mian", "near names: main"},
		"unknown, far":             {"completely-else", "names that exist: main"},
		"unknown full id":          {strings.Repeat("12", 20), "has no object"},
		"blob":                     {blob, "names a blob"},
		"tree":                     {r.run("rev-parse", "HEAD^{tree}"), "names a tree"},
		"tag of a blob":            {"of-blob", "names a blob"},
		"short id of a blob":       {blob[:10], "no branch, tag or commit"},
		"three digits":             {id[:3], "no branch, tag or commit"},
		"too far back":             {"HEAD~1", "has 0 parents"},
		"second parent of a child": {"HEAD^2", "has 0 parents"},
		"out of refs":              {"../config", "no branch, tag or commit"},
		"reflog":                   {"HEAD@{1}", "no branch, tag or commit"},
		"range":                    {"a..b", "no branch, tag or commit"},
		"only steps":               {"~1", "not a revision"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.Open(t.Context(), r.dir, test.rev)
			var usage *source.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.rev) {
				t.Errorf("got %v, want a UsageError that names %q and says %q", err, test.rev, test.want)
			}
		})
	}
	empty := newRepo(t)
	if _, err := source.Open(t.Context(), empty.dir, "HEAD"); err == nil || !strings.Contains(err.Error(), "no commit") {
		t.Errorf("an empty repository: %v", err)
	}
}

// TestAmbiguousShortID makes commits until two share four digits, then asks for those.
func TestAmbiguousShortID(t *testing.T) {
	r := newRepo(t)
	r.write("a", "1")
	tree := r.run("rev-parse", r.commit("first")+"^{tree}")
	var in strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&in, "commit refs/heads/n%d\ncommitter t <t@example.invalid> %d +0000\ndata 1\nx\n", i, 1000+i)
	}
	file := filepath.Join(t.TempDir(), "stream")
	if err := os.WriteFile(file, []byte(in.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run("-c", "alias.load=!git fast-import --quiet <"+file, "load")
	byPrefix := map[string][]string{}
	for line := range strings.SplitSeq(r.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"), "\n") {
		if id, kind, _ := strings.Cut(line, " "); kind == "commit" {
			byPrefix[id[:4]] = append(byPrefix[id[:4]], id)
		}
	}
	clash := false
	for prefix, ids := range byPrefix {
		if len(ids) == 2 {
			clash = true
			var usage *source.UsageError
			if _, err := source.Open(t.Context(), r.dir, prefix); !errors.As(err, &usage) || !strings.Contains(err.Error(), ids[0]) || !strings.Contains(err.Error(), ids[1]) {
				t.Errorf("prefix %s: %v, want both of %v", prefix, err, ids)
			}
			if got := open(t, r.dir, ids[0][:12]).Revision().Commit; got != ids[0] {
				t.Errorf("a longer prefix gives %s, want %s", got, ids[0])
			}
			break
		}
	}
	if !clash {
		t.Fatal("no two of 1500 commits share four digits: the test shows nothing")
	}
	// A blob that shares four digits with a commit does not make it ambiguous.
	var commit string
	for i := 0; commit == ""; i++ {
		r.write("b", fmt.Sprint(i))
		if ids := byPrefix[r.run("hash-object", "b")[:4]]; len(ids) == 1 {
			r.run("hash-object", "-w", "b")
			commit = ids[0]
		}
	}
	if got := open(t, r.dir, commit[:4]).Revision(); got.Commit != commit || got.Tree == tree {
		t.Errorf("got %+v, want commit %s", got, commit)
	}
}
