package report

import (
	"fmt"
	"io"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Closure writes a line a finding, and a line that counts where the things come from.
func Closure(w io.Writer, closure evidence.Closure) error {
	out := &strings.Builder{}
	for _, f := range closure.Findings {
		out.WriteString(Line(f) + "\n")
	}
	counts := map[evidence.ReferenceState]int{}
	optional := 0
	for _, r := range closure.References {
		counts[r.State]++
		if r.State == evidence.Missing && r.Optional {
			optional++
		}
	}
	fmt.Fprintf(out, "%d objects need %d things by name: %d in the set, %d made from it, %d given, %d declared as inputs, %d missing",
		closure.Objects, len(closure.References), counts[evidence.InSet], counts[evidence.Made], counts[evidence.Given], counts[evidence.Input], counts[evidence.Missing]-optional)
	if optional > 0 {
		fmt.Fprintf(out, ", %d optional and not there", optional)
	}
	out.WriteString("\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// ClosureGraph writes the references as a graph for Graphviz: who needs what. What is missing is red,
// what is optional and not there dashed. A node's id is a number, so that names stand in labels alone.
func ClosureGraph(w io.Writer, closure evidence.Closure) error {
	out := &strings.Builder{}
	out.WriteString("digraph closure {\n  rankdir=LR;\n  node [shape=box];\n")
	nodes := map[string]int{}
	node := func(label, style string) int {
		id, there := nodes[label+style]
		if !there {
			id = len(nodes)
			nodes[label+style] = id
			fmt.Fprintf(out, "  n%d [label=%s%s];\n", id, quoted(label), style)
		}
		return id
	}
	for _, r := range closure.References {
		label, style, edge := r.Object.String(), "", ""
		switch {
		case r.State == evidence.Missing && r.Key != "":
			label += " key " + r.Key
			fallthrough
		case r.State == evidence.Missing:
			style, edge = ", color=red, fontcolor=red", ", color=red"
			if r.Optional {
				style, edge = ", style=dashed", ", style=dashed"
			}
		case r.By != "":
			label += " (" + string(r.State) + ": " + r.By + ")"
			style = ", color=gray"
		}
		needer := node(r.NeededBy.String(), "")
		fmt.Fprintf(out, "  n%d -> n%d [label=%s%s];\n", needer, node(label, style), quoted(r.Field), edge)
	}
	out.WriteString("}\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// quoted is text as a quoted string of Graphviz: a backslash would begin an escape, a quote end it
// (https://graphviz.org/doc/info/lang.html).
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(Clean(text)) + `"`
}
