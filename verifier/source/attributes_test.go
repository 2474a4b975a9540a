package source_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/source"
)

// TestAttributes compares with git itself: a finding stands exactly where a checkout changes bytes.
func TestAttributes(t *testing.T) {
	const lf, crlf, umlaut = "a: 1\nb: 2\n", "a: 1\r\nb: 2\r\n", "a: \u00fc\n"
	binary := "a\n" + strings.Repeat("\x01", 100)
	for name, test := range map[string]struct{ attributes, text, want string }{
		"eol=crlf":                          {"*.yaml eol=crlf", lf, "eol=crlf .gitattributes:1"},
		"text eol=crlf":                     {"*.yaml text eol=crlf", lf, "eol=crlf .gitattributes:1"},
		"text=auto eol=crlf":                {"* text=auto eol=crlf", lf, "eol=crlf .gitattributes:1"},
		"two lines":                         {"# first\n\n*.yaml text\ndeploy/* eol=crlf", lf, "eol=crlf .gitattributes:4"},
		"mixed line ends":                   {"* eol=crlf", lf + crlf, "eol=crlf .gitattributes:1"},
		"binary with text":                  {"* text eol=crlf", binary, "eol=crlf .gitattributes:1"},
		"crlf by macro":                     {"[attr]dos text eol=crlf\n*.yaml dos", lf, "eol=crlf .gitattributes:2"},
		"older name":                        {"* crlf=input eol=crlf", lf, "eol=crlf .gitattributes:1"},
		"quoted pattern":                    {"\"deploy/a.yaml\" eol=crlf", lf, "eol=crlf .gitattributes:1"},
		"ident":                             {"*.yaml ident", "# $Id$\n" + lf, "ident .gitattributes:1"},
		"ident, old value":                  {"*.yaml ident", "# $Id: 1234 $\n" + lf, "ident .gitattributes:1"},
		"filter":                            {"*.yaml filter=upper", lf, "filter=upper .gitattributes:1"},
		"filter and -text":                  {"*.yaml -text filter=upper", lf, "filter=upper .gitattributes:1"},
		"encoding":                          {"*.yaml working-tree-encoding=UTF-16LE", lf, "working-tree-encoding=UTF-16LE .gitattributes:1"},
		"encoding, foreign letter":          {"*.yaml working-tree-encoding=ISO-8859-1", umlaut, "working-tree-encoding=ISO-8859-1 .gitattributes:1"},
		"two attributes":                    {"*.yaml eol=crlf\n*.yaml ident", "# $Id$\n", "eol=crlf .gitattributes:1, ident .gitattributes:2"},
		"twin: text":                        {"*.yaml text", lf, ""},
		"twin: text=auto":                   {"* text=auto", lf, ""},
		"twin: text, CRLF in Git":           {"* text", crlf, ""},
		"twin: eol=lf":                      {"* text eol=lf", lf, ""},
		"twin: eol=lf, CRLF in Git":         {"* text eol=lf", crlf, ""},
		"twin: -text":                       {"* -text", lf, ""},
		"twin: -text before eol":            {"* -text eol=crlf", lf, ""},
		"twin: binary":                      {"* binary eol=crlf", lf, ""},
		"twin: no -crlf":                    {"* -crlf eol=crlf", lf, ""},
		"twin: has CRLF":                    {"* eol=crlf", crlf, ""},
		"twin: no line end":                 {"* eol=crlf", "a: 1", ""},
		"twin: auto, mixed":                 {"* text=auto eol=crlf", lf + crlf, ""},
		"twin: auto, NUL":                   {"* text=auto eol=crlf", lf + "\x00", ""},
		"twin: auto, binary":                {"* text=auto eol=crlf", binary, ""},
		"twin: other files":                 {"*.txt eol=crlf ident filter=upper", lf, ""},
		"twin: folder pattern":              {"deploy/ eol=crlf", lf, ""},
		"twin: taken back":                  {"*.yaml eol=crlf\na.yaml !eol", lf, ""},
		"twin: unset later":                 {"*.yaml eol=crlf filter=upper\na.yaml -text -filter", lf, ""},
		"twin: ident without keyword":       {"*.yaml ident", lf, ""},
		"twin: ident, foreign":              {"*.yaml ident", "# $Id: a file 1.2 $\n", ""},
		"twin: ident, other word":           {"*.yaml ident", "# $Identity$ $Id\n$\n", ""},
		"twin: encoding UTF-8":              {"*.yaml working-tree-encoding=UTF-8", umlaut, ""},
		"twin: encoding, ASCII":             {"*.yaml working-tree-encoding=ISO-8859-1", lf, ""},
		"twin: negative pattern":            {"!*.yaml eol=crlf", lf, ""},
		"twin: comment":                     {"# *.yaml eol=crlf", lf, ""},
		"twin: export-ignore":               {"* export-ignore diff=x merge=y", lf, ""},
		"twin: LFS, and no pointer":         {"*.yaml filter=lfs diff=lfs merge=lfs -text", lf, ""},
		"twin: macro not set":               {"[attr]dos text eol=crlf\n*.yaml -dos", lf, ""},
		"twin: line too long":               {"*.yaml eol=crlf " + strings.Repeat("x ", 2000), lf, ""},
		"twin: macro by the line of a file": {"*.yaml dos", lf, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write(".gitattributes", test.attributes+"\n")
			r.run("add", ".gitattributes")
			id := r.hash(test.text)
			r.run("update-index", "--add", "--cacheinfo", "100644,"+id+",deploy/a.yaml")
			r.run("commit", "-q", "-m", "x")
			clone := r.dir + "-clone"
			r.run("-c", "filter.upper.smudge=tr a-z A-Z", "clone", "-q", r.dir, clone)
			out, err := os.ReadFile(filepath.Join(clone, "deploy/a.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if (string(out) != test.text) != (test.want != "") {
				t.Fatalf("the case is wrong: git writes %q for %q", out, test.text)
			}
			tree := open(t, r.dir, "HEAD")
			if got := findings(t, tree); got != "" {
				t.Errorf("found %s before a file was read", got)
			}
			if got := read(t, tree, "deploy/a.yaml"); got != test.text {
				t.Errorf("read %q, want Git's bytes %q", got, test.text)
			}
			if got := findings(t, tree); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// hash writes a blob of exactly these bytes.
func (r repo) hash(text string) string {
	r.t.Helper()
	cmd := exec.Command("git", "hash-object", "-w", "--stdin", "--no-filters")
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// findings lists ATTRIBUTE FILE:LINE.
func findings(t *testing.T, tree *source.Tree) string {
	t.Helper()
	var all []string
	for _, f := range tree.Findings() {
		if f.Code != "gitattributes-ignored" || f.Severity != "warn" || !strings.Contains(f.Message, f.Object) || !strings.Contains(f.Message, f.Field) {
			t.Errorf("finding %+v", f)
		}
		all = append(all, f.Field+" "+f.Origin.String())
	}
	return strings.Join(all, ", ")
}

// TestAttributesOfFolders: the nearest file decides, only files that were read count, and a
// submodule has its own attributes.
func TestAttributesOfFolders(t *testing.T) {
	lib := newRepo(t)
	lib.write("sub/x", "text\n")
	recorded := lib.commit("first")
	r := newRepo(t)
	r.write(".gitattributes", "* eol=crlf\n")
	r.write("a/.gitattributes", "* -text\nb/x text\n")
	for _, name := range []string{"a/x", "a/b/x", "c/x", "c/y", "c/z", "d/x", "not-read"} {
		r.write(name, "text\n")
	}
	r.link("d/.gitattributes", "../a/.gitattributes")
	r.link("linked", "a/x")
	r.run("add", "-A")
	r.run("commit", "-q", "-m", "x")
	r.submodule(lib, recorded, "vendor")
	tree := open(t, r.dir, "HEAD")
	for _, name := range []string{"a/x", "linked", "vendor/sub/x"} {
		read(t, tree, name)
		if got := findings(t, tree); got != "" {
			t.Errorf("after reading %s: %s", name, got)
		}
	}
	for _, name := range []string{"d/x", "c/z", "c/x", "a/b/x", "c/y", "c/y"} {
		read(t, tree, name)
	}
	all := tree.Findings()
	if len(all) != 1 || all[0].Object != "a/b/x" || !strings.Contains(all[0].Message, "a/b/x, c/x, c/y and 2 more, by eol=crlf") {
		t.Errorf("findings %+v", all)
	}
}

// TestWildmatch compares with git check-attr.
func TestWildmatch(t *testing.T) {
	names := []string{"a", "a.yaml", "b/a", "b/a.yaml", "b/c/a", "b/c/a.yaml", "b/c/d/a", "aa", "a[b]", "a-b", "a*b", "b c", "\u00fc", "b/]", "b/-", "b/^", "b/~", "#a", "\\a", "A"}
	patterns := []string{"a", "/a", "*", "*.yaml", "/*.yaml", "b/*", "b/**", "**/a", "b/**/a", "**", "/**", "**/c/**", "b/c", "b/c/", "a?", "?", "a[[]b]", "a[-]b", "a[*?]b", "a\\*b",
		"[ab]", "[!a]", "[^a]*", "[a-c]*", "[[:lower:]]", "[[:upper:]]", "b/[]]", "b/[]-]", "b/[!]]", "b/[~^]", "[", "a[", "[z-a]", "***", "b/***", "b**a", "b/**a", "**a", "\u00fc", "?\u00fc", "\\#a", "\\\\a", "/b/*/a", "*/a", "*/*/a", "a**", "[\\a]", "[a\\-b]"}
	r := newRepo(t)
	for _, pattern := range patterns {
		r.write(".gitattributes", pattern+" hit\n")
		var want, got []string
		for line := range strings.SplitSeq(r.run(append([]string{"-c", "core.quotePath=false", "check-attr", "hit", "--"}, names...)...), "\n") {
			if name, ok := strings.CutSuffix(line, ": hit: set"); ok {
				want = append(want, strings.Trim(name, `"`))
			}
		}
		match, base := source.Wildmatch(pattern)
		for _, name := range names {
			if match == nil {
				continue
			}
			if whole := name; base && match(filepath.Base(whole)) || !base && match(whole) {
				got = append(got, name)
			}
		}
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], `\\`, `\`)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %s, and for git %s", pattern, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}
