package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/bundle"
	"rebuild-check.dev/rebuild-check/verifier/cluster"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/report"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

const example = `  rebuild-check --rev HEAD
  rebuild-check --rev v1.4.0 --repo https://example.com/shop.git --path deploy/overlays/prod -n shop
  rebuild-check --rev HEAD --registry-mirror registry.example.com=http://127.0.0.1:5001 -o json`

// evidenceFolder takes the evidence of runs that name no folder, one folder each.
const evidenceFolder = "rebuild-check-evidence"

// flags are the command line of the main job.
type flags struct {
	opts     verifier.Options
	mirrors  []string
	evidence string
	output   string
}

func newRoot() *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:   "rebuild-check --rev REV",
		Short: "Can this revision be rebuilt from the repository alone?",
		Long: `rebuild-check checks out a revision, renders it, resolves every image digest, creates a throwaway kind
cluster and a clean namespace, applies the manifests, runs the declared experiment as often as it says, and
compares the live state with Git. If the repository is enough, it writes the evidence. If not, it names the
piece that is missing.

Exit codes: 0 reproduced, 1 not reproduced, 2 usage, 3 inconclusive (safe to retry), 130 and 143 after a signal.`,
		Example: example, Args: noArgs, SilenceErrors: true, SilenceUsage: true, Version: version(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; see rebuild-check --help", err) })
	v := root.Flags()
	v.SortFlags = false
	v.StringVar(&f.opts.Rev, "rev", "", "revision to rebuild: a commit, short id, branch or tag (required)")
	v.StringVar(&f.opts.Repo, "repo", ".", "repository: a `folder` inside it, or a URL")
	v.StringVar(&f.opts.Path, "path", ".", "`folder` of the revision to render: a Helm chart, Kustomize, or plain YAML and JSON")
	f.helm(v)
	v.StringVarP(&f.opts.Namespace, "namespace", "n", "", "namespace of objects that name none (default: the only one that the set uses, else "+verifier.DefaultNamespace+")")
	v.StringVar(&f.evidence, "evidence-dir", "", "empty or new `folder` for the evidence (default "+evidenceFolder+"/TIME)")
	v.StringVar(&f.opts.NodeImage, "node-image", fallback(os.Getenv("REBUILD_CHECK_NODE_IMAGE"), cluster.DefaultNodeImage), "kind node `image`; also REBUILD_CHECK_NODE_IMAGE")
	v.IntVar(&f.opts.Nodes, "nodes", 1, "nodes of the cluster: one control plane, the rest workers")
	v.StringArrayVar(&f.mirrors, "registry-mirror", nil, "pull images of a registry from elsewhere: `HOST=ENDPOINT[,NODE-ENDPOINT]`, repeatable")
	v.StringVar(&f.opts.Isolation, "isolation", "namespace", "one cluster a run and a clean `namespace` a repeat, or one cluster a repeat: namespace or cluster")
	v.DurationVar(&f.opts.Timeout, "timeout", 15*time.Minute, "limit of the whole run, clean-up excepted")
	v.BoolVar(&f.opts.KeepCluster, "keep-cluster", false, "leave the cluster and print its kubeconfig")
	v.BoolVar(&f.opts.ExplainAll, "explain-all", false, "go on past missing Secrets, ConfigMaps and keys, with stubs, to find what else is missing; never a pass")
	v.StringVarP(&f.output, "output", "o", "text", "result on standard output: text or json")
	root.AddCommand(newClosure(), newRender())
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// helm adds the flags for charts.
func (f *flags) helm(v *pflag.FlagSet) {
	v.StringArrayVar(&f.opts.Values, "values", nil, "values for a Helm chart: a `file` of the revision, from its root, repeatable; the last one wins")
	v.StringArrayVar(&f.opts.Set, "set", nil, "values for a Helm chart, as helm --set reads them: `KEY=VALUE`, repeatable")
	v.StringVar(&f.opts.Release, "release", "", "`name` of the Helm release (default: the chart's)")
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is no flag; name the revision with --rev, as in --rev HEAD", args[0])
	}
	return nil
}

func fallback(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// check finds every mistake in the flags at once.
func (f *flags) check() error {
	var mistakes []error
	wrong := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if f.opts.Rev == "" {
		wrong("--rev is required: name a commit, branch or tag, as in --rev HEAD")
	}
	if f.output != "text" && f.output != "json" {
		wrong("--output %q: want text or json", f.output)
	}
	if f.opts.Isolation != "namespace" && f.opts.Isolation != "cluster" {
		wrong("--isolation %q: want namespace or cluster", f.opts.Isolation)
	}
	if f.opts.Nodes < 1 || f.opts.Nodes > 20 {
		wrong("--nodes %d: want 1 to 20", f.opts.Nodes)
	}
	if f.opts.Timeout < time.Minute {
		wrong("--timeout %s: want at least 1m; a cluster alone takes that on a slow host", f.opts.Timeout)
	}
	if n := f.opts.Namespace; n != "" && !validNamespace(n) {
		wrong("--namespace %q: want at most 63 lower-case letters, digits and dashes, as Kubernetes does", n)
	}
	hosts := map[string]bool{}
	for _, text := range f.mirrors {
		mirror, err := scenario.ParseMirror(text)
		switch {
		case err != nil:
			mistakes = append(mistakes, err)
		case hosts[mirror.Host]:
			wrong("--registry-mirror: %s is named twice", mirror.Host)
		}
		hosts[mirror.Host] = true
		f.opts.Mirrors = append(f.opts.Mirrors, mirror)
	}
	return errors.Join(mistakes...)
}

func validNamespace(name string) bool {
	return len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && name[0] != '-' && name[len(name)-1] != '-'
}

func (f *flags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.evidence == "" {
		f.evidence = filepath.Join(evidenceFolder, time.Now().UTC().Format("20060102T150405.000Z"))
	}
	made := absent(f.evidence)
	if err := bundle.Prepare(f.evidence); err != nil {
		return err
	}
	f.unset(cmd)
	progress := newProgress(cmd.ErrOrStderr())
	f.opts.Progress, f.opts.Tool = progress.stage, "rebuild-check "+version()
	result, err := verifier.Verify(cmd.Context(), f.opts)
	progress.close()
	if err != nil {
		for _, folder := range made {
			_ = os.Remove(folder) // made empty above; a folder with content stays
		}
		return err
	}
	if filepath.Dir(f.evidence) == evidenceFolder {
		// The user's own repository is no dirtier for it.
		_ = os.WriteFile(filepath.Join(evidenceFolder, ".gitignore"), []byte("*\n"), 0o600)
	}
	if err = bundle.Write(f.evidence, result.Run, result.Raws); err != nil {
		err = fmt.Errorf("writing the evidence: %w", err)
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\n", f.evidence)
	}
	for _, path := range result.Kept {
		fmt.Fprintf(cmd.ErrOrStderr(), "kept: KUBECONFIG=%s\n", path)
	}
	if printErr := f.print(cmd.OutOrStdout(), result.Run); printErr != nil {
		err = errors.Join(err, fmt.Errorf("writing the result: %w", printErr))
	}
	code := result.Run.ExitCode
	if err != nil && code == 0 {
		code = 3 // nobody can sign what was not written
	}
	if code == 0 {
		return nil
	}
	return &exit{code, err}
}

// unset leaves to the revision's rebuild-check.yaml what no flag says.
func (f *flags) unset(cmd *cobra.Command) {
	if !cmd.Flags().Changed("path") {
		f.opts.Path = ""
	}
	if !cmd.Flags().Changed("nodes") {
		f.opts.Nodes = 0
	}
}

// absent are the folders that making this one makes, the deepest first.
func absent(folder string) []string {
	var list []string
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return list
		}
		list = append(list, at)
	}
}

func (f *flags) print(w io.Writer, run evidence.Run) error {
	if f.output == "json" {
		return writeJSON(w, run)
	}
	return report.Text(w, run)
}

// writeJSON writes a value as people read it; text stays as it is, < and & included.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
