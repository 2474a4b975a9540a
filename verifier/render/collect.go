package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// collector reads the files that a render needs into memory.
type collector struct {
	ctx      context.Context
	tree     Tree
	scan     bool
	files    map[string][]byte
	bytes    int64
	listed   int
	links    map[string]string // folders by the name that a kustomization gave, to where the link leads
	seen     map[string]bool   // kustomization folders
	skipped  []evidence.Skipped
	findings []evidence.Finding
	leftOut  []evidence.Finding
	warnings []evidence.Finding // do not keep the render from being made
}

// treeFault turns an error that is the content's fault into a finding.
func treeFault(name string, err error) (evidence.Finding, bool) {
	if err == nil {
		return evidence.Finding{}, false
	}
	f := evidence.Finding{Code: "render-refused", Severity: evidence.Fail, Object: name, Origin: evidence.Origin{File: name}, Message: err.Error()}
	var submodule interface{ Submodule() (path, commit string) }
	switch {
	case errors.As(err, &submodule):
		f.Code = "missing-submodule"
		f.Object, f.Got = submodule.Submodule()
		f.Do = "fetch the submodule, or put its files into this repository"
	case errors.Is(err, fs.ErrInvalid):
		f.Do = "replace the link by the file itself"
	default:
		return f, false
	}
	return f, true
}

func (c *collector) refuse(code, file string, line int, message, do string) {
	c.findings = append(c.findings, evidence.Finding{Code: code, Severity: evidence.Fail, Object: file,
		Origin: evidence.Origin{File: file, Line: line}, Message: message, Do: do})
}

// add reads one file, under the name that the content gives it.
func (c *collector) add(name string, e Entry) error {
	if _, ok := c.files[name]; ok {
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	over := func(what string, limit int64) error {
		c.refuse("render-refused", name, 0, fmt.Sprintf("the content is over the limit of %d %s", limit, what), "render a smaller folder")
		return errLimit
	}
	switch {
	case len(c.files) >= MaxFiles:
		return over("files", MaxFiles)
	case e.Size > MaxFileBytes:
		return over("bytes in one file", MaxFileBytes)
	case c.bytes+e.Size > MaxBytes:
		return over("bytes in all files", MaxBytes)
	}
	data, err := c.tree.ReadFile(e.Path)
	if err != nil {
		return err
	}
	c.bytes += int64(len(data))
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		c.refuse("missing-lfs-object", name, 1, "the file is a Git LFS pointer; the object itself is not in this repository", "commit the file itself")
	}
	c.files[name] = data
	return nil
}

// errLimit ends the collection; its finding is already recorded.
var errLimit = errors.New("over a limit")

// plain collects every manifest below a folder, or one file.
func (c *collector) plain(top Entry, depth int) error {
	err := c.plainFolder(top, depth)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

func (c *collector) plainFolder(top Entry, depth int) error {
	if top.Kind == "file" {
		return c.add(top.Path, top)
	}
	if depth > MaxDepth {
		c.refuse("render-refused", top.Path, 0, fmt.Sprintf("folders lie deeper than the limit of %d", MaxDepth), "render a folder further down")
		return errLimit
	}
	entries, err := c.list(top.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, base := e.Path, path.Base(e.Path)
		skip := func(reason string) { c.skipped = append(c.skipped, evidence.Skipped{File: name, Reason: reason}) }
		manifest := false
		switch strings.ToLower(path.Ext(base)) {
		case ".yaml", ".yml", ".json":
			manifest = true
		}
		switch {
		case strings.HasPrefix(base, "."):
			skip("its name begins with a dot")
			continue
		case e.Kind == "submodule":
			inside, ok, err := c.inside(e)
			if ok {
				err = c.plainFolder(inside, depth+1)
			}
			if err != nil {
				return err
			}
			continue
		case e.Kind == "dir":
			if err := c.plainFolder(e, depth+1); err != nil {
				return err
			}
			continue
		case name == scenario.ConfigFile:
			skip("it tells rebuild-check what to render")
			continue
		case isKustomization(base):
			skip("it is a kustomization file; render its folder as the path to use it")
			continue
		case !manifest:
			skip("its name does not end in .yaml, .yml or .json")
			continue
		}
		if e.Kind == "symlink" {
			target, err := c.tree.Stat(name)
			if f, ok := treeFault(name, err); ok {
				c.findings = append(c.findings, f)
				continue
			} else if errors.Is(err, fs.ErrNotExist) {
				c.refuse("render-failed", name, 0, "it is a symbolic link to nothing", "remove the link, or add what it names")
				continue
			} else if err != nil {
				return err
			}
			if target.Kind != "file" {
				skip("it is a link to a folder")
				continue
			}
			e = target
		}
		if err := c.add(name, e); err != nil {
			return err
		}
	}
	return nil
}

// list lists a folder. One tree object of Git can stand in many places, so that a small repository has
// more paths than any disk.
func (c *collector) list(dir string) ([]Entry, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := c.tree.List(dir)
	if c.listed += 1 + len(entries); c.listed > MaxListed {
		c.refuse("render-refused", dir, 0, fmt.Sprintf("the folders hold more than the limit of %d entries", MaxListed), "render a smaller folder")
		return nil, errLimit
	}
	return entries, err
}

// inside is the folder that a submodule's recorded commit holds. If that cannot be read, ok is false
// and the finding is recorded.
func (c *collector) inside(e Entry) (folder Entry, ok bool, err error) {
	folder, err = c.tree.Stat(e.Path + "/.")
	if err == nil && folder.Kind != "dir" {
		err = submodule{e.Path}
	}
	if f, fault := treeFault(e.Path, err); fault {
		c.findings = append(c.findings, f)
		return folder, false, nil
	}
	return folder, err == nil, err
}

type submodule struct{ path string }

func (s submodule) Error() string {
	return s.path + " is a submodule; its files are not in this repository"
}
func (s submodule) Submodule() (string, string) { return s.path, "" }
