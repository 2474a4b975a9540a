// Package render turns a folder of a revision into a set of objects, each with the file and line
// that it comes from. The files are collected here and rendered in two child processes that have no
// environment, no network and bounded memory and time; what they answer is compared. Nothing is read
// from the disk and nothing is fetched.
package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Renderers.
const (
	Plain     = "plain"
	Kustomize = "kustomize"
)

// Limits of what one render takes in and gives out. Content that exceeds one is refused with a
// finding that names it.
const (
	MaxFiles         = 10000
	MaxBytes         = 64 << 20  // of all files together
	MaxFileBytes     = 16 << 20  // of one file
	MaxKustomization = 512 << 10 // of one kustomization file
	MaxDepth         = 64        // of folders below the path, and of kustomizations that name others
	MaxAnswer        = 128 << 20 // bytes of rendered objects
)

// Entry is one path of the tree, as package source describes it.
type Entry = struct {
	Path string
	Kind string
	Mode uint32
	Size int64
}

// Tree is what render needs of a revision. A missing path is an error that errors.Is finds
// fs.ErrNotExist in, a link that leads out of the tree or never ends one with fs.ErrInvalid, and a
// path in a submodule one with a method Submodule.
type Tree interface {
	Stat(path string) (Entry, error)
	List(dir string) ([]Entry, error)
	ReadFile(path string) ([]byte, error)
}

// Options say what to render. The zero value renders the root of the tree by what it holds.
type Options struct {
	// Path is a folder, or one file, from the repository's root; empty is the root.
	Path string
	// Renderer is Plain or Kustomize; empty is detected: Kustomize where the folder holds a
	// kustomization file, else Plain.
	Renderer string
	// MemoryLimit is the heap of one child in bytes; 0 is 512 MiB.
	MemoryLimit int64
	// Timeout bounds the time of one child; 0 is 30 seconds.
	Timeout time.Duration

	// noScan leaves out the scan that refuses remote bases and programs, so that a test can show that
	// the child alone is safe.
	noScan bool
	// yaml gets the renderer's own output.
	yaml *[]byte
}

// PathError says that the path to render is not a folder or file of the revision.
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string { return fmt.Sprintf("rendering path %q: %v", e.Path, e.Err) }
func (e *PathError) Unwrap() error { return e.Err }

// Render returns the objects of a path, sorted, and what is wrong with them. Faults of the content
// are findings; the error is a *PathError, the end of ctx, or trouble that is not the content's, such
// as a child that cannot be started. The set is never nil without an error.
func Render(ctx context.Context, tree Tree, opts Options) (*evidence.Set, []evidence.Finding, error) {
	if opts.MemoryLimit <= 0 {
		opts.MemoryLimit = 512 << 20
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 30 * time.Second
	}
	top, err := tree.Stat(clean(opts.Path))
	if err != nil {
		if _, ok := treeFault(opts.Path, err); ok || errors.Is(err, fs.ErrNotExist) {
			err = &PathError{opts.Path, err}
		}
		return nil, nil, err
	}
	c := &collector{ctx: ctx, tree: tree, scan: !opts.noScan, files: map[string][]byte{}, links: map[string]string{}, seen: map[string]bool{}}
	renderer, err := detect(tree, top, opts)
	if err != nil {
		return nil, nil, err
	}
	set := &evidence.Set{Renderer: renderer, Path: clean(opts.Path), Objects: []evidence.Object{}}
	if renderer == Kustomize {
		set.Version = version()
		err = c.kustomization(top.Path, 0)
	} else {
		err = c.plain(top, 0)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collecting the files of %s: %w", set.Path, err)
	}
	set.Skipped = c.skipped
	if len(c.findings) > 0 {
		return finish(set, c.findings)
	}
	req := request{Renderer: renderer, Root: top.Path, Files: c.files, Links: c.links, Memory: opts.MemoryLimit,
		Seconds: int(opts.Timeout/time.Second) + 1, YAML: opts.yaml != nil}
	result, findings, err := renderTwice(ctx, req, opts.Timeout)
	if err != nil {
		return nil, nil, err
	}
	if opts.yaml != nil {
		*opts.yaml = result.YAML
	}
	set.Skipped = append(set.Skipped, result.Skipped...)
	findings = append(findings, result.Findings...)
	if len(result.Findings) > 0 {
		// A file that was left out may be why.
		findings = append(findings, c.leftOut...)
	}
	objects, wrong, err := build(result.Objects)
	if err != nil {
		return nil, nil, err
	}
	set.Objects = objects
	return finish(set, append(findings, wrong...))
}

// detect chooses the renderer by what the folder holds.
func detect(tree Tree, top Entry, opts Options) (string, error) {
	switch {
	case opts.Renderer != "" && opts.Renderer != Plain && opts.Renderer != Kustomize:
		return "", &PathError{opts.Path, fmt.Errorf("there is no renderer %q; there are %s and %s", opts.Renderer, Plain, Kustomize)}
	case top.Kind == "dir":
		names, err := kustomizationFiles(tree, top.Path)
		if err != nil {
			return "", err
		}
		if len(names) > 0 && opts.Renderer == "" {
			return Kustomize, nil
		}
		if len(names) == 0 && opts.Renderer == Kustomize {
			return "", &PathError{opts.Path, errors.New("the folder holds no kustomization file")}
		}
	case top.Kind != "file":
		return "", &PathError{opts.Path, fmt.Errorf("it is a %s", top.Kind)}
	case opts.Renderer == Kustomize:
		return "", &PathError{opts.Path, errors.New("it is a file; kustomize renders a folder")}
	}
	if opts.Renderer == "" {
		return Plain, nil
	}
	return opts.Renderer, nil
}

// finish sorts, says when there is nothing, and names the content.
func finish(set *evidence.Set, findings []evidence.Finding) (*evidence.Set, []evidence.Finding, error) {
	fails := false
	for _, f := range findings {
		fails = fails || f.Severity == evidence.Fail
	}
	if len(set.Objects) == 0 && !fails {
		findings = append(findings, evidence.Finding{Code: "render-empty", Severity: evidence.Fail, Object: set.Path,
			Origin: evidence.Origin{File: set.Path}, Message: "the path holds no objects", Do: "give the folder with the manifests by --path"})
	}
	evidence.SortObjects(set.Objects)
	evidence.SortFindings(findings)
	var err error
	set.Digest, err = digest(set.Objects)
	return set, findings, err
}

func clean(p string) string { return path.Clean(strings.TrimSuffix("./"+p, "/")) }

// version is that of the linked kustomize, "unknown" where the build does not tell.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/kustomize/api" {
				return m.Version
			}
		}
	}
	return "unknown"
}
