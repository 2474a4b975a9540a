package report

import (
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func closureOf() evidence.Closure {
	web := evidence.ID{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "web"}
	hostile := evidence.ID{Kind: "Secret", Namespace: "a", Name: "x\"]; n9 [label=\"y\\\n\x1b[31m"}
	finding := &evidence.Finding{Code: "missing-secret", Severity: evidence.Fail, Object: hostile.String(), NeededBy: web.String(), Message: "not in the repository"}
	return evidence.Closure{
		Objects: 2,
		References: []evidence.Reference{
			{Object: evidence.ID{Kind: "ConfigMap", Namespace: "a", Name: "cm"}, Key: "k", NeededBy: web, Field: "f1", State: evidence.InSet},
			{Object: evidence.ID{Kind: "ConfigMap", Namespace: "a", Name: "cm"}, Key: "gone", NeededBy: web, Field: "f2", State: evidence.Missing},
			{Object: hostile, NeededBy: web, Field: `f3["a\b"]`, State: evidence.Missing, Finding: finding},
			{Object: evidence.ID{Kind: "Secret", Namespace: "a", Name: "may"}, NeededBy: web, Field: "f4", State: evidence.Missing, Optional: true},
			{Object: evidence.ID{Kind: "Secret", Namespace: "a", Name: "tls"}, NeededBy: web, Field: "f5", State: evidence.Made, By: "Certificate/c"},
		},
		Findings: []evidence.Finding{*finding},
	}
}

func TestClosureText(t *testing.T) {
	var out strings.Builder
	if err := Closure(&out, closureOf()); err != nil {
		t.Fatal(err)
	}
	want := `FAIL missing-secret  Secret/a/x"]; n9 [label="y\ \u001b[31m  needed by Deployment/a/web  not in the repository
2 objects need 5 things by name: 1 in the set, 1 made from it, 0 given, 0 declared as inputs, 2 missing, 1 optional and not there
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// TestClosureGraph: a name of the revision stays inside its label.
func TestClosureGraph(t *testing.T) {
	var out strings.Builder
	if err := ClosureGraph(&out, closureOf()); err != nil {
		t.Fatal(err)
	}
	want := `digraph closure {
  rankdir=LR;
  node [shape=box];
  n0 [label="Deployment/a/web"];
  n1 [label="ConfigMap/a/cm"];
  n0 -> n1 [label="f1"];
  n2 [label="ConfigMap/a/cm key gone", color=red, fontcolor=red];
  n0 -> n2 [label="f2", color=red];
  n3 [label="Secret/a/x\"]; n9 [label=\"y\\ \\u001b[31m", color=red, fontcolor=red];
  n0 -> n3 [label="f3[\"a\\b\"]", color=red];
  n4 [label="Secret/a/may", style=dashed];
  n0 -> n4 [label="f4", style=dashed];
  n5 [label="Secret/a/tls (made: Certificate/c)", color=gray];
  n0 -> n5 [label="f5"];
}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestClosureTellsOfAFailedWrite(t *testing.T) {
	if Closure(broken{}, closureOf()) == nil || ClosureGraph(broken{}, closureOf()) == nil {
		t.Error("no error")
	}
}
