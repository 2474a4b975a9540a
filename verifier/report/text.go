// Package report writes the facts of a run for people and for machines. Names, messages and log
// lines come from the revision and are hostile: every writer makes them harmless first.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Clean makes text harmless for a terminal and keeps it on one line: control characters, line
// separators and direction overrides become visible escapes.
func Clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Text writes the outcome first, then the findings by severity, one line each, then the metrics of
// every repeat with their range, then what was not covered.
func Text(w io.Writer, run evidence.Run) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s\n", Clean(strings.ToUpper(string(run.Outcome))+"  "+headline(run)))
	for _, e := range run.Experiments {
		fmt.Fprintf(out, "experiment %s: %s\n", Clean(e.Name), Clean(e.Change))
	}
	for _, s := range run.Stubs {
		fmt.Fprintf(out, "stub %s: %s\n", Clean(s.Object.String()), Clean(s.Reason))
	}
	if len(run.Findings) > 0 {
		out.WriteString("\n")
	}
	for _, f := range run.Findings {
		out.WriteString(Line(f) + "\n")
	}
	table(out, run)
	if len(run.NotCovered) > 0 {
		out.WriteString("\nnot covered:\n")
		for _, n := range run.NotCovered {
			fmt.Fprintf(out, "  - %s\n", Clean(n))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func headline(run evidence.Run) string {
	parts := []string{run.Request.Rev}
	if run.Revision != nil {
		parts = []string{fmt.Sprintf("%s (%s)", run.Revision.Commit[:min(12, len(run.Revision.Commit))], run.Revision.Name)}
	}
	if run.Set != nil {
		parts = append(parts, fmt.Sprintf("%d objects from %s by %s", len(run.Set.Objects), run.Set.Path, run.Set.Renderer))
	}
	whole := 0
	for _, r := range run.Repeats {
		if r.Ended {
			whole++
		}
	}
	parts = append(parts, fmt.Sprintf("%d repeats", whole))
	if len(run.Clusters) > 0 && run.Clusters[0].Version != "" {
		parts = append(parts, "Kubernetes "+run.Clusters[0].Version)
	}
	return strings.Join(parts, ", ")
}

// Line is a finding on one line:
//
//	FAIL missing-secret  Secret/ai-lab/model-registry  needed by Deployment/ai-lab/model-api spec.… (deploy/api.yaml:41)  not in the repository
func Line(f evidence.Finding) string {
	parts := []string{fmt.Sprintf("%s %s", label(f.Severity), f.Code)}
	if f.Object != "" {
		parts = append(parts, f.Object)
	}
	where := f.Field
	if f.NeededBy != "" {
		where = strings.TrimSpace("needed by " + f.NeededBy + " " + f.Field)
	}
	if at := f.Origin.String(); at != "" {
		where = strings.TrimSpace(where + " (" + at + ")")
	}
	if where != "" {
		parts = append(parts, where)
	}
	message := f.Message
	if f.Want != "" && f.Got != "" && !strings.Contains(message, f.Got) {
		message += fmt.Sprintf(": Git %s, live %s", f.Want, f.Got)
	} else if f.Got != "" && f.Want == "" && !strings.Contains(message, f.Got) {
		message += ": " + f.Got
	}
	if f.Repeat > 0 {
		message = fmt.Sprintf("repeat %d: %s", f.Repeat, message)
	}
	parts = append(parts, message)
	if f.Do != "" {
		parts = append(parts, "-> "+f.Do)
	}
	return Clean(strings.Join(parts, "  "))
}

func label(s evidence.Severity) string {
	switch s {
	case evidence.Inconclusive:
		return "UNSURE"
	default:
		return strings.ToUpper(string(s))
	}
}

// table shows every value of every repeat, and the range.
func table(out *strings.Builder, run evidence.Run) {
	var names []string
	units := map[string]string{}
	values := map[string][]evidence.Metric{}
	for _, r := range run.Repeats {
		for _, m := range r.Metrics {
			if _, seen := units[m.Name]; !seen {
				names = append(names, m.Name)
				units[m.Name] = m.Unit
			}
			values[m.Name] = append(values[m.Name], m)
		}
	}
	if len(names) == 0 {
		return
	}
	out.WriteString("\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "metric\tunit")
	for _, r := range run.Repeats {
		if len(r.Metrics) > 0 {
			fmt.Fprintf(w, "\trepeat %d", r.Number)
		}
	}
	fmt.Fprint(w, "\trange\n")
	for _, name := range names {
		fmt.Fprintf(w, "%s\t%s", Clean(name), Clean(units[name]))
		for _, m := range values[name] {
			fmt.Fprintf(w, "\t%s", Clean(Value(m)))
		}
		fmt.Fprintf(w, "\t%s\n", Clean(Range(values[name])))
	}
	w.Flush() // into a strings.Builder, which cannot fail
}

// Value is a metric's value in a few characters; a digest is cut to 12, seconds have two decimals.
func Value(m evidence.Metric) string {
	switch {
	case !m.Observed:
		return "unobserved"
	case m.Text != "":
		_, hex, _ := strings.Cut(m.Text, ":")
		return hex[:min(12, len(hex))]
	case m.Unit == "s":
		return fmt.Sprintf("%.2f", m.Value)
	}
	return fmt.Sprintf("%g", m.Value)
}

// Range is the lowest and highest value of all repeats, or whether digests are equal. One
// unobserved repeat makes it unobserved.
func Range(metrics []evidence.Metric) string {
	low, high := metrics[0], metrics[0]
	texts := map[string]bool{}
	for _, m := range metrics {
		if !m.Observed {
			return "unobserved"
		}
		texts[m.Text] = true
		if m.Value < low.Value {
			low = m
		}
		if m.Value > high.Value {
			high = m
		}
	}
	switch {
	case metrics[0].Text != "" && len(texts) == 1:
		return "equal"
	case metrics[0].Text != "":
		return fmt.Sprintf("%d different", len(texts))
	case low.Value == high.Value:
		return Value(low)
	}
	return Value(low) + " to " + Value(high)
}
