package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"
	"helm.sh/helm/v4/pkg/strvals"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Helm is the renderer of charts.
const Helm = "helm"

const (
	chartFile  = "Chart.yaml"
	helmModule = "helm.sh/helm/v4"
)

// DefaultKubeVersion is what a chart is told of the cluster: the version of the node image of kind's
// release that this module is built with.
const DefaultKubeVersion = "v1.37.0"

// release is how a chart is installed; the child gets it beside the chart's files.
type release struct {
	Name, Namespace string
	Values          []valuesFile
	Set             []string
	KubeVersion     string
	APIVersions     []string
}

type valuesFile struct {
	Name string
	Data []byte
}

// isChart tells whether a folder holds a chart.
func isChart(tree Tree, dir string) (bool, error) {
	e, err := tree.Stat(path.Join(dir, chartFile))
	if _, ok := treeFault(dir, err); ok || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return e.Kind == "file", err
}

// helmMistake finds what is wrong in the options themselves.
func helmMistake(renderer string, opts Options) error {
	wrong := func(format string, args ...any) error {
		return &PathError{opts.Path, fmt.Errorf(format, args...)}
	}
	if renderer != Helm {
		if len(opts.ValuesFiles) > 0 || len(opts.Set) > 0 || opts.ReleaseName != "" {
			return wrong("values and a release name are for Helm charts, and it is rendered by %s", renderer)
		}
		return nil
	}
	if err := chartutil.ValidateReleaseName(opts.ReleaseName); opts.ReleaseName != "" && err != nil {
		return wrong("the release name %q: %w", opts.ReleaseName, err)
	}
	for _, text := range opts.Set {
		if _, err := strvals.Parse(text); err != nil {
			return wrong("setting %q: %w", text, err)
		}
	}
	if _, err := common.ParseKubeVersion(opts.KubeVersion); opts.KubeVersion != "" && err != nil {
		return wrong("the Kubernetes version %q: %w", opts.KubeVersion, err)
	}
	return nil
}

// chartCollector reads the files of a chart as Helm's loader of folders does: links are followed,
// what .helmignore excludes is left out.
type chartCollector struct {
	*collector
	root     string
	rules    *ignore.Rules
	pointers []evidence.Finding // Git LFS pointers in files that only .Files can read
}

// chart collects a chart and the values files that are given with it.
func (c *collector) chart(top Entry, opts Options) (*release, error) {
	r := &release{Name: opts.ReleaseName, Namespace: opts.Namespace, Set: opts.Set, KubeVersion: opts.KubeVersion, APIVersions: opts.APIVersions}
	if r.KubeVersion == "" {
		r.KubeVersion = DefaultKubeVersion
	}
	if r.Namespace == "" {
		r.Namespace = "default"
	}
	cc := &chartCollector{collector: c, root: top.Path}
	if err := cc.readRules(); err != nil {
		return nil, err
	}
	if len(c.findings) > 0 {
		return r, nil
	}
	if err := cc.folder(top.Path, top.Path, 0); err != nil && !errors.Is(err, errLimit) {
		return nil, err
	}
	if slices.ContainsFunc(cc.templates(), func(text []byte) bool { return bytes.Contains(text, []byte(".Files")) }) {
		c.findings = append(c.findings, cc.pointers...)
	}
	values := &collector{ctx: c.ctx, tree: c.tree, files: map[string][]byte{}, bytes: c.bytes}
	for _, name := range opts.ValuesFiles {
		e, err := c.tree.Stat(clean(name))
		if _, ok := treeFault(name, err); ok || errors.Is(err, fs.ErrNotExist) {
			return nil, &PathError{name, err}
		} else if err != nil {
			return nil, err
		}
		if e.Kind != "file" {
			return nil, &PathError{name, fmt.Errorf("it is a %s, and values stand in a file", e.Kind)}
		}
		if err := values.add(clean(name), e); err != nil && !errors.Is(err, errLimit) {
			return nil, err
		}
		r.Values = append(r.Values, valuesFile{clean(name), values.files[clean(name)]})
	}
	c.findings = append(c.findings, values.findings...)
	return r, nil
}

func (c *chartCollector) readRules() error {
	c.rules = ignore.Empty()
	name := path.Join(c.root, ignore.HelmIgnore)
	e, err := c.tree.Stat(name)
	f, faulty := treeFault(name, err)
	switch {
	case faulty:
		c.findings = append(c.findings, f)
		return nil
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case e.Kind != "file" || e.Size > MaxKustomization:
		c.refuse("render-failed", name, 0, "the file is a folder, or too long to be read", "")
		return nil
	default:
		data, err := c.tree.ReadFile(e.Path)
		if err != nil {
			return err
		}
		if c.rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			c.refuse("render-failed", name, 0, "the file cannot be read: "+err.Error(), "")
			return nil
		}
	}
	c.rules.AddDefaults()
	return nil
}

// folder walks a folder; name is what the chart calls it, real where it lies in the tree.
func (c *chartCollector) folder(name, real string, depth int) error {
	if depth > MaxDepth {
		c.refuse("render-refused", name, 0, fmt.Sprintf("folders lie deeper than the limit of %d", MaxDepth), "remove links that lead back")
		return errLimit
	}
	entries, err := c.list(real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := path.Join(name, path.Base(e.Path))
		if c.ignored(full, e) {
			continue
		}
		if e.Kind == "symlink" {
			target, err := c.tree.Stat(e.Path)
			if f, ok := treeFault(full, err); ok {
				c.findings = append(c.findings, f)
				continue
			} else if errors.Is(err, fs.ErrNotExist) {
				c.refuse("render-failed", full, 0, "it is a symbolic link to nothing", "remove the link, or name it in .helmignore")
				continue
			} else if err != nil {
				return err
			}
			if e = target; c.ignored(full, e) {
				continue
			}
		}
		switch e.Kind {
		case "submodule":
			inside, ok, err := c.inside(e)
			if ok {
				err = c.folder(full, inside.Path, depth+1)
			}
			if err != nil {
				return err
			}
		case "dir":
			if err := c.folder(full, e.Path, depth+1); err != nil {
				return err
			}
		default:
			if err := c.file(full, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *chartCollector) ignored(full string, e Entry) bool {
	if !c.rules.Ignore(within(c.root, full), fileInfo{dir: e.Kind == "dir"}) {
		return false
	}
	c.skipped = append(c.skipped, evidence.Skipped{File: full, Reason: "Helm ignores it, by .helmignore or because it is a dot file among the templates"})
	return true
}

// read matches the files that Helm itself reads.
var read = []string{"templates/", "crds/", "charts/", "values.yaml", "values.schema.json", "Chart.", "requirements."}

func (c *chartCollector) file(full string, e Entry) error {
	before := len(c.findings)
	err := c.add(full, e)
	name := within(c.root, full)
	if err == nil && len(c.findings) > before && !slices.ContainsFunc(read, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		c.pointers = append(c.pointers, c.findings[before:]...)
		c.findings = c.findings[:before]
	}
	return err
}

func (c *chartCollector) templates() [][]byte {
	var all [][]byte
	for name, data := range c.files {
		if strings.Contains("/"+name, "/templates/") {
			all = append(all, data)
		}
	}
	return all
}

// within is the path of a file from the chart's folder.
func within(root, name string) string {
	return strings.TrimPrefix(name, strings.TrimPrefix(root+"/", "./"))
}

// fileInfo is all that a rule of .helmignore asks of a file.
type fileInfo struct {
	fs.FileInfo
	dir bool
}

func (f fileInfo) IsDir() bool { return f.dir }
