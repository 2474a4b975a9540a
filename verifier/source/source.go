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
	objects *objects
	rev     evidence.Revision
	root    plumbing.Hash

	mu     sync.Mutex
	parsed map[plumbing.Hash][]treeEntry

	// dirty ends with the paths that git status lists; stop ends it early.
	dirty func() []string
	stop  context.CancelFunc
	temp  string
}

// Open resolves rev in a repository and returns the commit's tree. repo is a folder in or of a
// repository (also bare, a linked worktree, or any folder below one), or a URL (http, https, ssh,
// git, file, or user@host:path), which is cloned into a private temporary folder. rev is a commit id
// or at least four digits of one, a branch, a tag, HEAD, a remote branch or a full ref name, with any
// number of ~N and ^N behind it; empty means HEAD. Tags are peeled to the commit.
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
	t := &Tree{temp: temp, parsed: map[plumbing.Hash][]treeEntry{}, stop: func() {}, dirty: func() []string { return nil }}
	if err := t.open(ctx, repo, dir, rev); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Tree) open(ctx context.Context, repo, dir, rev string) error {
	place, err := discover(repo, dir)
	if err != nil {
		return err
	}
	if place.work != "" && t.temp == "" {
		t.dirty, t.stop = startStatus(ctx, place.work)
	}
	if t.objects, err = openObjects(place); err != nil {
		return err
	}
	r := resolver{objects: t.objects, place: place, asked: rev, cloned: t.temp != ""}
	commit, err := r.resolve(ctx)
	if err != nil {
		return err
	}
	t.root = commit.tree
	t.rev = evidence.Revision{Name: rev, Commit: commit.id.String(), Tree: commit.tree.String()}
	_, err = t.entries(t.root)
	return err
}

// Revision returns the full ids of the commit and its tree, and up to ten uncommitted paths of the
// work tree. It may wait for git status, at most until five seconds after Open.
func (t *Tree) Revision() evidence.Revision {
	rev := t.rev
	rev.Dirty = t.dirty()
	return rev
}

// Close releases the repository's files and removes a clone. The tree cannot be used afterwards.
func (t *Tree) Close() error {
	t.stop()
	t.dirty()
	var errs []error
	if t.objects != nil {
		errs = append(errs, t.objects.close())
	}
	if t.temp != "" {
		if err := os.RemoveAll(t.temp); err != nil {
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
