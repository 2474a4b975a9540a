package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
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

const (
	maxLinks  = 40   // symbolic links that one path may pass, as on Linux
	maxTarget = 4096 // bytes of a link's target, as on Linux
)

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

// folder is a decoded tree object.
type folder struct {
	list   []treeEntry
	byName map[string]int
}

// folder reads a tree object of a module.
func (t *Tree) folder(in *module, id plumbing.Hash) (*folder, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f, ok := t.parsed[id]; ok {
		return f, nil
	}
	kind, data, err := in.objects.read(id)
	if err != nil {
		return nil, err
	}
	if kind != plumbing.TreeObject {
		return nil, &IntegrityError{Object: id.String(), Why: "it is a " + kind.String() + ", where a tree was expected"}
	}
	f, err := parseTree(data)
	if err != nil {
		return nil, &IntegrityError{Object: id.String(), Why: err.Error()}
	}
	t.parsed[id] = f
	return f, nil
}

// found is an entry, its real path, with every link on the way followed, and its repository.
type found struct {
	treeEntry
	path string
	in   *module
}

// child is an entry of a folder.
func (f found) child(e treeEntry) found {
	if f.path == "." {
		return found{e, e.name, f.in}
	}
	return found{e, f.path + "/" + e.name, f.in}
}

// lookup walks to a path, following links inside the tree and entering submodules, the last one only
// if enter is set. The result is the way there: the root, the real folders, and what the path names.
func (t *Tree) lookup(name string, enter bool) ([]found, error) {
	missing := func() error {
		return &UsageError{Asked: fmt.Sprintf("path %q", name), Problem: "it is not in the revision", Cause: fs.ErrNotExist}
	}
	if path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return nil, missing()
	}
	at := []found{{treeEntry{mode: 0o40000, id: t.top.root}, ".", t.top}}
	todo := strings.Split(name, "/")
	links := 0
	var via found // the link that is being followed
	var target string
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		here := at[len(at)-1]
		switch {
		case here.kind() != Dir:
			return nil, missing()
		case part == "" || part == ".":
			continue
		case part == "..":
			if len(at) == 1 {
				if links > 0 {
					return nil, &LinkError{Path: via.path, Target: target, Why: "it leads out of the repository"}
				}
				return nil, missing()
			}
			at = at[:len(at)-1]
			continue
		}
		entries, err := t.folder(here.in, here.id)
		if err != nil {
			return nil, err
		}
		i, ok := entries.byName[part]
		if !ok {
			return nil, missing()
		}
		next := here.child(entries.list[i])
		switch next.kind() {
		case Submodule:
			if enter || len(todo) > 0 {
				if next, err = t.enter(next); err != nil {
					return nil, err
				}
			}
			fallthrough
		case File, Dir:
			at = append(at, next)
			continue
		}
		via = next
		if target, err = next.text(); err != nil {
			return nil, err
		}
		if links++; links > maxLinks {
			return nil, &LinkError{Path: next.path, Target: target, Why: "following it never ends"}
		}
		if len(target) > maxTarget {
			return nil, &LinkError{Path: next.path, Target: target[:32] + "…", Why: fmt.Sprintf("its target is longer than the limit of %d bytes", maxTarget)}
		}
		if path.IsAbs(target) {
			return nil, &LinkError{Path: next.path, Target: target, Why: "it leads out of the repository"}
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at, nil
}

// text is the content of a file or the target of a link.
func (f found) text() (string, error) {
	kind, data, err := f.in.objects.read(f.id)
	if err == nil && kind != plumbing.BlobObject {
		err = &IntegrityError{Object: f.id.String(), Why: "it is a " + kind.String() + ", where a file or a link was expected"}
	}
	return string(data), err
}

func (f found) entry() (Entry, error) {
	e := Entry{Path: f.path, Kind: f.kind(), Mode: f.mode}
	if e.Kind == File || e.Kind == Symlink {
		size, err := f.in.objects.size(f.id)
		if err != nil {
			return Entry{}, err
		}
		e.Size = size
	}
	return e, nil
}

// Stat describes a path. Links are followed, and Path of the result is where they lead. A submodule
// itself is not looked into; NAME/. is the folder that its recorded commit holds. A missing path is a
// *UsageError that errors.Is finds fs.ErrNotExist in; a path inside a submodule that cannot be read is
// a *SubmoduleError, a link out of the tree a *LinkError.
func (t *Tree) Stat(name string) (Entry, error) {
	at, err := t.lookup(name, false)
	if err != nil {
		return Entry{}, err
	}
	return at[len(at)-1].entry()
}

// ReadFile returns the bytes of a file as they are in Git, following links. Errors are those of Stat;
// a submodule is a folder here.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	at, err := t.lookup(name, true)
	if err != nil {
		return nil, err
	}
	f := at[len(at)-1]
	if f.kind() == Dir {
		return nil, &UsageError{Asked: fmt.Sprintf("path %q", name), Problem: "it is a folder, not a file"}
	}
	kind, data, err := f.in.objects.read(f.id)
	if err == nil && kind != plumbing.BlobObject {
		err = &IntegrityError{Object: f.id.String(), Why: "it is a " + kind.String() + ", where a file was expected"}
	}
	if err == nil {
		err = t.attributes(at, data)
	}
	return data, err
}

// List returns the entries of a folder in the order of their names. Links are listed as links, and
// submodules as submodules, without a look into them.
func (t *Tree) List(dir string) ([]Entry, error) {
	at, err := t.lookup(dir, true)
	if err != nil {
		return nil, err
	}
	f := at[len(at)-1]
	if f.kind() == File {
		return nil, &UsageError{Asked: fmt.Sprintf("path %q", dir), Problem: "it is a file, not a folder"}
	}
	entries, err := t.folder(f.in, f.id)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, e := range entries.list {
		one, err := f.child(e).entry()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// Walk calls fn for everything below dir, folders before what they hold, in the order of names.
// Links are not followed and submodules not entered. fs.SkipDir from fn for a folder skips it; any
// other error ends the walk.
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
