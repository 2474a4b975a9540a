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
	MaxListed        = 100000    // entries of all folders walked
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
	// Renderer is Plain, Kustomize or Helm; empty is detected: Helm where the folder holds a Chart.yaml,
	// Kustomize where it holds a kustomization file, else Plain. A folder that holds both needs it.
	Renderer string
	// ReleaseName, Namespace, ValuesFiles and Set are for Helm, as on its command line: the name of the
	// release (empty is the chart's), its namespace (empty is "default"), files of the tree, of which
	// the later ones win, and KEY=VALUE, which win over those.
	ReleaseName, Namespace string
	ValuesFiles, Set       []string
	// KubeVersion is the version of the cluster that a chart is told; empty is DefaultKubeVersion.
	// APIVersions (GROUP/VERSION or GROUP/VERSION/KIND) are served there beside Kubernetes' own.
	KubeVersion string
	APIVersions []string
	// MemoryLimit is the heap of one child in bytes; 0 is 512 MiB.
	MemoryLimit int64
	// Timeout bounds the time of the children; 0 is 25 seconds.
	Timeout time.Duration

	// noScan leaves out the scan that refuses remote bases and programs, so that a test can show that
	// the child alone is safe.
	noScan bool
	// Raw, where it is set, gets the renderer's own output.
	Raw *[]byte
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
		opts.Timeout = 25 * time.Second
	}
	top, err := tree.Stat(clean(opts.Path))
	if err == nil && top.Kind == "submodule" {
		top, err = tree.Stat(top.Path + "/.") // the folder in it
	}
	if err != nil {
		f, ok := treeFault(opts.Path, err)
		if f.Code == "missing-submodule" {
			return finish(&evidence.Set{Renderer: opts.Renderer, Path: clean(opts.Path), Objects: []evidence.Object{}}, []evidence.Finding{f})
		}
		if ok || errors.Is(err, fs.ErrNotExist) {
			err = &PathError{opts.Path, err}
		}
		return nil, nil, err
	}
	c := &collector{ctx: ctx, tree: tree, scan: !opts.noScan, files: map[string][]byte{}, links: map[string]string{}, seen: map[string]bool{}}
	renderer, err := detect(tree, top, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := helmMistake(renderer, opts); err != nil {
		return nil, nil, err
	}
	set := &evidence.Set{Renderer: renderer, Path: clean(opts.Path), Objects: []evidence.Object{}}
	var chart *release
	switch renderer {
	case Helm:
		set.Version = version(helmModule)
		chart, err = c.chart(top, opts)
	case Kustomize:
		set.Version = version("sigs.k8s.io/kustomize/api")
		err = c.kustomization(top.Path, 0)
	default:
		err = c.plain(top, 0)
	}
	var mistake *PathError
	if errors.As(err, &mistake) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collecting the files of %s: %w", set.Path, err)
	}
	set.Skipped = c.skipped
	if len(c.findings) > 0 {
		return finish(set, c.findings)
	}
	req := request{Renderer: renderer, Root: top.Path, Files: c.files, Links: c.links, Release: chart, Memory: opts.MemoryLimit,
		Seconds: int(opts.Timeout/time.Second) + 1, YAML: opts.Raw != nil}
	result, findings, err := renderTwice(ctx, req, opts.Timeout)
	if err != nil {
		return nil, nil, err
	}
	c.files, req.Files = nil, nil // the rest needs memory too
	if opts.Raw != nil {
		*opts.Raw = result.YAML
	}
	set.Skipped = append(set.Skipped, result.Skipped...)
	findings = append(append(findings, result.Findings...), c.warnings...)
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
	case opts.Renderer != "" && opts.Renderer != Plain && opts.Renderer != Kustomize && opts.Renderer != Helm:
		return "", &PathError{opts.Path, fmt.Errorf("there is no renderer %q; there are %s, %s and %s", opts.Renderer, Plain, Kustomize, Helm)}
	case top.Kind == "dir":
		names, err := kustomizationFiles(tree, top.Path)
		if err != nil {
			return "", err
		}
		chart, err := isChart(tree, top.Path)
		if err != nil {
			return "", err
		}
		switch {
		case chart && len(names) > 0 && opts.Renderer == "":
			return "", &PathError{opts.Path, fmt.Errorf("the folder holds %s and %s; say which by the renderer", chartFile, path.Base(names[0]))}
		case chart && opts.Renderer == "":
			return Helm, nil
		case !chart && opts.Renderer == Helm:
			return "", &PathError{opts.Path, errors.New("the folder holds no " + chartFile)}
		}
		if len(names) > 0 && opts.Renderer == "" {
			return Kustomize, nil
		}
		if len(names) == 0 && opts.Renderer == Kustomize {
			return "", &PathError{opts.Path, errors.New("the folder holds no kustomization file")}
		}
	case top.Kind != "file":
		return "", &PathError{opts.Path, fmt.Errorf("it is a %s", top.Kind)}
	case opts.Renderer == Kustomize || opts.Renderer == Helm:
		return "", &PathError{opts.Path, fmt.Errorf("it is a file; %s renders a folder", opts.Renderer)}
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

// version is that of a linked module, "unknown" where the build does not tell.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}
