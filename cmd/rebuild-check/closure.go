package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/report"
)

const closureExample = `  rebuild-check closure --rev HEAD
  rebuild-check closure --rev v1.4.0 --path deploy/overlays/prod -n shop
  rebuild-check closure --rev HEAD -o dot | dot -Tsvg >needs.svg`

func newClosure() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "closure --rev REV",
		Short: "Name what a revision needs and lacks, without Docker",
		Long: `closure lists what the objects of a revision need by name, where each thing comes from, and what is missing.
It reads the revision alone: no Docker, no cluster, no registry.

text is a line a finding and a summary; json has every reference; dot is a graph for Graphviz, with what is missing
in red, and findings on standard error.

Exit codes: 0 nothing is missing, 1 something is missing or wrong in the revision, 2 usage, 3 it could not be read
(safe to retry).`,
		Example: closureExample, Args: noArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.closure(cmd) },
	}
	f.reading(cmd.Flags(), "text", "namespace of objects that name none (default: the only one that the set uses, else "+verifier.DefaultNamespace+")", "text, json or dot")
	return cmd
}

func (f *flags) closure(cmd *cobra.Command) error {
	if err := f.checkReading(cmd, "text", "json", "dot"); err != nil {
		return err
	}
	progress := newProgress(cmd.ErrOrStderr())
	f.opts.Progress = progress.stage
	result, err := verifier.Closure(cmd.Context(), f.opts)
	progress.close()
	if err != nil {
		return err
	}
	if err := f.printClosure(cmd.OutOrStdout(), cmd.ErrOrStderr(), result); err != nil {
		return &exit{3, fmt.Errorf("writing the result: %w", err)}
	}
	if code := renderCode(cmd, result.Findings); code != 0 {
		return &exit{code, nil}
	}
	return nil
}

func (f *flags) printClosure(stdout, stderr io.Writer, result evidence.Closure) error {
	switch f.output {
	case "json":
		return writeJSON(stdout, result)
	case "dot":
		for _, finding := range result.Findings {
			fmt.Fprintln(stderr, report.Line(finding))
		}
		return report.ClosureGraph(stdout, result)
	}
	return report.Closure(stdout, result)
}
