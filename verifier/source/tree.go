package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Kinds of an Entry.
const (
	File      = "file"
	Dir       = "dir"
	Symlink   = "symlink"
	Submodule = "submodule"
)

// Entry is one path of the tree. It is an unnamed struct, so that a package that cannot import this
// one can still ask for it in an interface.
type Entry = struct {
	// Path is slash-separated, from the tree's root; "." is the root.
	Path string
	// Kind is File, Dir, Symlink or Submodule.
	Kind string
	// Mode is Git's mode: 0o100644, 0o100755, 0o40000, 0o120000 or 0o160000.
	Mode uint32
	// Size is the length in bytes of a file or a link's target, 0 for the others.
	Size int64
}

// maxLinks is how many symbolic links one path may pass, as on Linux.
const maxLinks = 40

type treeEntry struct {
	name string
	mode uint32
	id   plumbing.Hash
}

func (e treeEntry) kind() string {
	switch e.mode {
	case 0o40000:
		return Dir
	case 0o120000:
		return Symlink
	case 0o160000:
		return Submodule
	}
	return File
}

// entries reads a tree object; the caller must not change the result.
func (t *Tree) entries(id plumbing.Hash) ([]treeEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, ok := t.parsed[id]; ok {
		return list, nil
	}
	kind, data, err := t.objects.read(id)
	if err != nil {
		return nil, err
	}
	if kind != plumbing.TreeObject {
		return nil, &IntegrityError{Object: id.String(), Why: "it is a " + kind.String() + ", where a tree was expected"}
	}
	list, err := parseTree(data)
	if err != nil {
		return nil, &IntegrityError{Object: id.String(), Why: err.Error()}
	}
	t.parsed[id] = list
	return list, nil
}

// parseTree decodes a tree object and refuses names that Git itself refuses to check out because
// they would change the meaning of a path.
func parseTree(data []byte) ([]treeEntry, error) {
	var list []treeEntry
	seen := map[string]bool{}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < 20 {
			return nil, errors.New("the tree is cut off")
		}
		bits, err := strconv.ParseUint(mode, 8, 32)
		switch bits {
		case 0o40000, 0o120000, 0o160000, 0o100644, 0o100664, 0o100755:
		default:
			return nil, fmt.Errorf("entry %q has the unknown mode %q (%v)", name, mode, err)
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || seen[name] {
			return nil, fmt.Errorf("the tree holds the impossible or repeated name %q", name)
		}
		seen[name] = true
		list = append(list, treeEntry{name: name, mode: uint32(bits), id: plumbing.Hash(rest[:20])})
		data = rest[20:]
	}
	return list, nil
}

// found is an entry and its real path, with every link on the way followed.
type found struct {
	treeEntry
	path string
}

// lookup walks to a path. Links on the way are followed inside the tree, the last one only if
// follow is set.
func (t *Tree) lookup(name string, follow bool) (found, error) {
	missing := func() error {
		return &UsageError{Asked: fmt.Sprintf("path %q", name), Problem: "it is not in the revision", Cause: fs.ErrNotExist}
	}
	if path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return found{}, missing()
	}
	at := []found{{treeEntry{mode: 0o40000, id: t.root}, "."}}
	todo := strings.Split(name, "/")
	links := 0
	var via found // the link that is being followed
	var target string
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		here := at[len(at)-1]
		switch {
		case here.kind() == Submodule:
			return found{}, &SubmoduleError{Path: here.path, Commit: here.id.String()}
		case here.kind() != Dir:
			return found{}, missing()
		case part == "" || part == ".":
			continue
		case part == "..":
			if len(at) == 1 {
				if links > 0 {
					return found{}, &LinkError{Path: via.path, Target: target, Why: "it leads out of the repository"}
				}
				return found{}, missing()
			}
			at = at[:len(at)-1]
			continue
		}
		list, err := t.entries(here.id)
		if err != nil {
			return found{}, err
		}
		i := slices.IndexFunc(list, func(e treeEntry) bool { return e.name == part })
		if i < 0 {
			return found{}, missing()
		}
		next := found{list[i], path.Join(here.path, part)}
		if next.kind() != Symlink || (len(todo) == 0 && !follow) {
			at = append(at, next)
			continue
		}
		kind, text, err := t.objects.read(next.id)
		if err != nil {
			return found{}, err
		}
		if kind != plumbing.BlobObject {
			return found{}, &IntegrityError{Object: next.id.String(), Why: "a link's target is a " + kind.String()}
		}
		via, target = next, string(text)
		if links++; links > maxLinks {
			return found{}, &LinkError{Path: next.path, Target: target, Why: "following it never ends"}
		}
		if path.IsAbs(target) {
			return found{}, &LinkError{Path: next.path, Target: target, Why: "it leads out of the repository"}
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at[len(at)-1], nil
}

func (t *Tree) entry(f found) (Entry, error) {
	e := Entry{Path: f.path, Kind: f.kind(), Mode: f.mode}
	if e.Kind == File || e.Kind == Symlink {
		size, err := t.objects.size(f.id)
		if err != nil {
			return Entry{}, err
		}
		e.Size = size
	}
	return e, nil
}

// Stat describes a path. Links are followed, and Path of the result is where they lead. A missing
// path is a *UsageError that errors.Is finds fs.ErrNotExist in; a path inside a submodule is a
// *SubmoduleError (the submodule itself is an entry), a link out of the tree a *LinkError.
func (t *Tree) Stat(name string) (Entry, error) {
	f, err := t.lookup(name, true)
	if err != nil {
		return Entry{}, err
	}
	return t.entry(f)
}

// ReadFile returns the bytes of a file as they are in Git, following links. Errors are those of Stat.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	f, err := t.lookup(name, true)
	if err != nil {
		return nil, err
	}
	switch f.kind() {
	case Submodule:
		return nil, &SubmoduleError{Path: f.path, Commit: f.id.String()}
	case Dir:
		return nil, &UsageError{Asked: fmt.Sprintf("path %q", name), Problem: "it is a folder, not a file"}
	}
	kind, data, err := t.objects.read(f.id)
	if err == nil && kind != plumbing.BlobObject {
		err = &IntegrityError{Object: f.id.String(), Why: "it is a " + kind.String() + ", where a file was expected"}
	}
	return data, err
}

// List returns the entries of a folder in the order of their names. Links are listed as links.
func (t *Tree) List(dir string) ([]Entry, error) {
	f, err := t.lookup(dir, true)
	if err != nil {
		return nil, err
	}
	switch f.kind() {
	case Submodule:
		return nil, &SubmoduleError{Path: f.path, Commit: f.id.String()}
	case File:
		return nil, &UsageError{Asked: fmt.Sprintf("path %q", dir), Problem: "it is a file, not a folder"}
	}
	list, err := t.entries(f.id)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, e := range list {
		one, err := t.entry(found{e, path.Join(f.path, e.name)})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// Walk calls fn for everything below dir, folders before what they hold, in the order of names.
// Links are not followed. fs.SkipDir from fn for a folder skips it; any other error ends the walk.
func (t *Tree) Walk(dir string, fn func(Entry) error) error {
	list, err := t.List(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		err := fn(e)
		if errors.Is(err, fs.SkipDir) && e.Kind == Dir {
			continue
		}
		if err == nil && e.Kind == Dir {
			err = t.Walk(e.Path, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
