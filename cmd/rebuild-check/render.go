package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/report"
)

const renderExample = `  rebuild-check render --rev HEAD
  rebuild-check render --rev v1.4.0 --path deploy/overlays/prod -n shop | kubectl diff -f -
  rebuild-check render --rev HEAD -o json | jq '.objects[].origin'`

func newRender() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "render --rev REV",
		Short: "Print what a revision renders to, without Docker",
		Long: `render prints the objects that the main job would apply: YAML documents with the file and line that each
comes from, or JSON with the line of every field. Findings go to standard error, one a line.

Values of Secrets are printed as Git has them.

Exit codes: 0 rendered, 1 something is wrong in the revision, 2 usage, 3 it could not be read (safe to retry).`,
		Example: renderExample, Args: noArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.render(cmd) },
	}
	f.reading(cmd.Flags(), "yaml", "namespace to write into objects that name none", "yaml or json")
	return cmd
}

// reading adds the flags of a command that reads a revision and creates nothing.
func (f *flags) reading(v *pflag.FlagSet, form, namespace, forms string) {
	v.SortFlags = false
	v.StringVar(&f.opts.Rev, "rev", "", "revision to read: a commit, short id, branch or tag (required)")
	v.StringVar(&f.opts.Repo, "repo", ".", "repository: a `folder` inside it, or a URL")
	v.StringVar(&f.opts.Path, "path", ".", "`folder` of the revision to render: a Helm chart, Kustomize, or plain YAML and JSON")
	f.helm(v)
	v.StringVarP(&f.opts.Namespace, "namespace", "n", "", namespace)
	v.StringVarP(&f.output, "output", "o", form, "form on standard output: "+forms)
}

// checkReading finds every mistake in those flags at once.
func (f *flags) checkReading(cmd *cobra.Command, forms ...string) error {
	var mistakes []error
	if f.opts.Rev == "" {
		mistakes = append(mistakes, errors.New("--rev is required: name a commit, branch or tag, as in --rev HEAD"))
	}
	if !slices.Contains(forms, f.output) {
		mistakes = append(mistakes, fmt.Errorf("--output %q: want %s", f.output, strings.Join(forms, " or ")))
	}
	if n := f.opts.Namespace; n != "" && !validNamespace(n) {
		mistakes = append(mistakes, fmt.Errorf("--namespace %q: want at most 63 lower-case letters, digits and dashes, as Kubernetes does", n))
	}
	f.unset(cmd)
	return errors.Join(mistakes...)
}

func (f *flags) render(cmd *cobra.Command) error {
	if err := f.checkReading(cmd, "yaml", "json"); err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr())
	f.opts.Progress = progress.stage
	set, findings, err := verifier.Render(cmd.Context(), f.opts)
	progress.close()
	if err != nil {
		return err
	}
	for _, finding := range findings {
		fmt.Fprintln(cmd.ErrOrStderr(), line(finding))
	}
	if err := printSet(cmd.OutOrStdout(), set, f.output); err != nil {
		return &exit{3, fmt.Errorf("writing the set: %w", err)}
	}
	if code := renderCode(cmd, findings); code != 0 {
		return &exit{code, nil}
	}
	return nil
}

func renderCode(cmd *cobra.Command, findings []evidence.Finding) int {
	code := 0
	var interrupted *verifier.Interrupted
	for _, finding := range findings {
		if finding.Severity == evidence.Fail {
			return 1
		} else if finding.Severity == evidence.Inconclusive {
			code = 3
		}
	}
	if errors.As(context.Cause(cmd.Context()), &interrupted) {
		return exitCode(interrupted.Signal)
	}
	return code
}

// line is a finding in one line: severity, code, place, message and what to do.
func line(f evidence.Finding) string {
	text := fmt.Sprintf("%s %s", f.Severity, f.Code)
	if at := f.Origin.String(); at != "" {
		text += " " + at
	}
	text += ": " + f.Message
	if f.Field != "" {
		text += " (" + f.Field + ")"
	}
	if f.Do != "" {
		text += "; " + f.Do
	}
	return report.Clean(text)
}

// printSet writes the set; there is nothing to write where there is none.
func printSet(w io.Writer, set *evidence.Set, form string) error {
	if set == nil {
		return nil
	}
	if form == "json" {
		return writeJSON(w, set)
	}
	for _, o := range set.Objects {
		data, err := yaml.Marshal(o.Content)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n# Source: %s\n%s", report.Clean(o.Origin.String()), data); err != nil {
			return err
		}
	}
	return nil
}
