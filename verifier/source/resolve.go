package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// resolver turns the text of a revision into a commit, by the rules of gitrevisions(7).
type resolver struct {
	objects *objects
	place   place
	asked   string
	// cloned is true for a fresh clone, whose branches are remote branches of origin.
	cloned bool
}

var (
	steps     = regexp.MustCompile(`^(.*?)((?:[~^][0-9]*|\^\{(?:commit)?\})*)$`)
	step      = regexp.MustCompile(`[~^][0-9]*(?:\{(?:commit)?\})?`)
	hexPrefix = regexp.MustCompile(`^[0-9a-fA-F]{4,40}$`)
	// pseudoRef are the names that Git looks up beside refs/: HEAD, ORIG_HEAD, MERGE_HEAD.
	pseudoRef = regexp.MustCompile(`^[A-Z][A-Z_]*$`)
	badName   = regexp.MustCompile(`\.\.|@\{|//|^/|/$|\.lock$|^\.|/\.|[\x00-\x20\x7f~^:?*\[\\]`)
)

// maxSteps bounds ~N and the depth of tags of tags.
const maxSteps = 10000

func (r resolver) resolve(ctx context.Context) (commit, error) {
	parts := steps.FindStringSubmatch(r.asked)
	if parts == nil || parts[1] == "" {
		return commit{}, r.usage("it is not a revision", "give a commit id, a branch or a tag")
	}
	at, err := r.base(parts[1])
	if err != nil {
		return commit{}, err
	}
	for _, s := range step.FindAllString(parts[2], -1) {
		if at, err = r.walk(ctx, at, s); err != nil {
			return commit{}, err
		}
	}
	return at, nil
}

func (r resolver) usage(problem, do string) error {
	return &UsageError{Asked: fmt.Sprintf("revision %q", r.asked), Problem: problem, Do: do}
}

// base resolves the name before any ~N: a full id, then a ref, then a short id, as Git does.
func (r resolver) base(name string) (commit, error) {
	if name == "@" {
		name = "HEAD"
	}
	if len(name) == 40 && hexPrefix.MatchString(name) {
		return r.peel(plumbing.NewHash(name))
	}
	if id, ok, err := r.ref(name); err != nil {
		return commit{}, err
	} else if ok {
		return r.peel(id)
	}
	if hexPrefix.MatchString(name) {
		if c, ok, err := r.short(strings.ToLower(name)); err != nil || ok {
			return c, err
		}
	}
	return commit{}, r.usage("no branch, tag or commit has that name", r.near(name))
}

// ref looks a name up in the order of gitrevisions(7). HEAD itself comes before a branch called HEAD.
func (r resolver) ref(name string) (plumbing.Hash, bool, error) {
	if badName.MatchString(name) {
		return plumbing.ZeroHash, false, nil
	}
	var names []string
	if pseudoRef.MatchString(name) || strings.HasPrefix(name, "refs/") {
		names = append(names, name)
	}
	names = append(names, "refs/"+name, "refs/tags/"+name, "refs/heads/"+name, "refs/remotes/"+name, "refs/remotes/"+name+"/HEAD")
	if r.cloned {
		names = append(names, "refs/remotes/origin/"+name, "refs/remotes/"+strings.TrimPrefix(name, "refs/heads/"))
	}
	refs := r.objects.layers[0]
	for _, full := range names {
		ref, err := storer.ResolveReference(refs, plumbing.ReferenceName(full))
		switch {
		case err == nil && !ref.Hash().IsZero():
			return ref.Hash(), true, nil
		case err == nil && name == "HEAD", full == "HEAD" && errors.Is(err, plumbing.ErrReferenceNotFound):
			return plumbing.ZeroHash, false, r.usage("the repository has no commit on its current branch yet", r.near(name))
		case errors.Is(err, storer.ErrMaxResolveRecursion):
			return plumbing.ZeroHash, false, r.usage("its reference "+full+" leads to itself", "")
		}
	}
	return plumbing.ZeroHash, false, nil
}

// short finds the commit that a prefix of an id means. Trees and blobs do not count, and a tag
// counts as its commit.
func (r resolver) short(prefix string) (commit, bool, error) {
	ids, err := r.objects.withPrefix(prefix)
	if err != nil {
		return commit{}, false, err
	}
	var found []commit
	for _, id := range ids {
		kind, _, err := r.objects.read(id)
		if err != nil {
			return commit{}, false, err
		}
		if kind != plumbing.CommitObject && kind != plumbing.TagObject {
			continue
		}
		c, err := r.peel(id)
		var other *UsageError
		if errors.As(err, &other) {
			continue // a tag of something else
		} else if err != nil {
			return commit{}, false, err
		}
		if !slices.ContainsFunc(found, func(o commit) bool { return o.id == c.id }) {
			found = append(found, c)
		}
	}
	if len(found) < 2 {
		return append(found, commit{})[0], len(found) == 1, nil
	}
	var list []string
	for _, c := range found {
		list = append(list, c.id.String())
	}
	slices.Sort(list)
	return commit{}, false, r.usage("it is ambiguous: the commits "+strings.Join(list, ", ")+" begin so", "give more digits")
}

// peel follows tags to the commit behind them.
func (r resolver) peel(id plumbing.Hash) (commit, error) {
	for range maxSteps {
		kind, data, err := r.objects.read(id)
		switch {
		case errors.Is(err, errNoObject):
			if shallow := r.shallow(); len(shallow) > 0 {
				return commit{}, r.usage("this shallow clone lacks the commit "+id.String(), "fetch the rest with: git fetch --unshallow")
			}
			return commit{}, r.usage("the repository has no object "+id.String(), "fetch it first, or give a branch or tag")
		case err != nil:
			return commit{}, err
		case kind == plumbing.CommitObject:
			return parseCommit(id, data)
		case kind != plumbing.TagObject:
			return commit{}, r.usage("it names a "+kind.String()+", not a commit", "")
		}
		line, _, _ := strings.Cut(string(data), "\n")
		target, ok := strings.CutPrefix(line, "object ")
		if !ok || !plumbing.IsHash(target) {
			return commit{}, &IntegrityError{Object: id.String(), Why: "the tag names no object"}
		}
		id = plumbing.NewHash(target)
	}
	return commit{}, r.usage("its tags of tags do not end", "")
}

// walk takes one step: ~N is N first parents, ^N is the Nth parent, ^0 and ^{} stay.
func (r resolver) walk(ctx context.Context, at commit, s string) (commit, error) {
	count, parent := 1, 1
	if strings.Contains(s, "{") {
		return at, nil
	}
	if digits := s[1:]; digits != "" {
		n, err := strconv.Atoi(digits)
		if err != nil || n > maxSteps {
			return commit{}, r.usage("it goes back too far", "")
		}
		if s[0] == '~' {
			count = n
		} else if parent = n; n == 0 {
			return at, nil
		}
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return commit{}, err
		}
		if slices.Contains(r.shallow(), at.id.String()) {
			return commit{}, r.usage("this shallow clone lacks the commit: its history ends at "+at.id.String(), "fetch the rest with: git fetch --unshallow")
		}
		if len(at.parents) < parent {
			return commit{}, r.usage(fmt.Sprintf("commit %s has %d parents", at.id, len(at.parents)), "")
		}
		next, err := r.peel(at.parents[parent-1])
		if err != nil {
			return commit{}, err
		}
		at = next
	}
	return at, nil
}

// shallow lists the commits at which a shallow clone's history ends.
func (r resolver) shallow() []string {
	text, err := os.ReadFile(filepath.Join(r.place.common, "shallow"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// near names up to five branches and tags that look like name, or the first five if none does.
func (r resolver) near(name string) string {
	iter, err := r.objects.layers[0].IterReferences()
	if err != nil {
		return ""
	}
	defer iter.Close()
	var all, close []string
	_ = iter.ForEach(func(ref *plumbing.Reference) error {
		if !ref.Name().IsBranch() && !ref.Name().IsTag() && !ref.Name().IsRemote() {
			return nil
		}
		short := ref.Name().Short()
		if r.cloned {
			short = strings.TrimPrefix(short, "origin/")
		}
		all = append(all, short)
		if strings.Contains(short, name) || strings.Contains(name, short) || distance(short, name) <= 2 {
			close = append(close, short)
		}
		return nil
	})
	label := "near names: "
	if len(close) == 0 {
		close, label = all, "names that exist: "
	}
	slices.Sort(close)
	close = slices.Compact(close)
	if len(close) == 0 {
		return "the repository has no branch and no tag"
	}
	return label + strings.Join(close[:min(5, len(close))], ", ")
}

// distance is the Levenshtein distance of two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
