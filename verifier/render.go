package verifier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/render"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
	"rebuild-check.dev/rebuild-check/verifier/source"
)

// Render checks out and renders the revision as Verify does, and stops there: the set as Git has it,
// values of Secrets included, and what is wrong with it. The set is nil where there is none; trouble
// of the surroundings is a finding. The error is a *UsageError.
func Render(ctx context.Context, opts Options) (*evidence.Set, []evidence.Finding, error) {
	r := newRun(opts)
	set, err := r.render(ctx)
	if set != nil && r.opts.Namespace != "" {
		writeNamespace(set, r.opts.Namespace)
	}
	return set, r.alone(ctx), err
}

// writeNamespace writes the namespace into the objects that it belongs to.
func writeNamespace(set *evidence.Set, namespace string) {
	set.Place(namespace)
	for _, o := range set.Objects {
		if metadata, ok := o.Content["metadata"].(map[string]any); ok && metadata["namespace"] == nil && o.Namespace != "" {
			metadata["namespace"] = o.Namespace
		}
	}
}

// render resolves the revision and renders it. A nil set without an error is told in the findings.
func (r *run) render(ctx context.Context) (*evidence.Set, error) {
	done := r.stage("revision")
	tree, err := source.Open(ctx, r.opts.Repo, r.opts.Rev)
	if err != nil {
		if isUsage(err) {
			done("not found")
			return nil, &UsageError{err}
		}
		done("%v", err)
		r.trouble(ctx, "revision", err)
		return nil, nil
	}
	defer tree.Close()
	revision := tree.Revision()
	r.facts.Revision = &revision
	note := revision.Commit
	if n := len(revision.Dirty); n > 0 {
		note += fmt.Sprintf("; the work tree has uncommitted changes (%s …), which play no part", revision.Dirty[0])
	}
	done("%s", note)

	done = r.stage("render")
	paths, note, err := r.declared(tree)
	var set *evidence.Set
	var findings []evidence.Finding
	if err == nil {
		set, findings, err = render.All(ctx, tree, paths)
	}
	if err != nil {
		if isUsage(err) {
			done("not found")
			return nil, &UsageError{err}
		}
		done("%v", err)
		r.trouble(ctx, "render", err)
		return nil, nil
	}
	r.found(append(findings, tree.Findings()...)...)
	done("%d objects from %s by %s%s", len(set.Objects), set.Path, set.Renderer, note)
	return set, nil
}

// chart records what a chart is given.
func (r *run) chart(opts render.Options) {
	given := evidence.Chart{Path: opts.Path, Release: opts.ReleaseName, Values: opts.ValuesFiles}
	for _, text := range opts.Set {
		key, value, _ := strings.Cut(text, "=")
		given.Set = append(given.Set, key+"="+r.mask(value))
	}
	if given.Release != "" || len(given.Values)+len(given.Set) > 0 {
		r.facts.Request.Charts = append(r.facts.Request.Charts, given)
	}
}

// nodeVersion matches the Kubernetes version in the tag of a node image.
var nodeVersion = regexp.MustCompile(`:(v\d+\.\d+\.\d+)(?:@|$)`)

// configError is a mistake in the revision's own rebuild-check.yaml.
type configError struct{ error }

// declared is what to render by the command line and, where that does not say, by the revision's own
// file. The note tells when the one wins over the other.
func (r *run) declared(tree *source.Tree) (paths []render.Options, note string, err error) {
	config, there, err := readConfig(tree)
	if err != nil {
		return nil, "", err
	}
	r.inputs = config.Inputs
	var won []string
	if r.opts.Path == "" {
		for _, p := range config.Paths {
			paths = append(paths, render.Options{Path: p.Path, Renderer: p.Renderer, ValuesFiles: p.Values, Set: p.Set, ReleaseName: p.Release})
		}
	} else if len(config.Paths) > 0 {
		won = append(won, "--path")
	}
	if r.opts.Namespace == "" {
		r.opts.Namespace = config.Namespace
	} else if config.Namespace != "" {
		won = append(won, "--namespace")
	}
	if r.opts.Nodes == 0 {
		r.opts.Nodes = max(config.Nodes, 1)
	} else if config.Nodes > 0 {
		won = append(won, "--nodes")
	}
	if paths == nil {
		paths = []render.Options{{Path: r.opts.Path}}
	}
	if there {
		note = ", as " + scenario.ConfigFile + " says"
	}
	if len(won) > 0 {
		note += "; " + strings.Join(won, ", ") + " won over it"
	}
	var names []string
	for i := range paths {
		paths[i].Namespace = cmp.Or(r.opts.Namespace, DefaultNamespace)
		if m := nodeVersion.FindStringSubmatch(r.opts.NodeImage); m != nil {
			paths[i].KubeVersion = m[1]
		}
		paths[i].ReleaseName = cmp.Or(r.opts.Release, paths[i].ReleaseName)
		if len(r.opts.Values) > 0 {
			paths[i].ValuesFiles = r.opts.Values
		}
		paths[i].Set = append(paths[i].Set, r.opts.Set...)
		names = append(names, paths[i].Path)
		r.chart(paths[i])
	}
	r.facts.Request.Path, r.facts.Request.Nodes = strings.Join(names, ", "), r.opts.Nodes
	if r.facts.Request.Path == "" {
		r.facts.Request.Path = "."
	}
	return paths, note, nil
}

// readConfig reads rebuild-check.yaml at the root of the revision, if there is one.
func readConfig(tree *source.Tree) (config scenario.Config, there bool, err error) {
	e, err := tree.Stat(scenario.ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return config, false, nil
	case errors.Is(err, fs.ErrInvalid):
		return config, false, configError{err}
	case err != nil:
		return config, false, err
	case e.Kind != "file":
		return config, false, configError{fmt.Errorf("%s is a %s; want a file", scenario.ConfigFile, e.Kind)}
	case e.Size > scenario.MaxConfig:
		return config, false, configError{fmt.Errorf("%s is over the limit of %d bytes", scenario.ConfigFile, scenario.MaxConfig)}
	}
	data, err := tree.ReadFile(scenario.ConfigFile)
	if err != nil {
		return config, false, err
	}
	if config, err = scenario.ParseConfig(scenario.ConfigFile, data); err != nil {
		return config, false, configError{err}
	}
	return config, true, nil
}
