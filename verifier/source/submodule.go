package source

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
)

// module is a repository that files are read from: the one that was asked for, or a submodule.
type module struct {
	objects *objects
	place   place
	// path is where its root lies in the tree, root the tree object there.
	path string
	root plumbing.Hash
	// remote is the URL that it came from, empty for a folder: then nothing is ever fetched.
	remote string
}

// opened is what became of opening a submodule; it is tried once.
type opened struct {
	module *module
	err    error
}

const (
	// maxModules bounds the submodules of one tree: those of submodules count, and a repository may
	// have its own older commits as submodules.
	maxModules = 64
	maxOwn     = 1 << 20
)

// enter is the root folder of a submodule, at exactly the commit that its entry records.
func (t *Tree) enter(at found) (found, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	got, ok := t.modules[at.path]
	if !ok {
		got.module, got.err = t.openSubmodule(at)
		t.modules[at.path] = got
	}
	if got.err != nil {
		return found{}, got.err
	}
	return found{treeEntry{name: at.name, mode: 0o40000, id: got.module.root}, at.path, got.module}, nil
}

func (t *Tree) openSubmodule(at found) (*module, error) {
	fault := &SubmoduleError{Path: at.path, Commit: at.id.String()}
	if len(t.modules) >= maxModules {
		fault.Why = fmt.Sprintf("more than %d submodules are not read", maxModules)
		return nil, fault
	}
	declared, err := t.declaration(at, fault)
	if err != nil {
		return nil, err
	}
	fault.Why = "this repository does not hold it; git submodule update --init --recursive fetches it"
	for _, p := range local(at, declared.Name) {
		m, err := t.attach(at, p, "", fault)
		if m != nil || err != nil {
			return m, err
		}
	}
	if at.in.remote == "" {
		return nil, fault
	}
	return t.fetchSubmodule(at, declared.URL, fault)
}

// attach opens a repository for a submodule. It gives neither module nor error if the repository does
// not have the commit, or cannot be read; fault then says so.
func (t *Tree) attach(at found, p place, remote string, fault *SubmoduleError) (*module, error) {
	if err := checkFormat("submodule "+at.path, p); err != nil {
		fault.Why = err.Error()
		return nil, nil
	}
	o, err := openObjects(p)
	if err != nil {
		return nil, fmt.Errorf("opening submodule %s: %w", at.path, err)
	}
	m := &module{objects: o, place: p, path: at.path, remote: remote}
	kind, data, err := o.read(at.id)
	if err == nil && kind != plumbing.CommitObject {
		err = &IntegrityError{Object: at.id.String(), Why: "it is a " + kind.String() + ", where a submodule's commit was expected"}
	}
	var c commit
	if err == nil {
		c, err = parseCommit(at.id, data)
	}
	if err == nil {
		m.root = c.tree
		return m, nil
	}
	if errors.Is(err, errNoObject) {
		fault.Why, err = "its repository does not have that commit; git submodule update --recursive fetches it", nil
		if remote != "" {
			fault.Why = "no branch or tag of " + redact(remote) + " leads to that commit"
		}
	}
	return nil, errors.Join(err, o.close())
}

// declaration is what .gitmodules of the same commit says of a submodule; it is empty if it says
// nothing.
func (t *Tree) declaration(at found, fault *SubmoduleError) (config.Submodule, error) {
	data, err := t.own(at.in, at.in.root, ".gitmodules")
	if err != nil || data == nil {
		return config.Submodule{}, err
	}
	inside := strings.TrimPrefix(strings.TrimPrefix(at.path, at.in.path), "/")
	modules := config.NewModules()
	if err := modules.Unmarshal(data); err != nil {
		return config.Submodule{}, nil
	}
	for _, m := range modules.Submodules {
		if strings.TrimSuffix(m.Path, "/") != inside {
			continue
		}
		fault.Declared = path.Join(at.in.path, ".gitmodules")
		for n, line := range bytes.Split(data, []byte("\n")) {
			if key, value, ok := strings.Cut(string(line), "="); ok && strings.TrimSpace(key) == "path" && strings.TrimSpace(value) == m.Path {
				fault.Declared = fmt.Sprintf("%s:%d", fault.Declared, n+1)
			}
		}
		return *m, nil
	}
	return config.Submodule{}, nil
}

// own is the text of one of Git's own files in a folder: .gitmodules or .gitattributes. Like Git it
// follows no link there. It is nil if there is none, or if it is over the limit.
func (t *Tree) own(in *module, dir plumbing.Hash, name string) ([]byte, error) {
	f, err := t.folder(in, dir)
	if err != nil {
		return nil, err
	}
	i, ok := f.byName[name]
	if !ok || f.list[i].kind() != File {
		return nil, nil
	}
	if size, err := in.objects.size(f.list[i].id); err != nil || size > maxOwn {
		return nil, err
	}
	_, data, err := in.objects.read(f.list[i].id)
	return data, err
}

// local are the places on this disk that git itself would keep a submodule's objects in: modules/NAME
// of the repository, also of a linked worktree, and a Git folder of its own in the work tree.
func local(at found, name string) []place {
	var places []place
	work := ""
	if at.in.place.work != "" {
		inside := strings.TrimPrefix(strings.TrimPrefix(at.path, at.in.path), "/")
		if dir := filepath.Join(at.in.place.work, filepath.FromSlash(inside)); !throughLink(at.in.place.work, inside) {
			work = dir
		}
	}
	add := func(dir string) {
		if p, err := placeAt(dir); err == nil {
			p.work = work
			places = append(places, p)
		}
	}
	if filepath.IsLocal(name) {
		add(filepath.Join(at.in.place.common, "modules", filepath.FromSlash(name)))
		if at.in.place.git != at.in.place.common {
			add(filepath.Join(at.in.place.git, "modules", filepath.FromSlash(name)))
		}
	}
	if work != "" {
		if _, err := os.Lstat(filepath.Join(work, ".git")); err == nil {
			add(work)
		}
	}
	return places
}

// throughLink tells whether a path below dir passes a symbolic link. The work tree may hold links of
// another revision, and those could lead to any repository of this disk.
func throughLink(dir, name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		dir = filepath.Join(dir, part)
		if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// fetchSubmodule clones a submodule of a repository that was itself given by URL.
func (t *Tree) fetchSubmodule(at found, address string, fault *SubmoduleError) (*module, error) {
	full, why := resolveURL(at.in.remote, address)
	if why != "" {
		fault.Why = why
		return nil, fault
	}
	dir, temp, err := t.fetch(full)
	if temp != "" {
		t.temps = append(t.temps, temp)
	}
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		fault.Why = usage.Error()
		return nil, fault
	case err != nil:
		return nil, fmt.Errorf("fetching submodule %s: %w", at.path, err)
	}
	p, err := placeAt(dir)
	if err != nil {
		fault.Why = redact(full) + " is no repository"
		return nil, fault
	}
	m, err := t.attach(at, p, full, fault)
	if m == nil && err == nil {
		err = fault
	}
	return m, err
}

var (
	schemed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	unclean = regexp.MustCompile(`[\x00-\x20\x7f]`)
)

// resolveURL is the URL of a submodule whose .gitmodules says address, in a repository that came from
// base; why tells what forbids it. A revision must not send the caller elsewhere, so scheme and host
// have to be those of base. A relative address begins with ./ or ../, as in git-submodule(1).
func resolveURL(base, address string) (full, why string) {
	scheme, host, root, dir := splitURL(base)
	switch {
	case address == "":
		return "", ".gitmodules gives no URL for it"
	case strings.HasPrefix(address, "-") || unclean.MatchString(address):
		return "", fmt.Sprintf("its URL %q in .gitmodules is not a URL", redact(address))
	case strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../"):
		joined := path.Join(dir, address)
		if joined == ".." || strings.HasPrefix(joined, "../") || strings.HasPrefix(joined, "-") {
			return "", fmt.Sprintf("its URL %q in .gitmodules leads nowhere from %s", address, redact(base))
		}
		return root + joined, ""
	case !schemed.MatchString(address) && !scp.MatchString(address):
		return "", fmt.Sprintf("its URL %q in .gitmodules is a path of one machine", address)
	}
	otherScheme, otherHost, _, otherDir := splitURL(address)
	if host != otherHost || scheme != otherScheme || strings.HasPrefix(otherHost, "-") || strings.HasPrefix(otherDir, "-") {
		return "", fmt.Sprintf("its URL %q in .gitmodules is not at the scheme and host of %s, and no other is asked", redact(address), redact(base))
	}
	return address, ""
}

// splitURL cuts a URL, or Git's short form user@host:path, into scheme, host with port, all that
// stands before the path, and the path.
func splitURL(text string) (scheme, host, root, dir string) {
	if scp.MatchString(text) {
		root, dir, _ = strings.Cut(text, ":")
		_, host, _ = strings.Cut(root, "@")
		return "ssh", strings.ToLower(host), root + ":", dir
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", "", "", ""
	}
	shown := url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}
	root = shown.String()
	if u.Host == "" {
		root = u.Scheme + "://"
	}
	return strings.ToLower(u.Scheme), strings.ToLower(u.Host), root, u.EscapedPath()
}
