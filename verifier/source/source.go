// Package source turns a revision of a Git repository into its tree of files, read from Git's
// objects. It never checks anything out, runs no filter and no hook, and reads no file of the work
// tree; every object that it reads is hashed again.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Tree is the files of one commit. Its methods may be called from several goroutines.
type Tree struct {
	top *module
	rev evidence.Revision

	mu      sync.Mutex
	parsed  map[plumbing.Hash]*folder
	rules   map[string][]rule          // of a folder's own .gitattributes
	changed map[change]map[string]bool // the files that an attribute would change

	// opening guards what follows: submodules by path, and the folders of clones.
	opening sync.Mutex
	modules map[string]opened
	temps   []string
	// fetch gets a repository as the function of that name does, under the context of Open.
	fetch func(repo string) (dir, temp string, err error)

	// dirty asks git status, once.
	dirty func() []string
}

// Open resolves rev in a repository and returns the commit's tree. repo is a folder in or of a
// repository (also bare, a linked worktree, or any folder below one), or a URL (http, https, ssh,
// git, file, or user@host:path), which is cloned into a private temporary folder. rev is a commit id
// or at least four digits of one, a branch, a tag, HEAD, a remote branch or a full ref name, with any
// number of ~N and ^N behind it; empty means HEAD. Tags are peeled to the commit.
//
// A submodule is read when a path leads into it, at the commit that the revision records, from the
// objects on this disk. Of a repository that was given by URL, submodules are fetched too, from the
// same scheme and host only; ctx bounds that as well.
//
// Errors are *UsageError for what the caller got wrong, *IntegrityError for damaged objects, and
// others for trouble such as the network. The caller must Close the tree.
func Open(ctx context.Context, repo, rev string) (*Tree, error) {
	if rev == "" {
		rev = "HEAD"
	}
	dir, temp, err := fetch(ctx, repo)
	if err != nil {
		return nil, err
	}
	t := &Tree{
		parsed: map[plumbing.Hash]*folder{}, rules: map[string][]rule{}, changed: map[change]map[string]bool{},
		modules: map[string]opened{}, dirty: func() []string { return nil },
		fetch: func(repo string) (string, string, error) { return fetch(ctx, repo) },
	}
	if temp != "" {
		t.temps = []string{temp}
	}
	if err := t.open(ctx, repo, dir, rev); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Tree) open(ctx context.Context, repo, dir, rev string) error {
	place, err := discover(redact(repo), dir)
	if err != nil {
		return err
	}
	cloned := len(t.temps) > 0
	if place.work != "" && !cloned {
		t.dirty = sync.OnceValue(func() []string { return status(ctx, place.work) })
	}
	o, err := openObjects(place)
	if err != nil {
		return err
	}
	t.top = &module{objects: o, place: place, path: "."}
	if isURL(repo) {
		t.top.remote = repo
	}
	commit, err := resolver{objects: o, place: place, asked: rev, cloned: cloned}.resolve(ctx)
	if err != nil {
		return err
	}
	t.top.root = commit.tree
	t.rev = evidence.Revision{Name: rev, Commit: commit.id.String(), Tree: commit.tree.String()}
	_, err = t.folder(t.top, t.top.root)
	return err
}

// Revision returns the full ids of the commit and its tree, and up to ten uncommitted paths of the
// work tree. The first call waits for git status, five seconds at most.
func (t *Tree) Revision() evidence.Revision {
	rev := t.rev
	rev.Dirty = t.dirty()
	return rev
}

// Close releases the repositories' files and removes clones. The tree cannot be used afterwards.
func (t *Tree) Close() error {
	t.opening.Lock()
	defer t.opening.Unlock()
	var errs []error
	if t.top != nil {
		errs = append(errs, t.top.objects.close())
	}
	for _, o := range t.modules {
		if o.module != nil {
			errs = append(errs, o.module.objects.close())
		}
	}
	for _, temp := range t.temps {
		if err := os.RemoveAll(temp); err != nil {
			errs = append(errs, fmt.Errorf("removing the clone: %w", err))
		}
	}
	return errors.Join(errs...)
}

// commit is the part of a commit object that counts here.
type commit struct {
	id      plumbing.Hash
	tree    plumbing.Hash
	parents []plumbing.Hash
}

func parseCommit(id plumbing.Hash, data []byte) (commit, error) {
	c := commit{id: id}
	header, _, _ := strings.Cut(string(data), "\n\n")
	for line := range strings.SplitSeq(header, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case key == "tree" && c.tree.IsZero() && plumbing.IsHash(value):
			c.tree = plumbing.NewHash(value)
		case key == "parent" && plumbing.IsHash(value):
			c.parents = append(c.parents, plumbing.NewHash(value))
		}
	}
	if c.tree.IsZero() {
		return c, &IntegrityError{Object: id.String(), Why: "the commit names no tree"}
	}
	return c, nil
}
