package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildArgument {
		ChildMain()
	}
	os.Exit(m.Run())
}

// files is a tree by path. A text "-> x" is a link, "submodule" a submodule.
type files map[string]string

type submoduleError struct{ path string }

func (e submoduleError) Error() string               { return e.path + " is a submodule" }
func (e submoduleError) Submodule() (string, string) { return e.path, "abc" }

func (f files) real(name string) (string, error) {
	at := "."
	todo := strings.Split(path.Clean(name), "/")
	for links := 0; len(todo) > 0; {
		next := path.Join(at, todo[0])
		todo = todo[1:]
		if next == ".." || strings.HasPrefix(next, "../") {
			return "", fmt.Errorf("%s leads out: %w", name, fs.ErrInvalid)
		}
		target, isLink := strings.CutPrefix(f[next], "-> ")
		switch {
		case f[next] == "submodule" && len(todo) > 0:
			return "", submoduleError{next}
		case !isLink:
			at = next
			continue
		case path.IsAbs(target), links > 10:
			return "", fmt.Errorf("%s leads out: %w", name, fs.ErrInvalid)
		}
		links++
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at, nil
}

func (f files) entry(name string) (Entry, error) {
	text, isFile := f[name]
	switch {
	case text == "submodule":
		return Entry{Path: name, Kind: "submodule"}, nil
	case strings.HasPrefix(text, "-> "):
		return Entry{Path: name, Kind: "symlink"}, nil
	case isFile:
		return Entry{Path: name, Kind: "file", Size: int64(len(text))}, nil
	}
	for other := range f {
		if name == "." || strings.HasPrefix(other, name+"/") {
			return Entry{Path: name, Kind: "dir"}, nil
		}
	}
	return Entry{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func (f files) Stat(name string) (Entry, error) {
	real, err := f.real(name)
	if err != nil {
		return Entry{}, err
	}
	return f.entry(real)
}

func (f files) ReadFile(name string) ([]byte, error) {
	e, err := f.Stat(name)
	if err == nil && e.Kind != "file" {
		err = errors.New("not a file")
	}
	return []byte(f[e.Path]), err
}

func (f files) List(dir string) ([]Entry, error) {
	names := map[string]bool{}
	for name := range f {
		if rest, ok := strings.CutPrefix("./"+name, path.Join("./", dir)+"/"); ok || dir == "." {
			if dir == "." {
				rest = name
			}
			first, _, _ := strings.Cut(rest, "/")
			names[path.Join(dir, first)] = true
		} else if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names[path.Join(dir, first)] = true
		}
	}
	var all []Entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, err := f.entry(name)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func render(t *testing.T, tree Tree, opts Options) (*evidence.Set, []evidence.Finding) {
	t.Helper()
	set, findings, err := Render(t.Context(), tree, opts)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	return set, findings
}

// codes lists findings as CODE FILE:LINE.
func codes(findings []evidence.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, strings.TrimSpace(f.Code+" "+f.Origin.String()))
	}
	return all
}

// ids lists objects as ID FILE:LINE.
func ids(set *evidence.Set) []string {
	var all []string
	for _, o := range set.Objects {
		all = append(all, o.ID.String()+" "+o.Origin.String())
	}
	return all
}
