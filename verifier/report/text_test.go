package report

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

var update = flag.Bool("update", false, "write the golden files anew")

func metrics(diff, rollout float64, digest string) []evidence.Metric {
	return []evidence.Metric{
		{Name: "diff", Unit: "differences", Value: diff, Observed: true},
		{Name: "rollout", Unit: "s", Value: rollout, Observed: true},
		{Name: "artifact digest", Unit: "sha256", Text: "sha256:" + digest, Observed: digest != "", Why: "no digest was seen"},
	}
}

// notReproduced is a run with one finding of each severity, and three repeats.
func notReproduced() evidence.Run {
	return evidence.Run{
		Request:     evidence.Request{Rev: "main"},
		Revision:    &evidence.Revision{Name: "main", Commit: strings.Repeat("0123456789abcdef", 3)[:40]},
		Set:         &evidence.Set{Renderer: "kustomize", Path: "deploy", Objects: make([]evidence.Object, 7)},
		Experiments: []evidence.Experiment{{Name: "ai-lab/day27-experiment", Change: "從 declarative manifests 在乾淨 namespace 重建服務"}},
		Clusters:    []evidence.Cluster{{Version: "v1.37.0"}},
		Repeats: []evidence.Repeat{
			{Number: 1, Ended: true, Metrics: metrics(0, 4.217, strings.Repeat("a", 64))},
			{Number: 2, Ended: true, Metrics: metrics(2, 6.5, strings.Repeat("b", 64))},
			{Number: 3, Metrics: metrics(0, 4.217, "")},
		},
		Findings: []evidence.Finding{
			{Code: "missing-secret", Severity: evidence.Fail, Object: "Secret/ai-lab/model-registry", NeededBy: "Deployment/ai-lab/model-api", Field: "spec.template.spec.volumes[0]",
				Origin: evidence.Origin{File: "deploy/api.yaml", Line: 41}, Message: "not in the repository", Do: "add it, sealed"},
			{Code: "drift-changed", Severity: evidence.Fail, Object: "Deployment/ai-lab/model-api", Field: "spec.replicas", Origin: evidence.Origin{File: "deploy/api.yaml", Line: 23}, Repeat: 2,
				Want: "2", Got: "5", Message: "live differs from Git, written by kubectl at 2026-01-01T00:00:00Z", Do: "put the change into Git, or undo it"},
			{Code: "object-extra", Severity: evidence.Fail, Object: "ConfigMap/ai-lab/stray", Repeat: 2, Got: "it", Message: "it is live"},
			{Code: "render-failed", Severity: evidence.Fail, Origin: evidence.Origin{File: "deploy/x.yaml"}, Got: "what was seen", Message: "it cannot be read"},
			{Code: "observation-gap", Severity: evidence.Inconclusive, Repeat: 3, Message: "the repeat did not run to its end", Do: "run it again"},
			{Code: "image-unpinned", Severity: evidence.Warn, Object: "reg.example/app:1", Message: "a tag can move"},
			{Code: "name-generated", Severity: evidence.Info, Message: "for your information"},
		},
		NotCovered: []string{"whether the software is safe", "load balancers"},
		Outcome:    evidence.NotReproduced, ExitCode: 1,
	}
}

func text(t *testing.T, run evidence.Run) string {
	t.Helper()
	var out bytes.Buffer
	if err := Text(&out, run); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestText(t *testing.T) {
	empty := evidence.Run{Request: evidence.Request{Rev: "gone"}, Outcome: evidence.Undecided, Findings: []evidence.Finding{{Code: "engine-unavailable", Severity: evidence.Inconclusive, Message: "no engine answers"}}}
	for name, run := range map[string]evidence.Run{"not-reproduced.txt": notReproduced(), "nothing-ran.txt": empty} {
		t.Run(name, func(t *testing.T) {
			got, golden := text(t, run), filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

// hostile are names that a terminal, or a reader, would take for something else.
var hostile = []struct{ name, text, want string }{
	{"colour", "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
	{"title", "\x1b]0;pwned\x07", `\u001b]0;pwned\u0007`},
	{"one byte escape", "\u009b31m", `\u009b31m`},
	{"a line of its own", "x\nREPRODUCED  all is well\r\n", `x REPRODUCED  all is well\u000d `},
	{"columns", "a\tb\vc\fd", `a b\u000bc\u000cd`},
	{"erased", "bad\b\b\bgood\x7f", `bad\u0008\u0008\u0008good\u007f`},
	{"right to left", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
	{"line separators", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
	{"no UTF-8", "a\xffb\xc3", `a\ufffdb\ufffd`},
	{"nothing", "a\x00b", `a\u0000b`},
	{"good text stays", "重建 ünï 🙂 x/y:z", "重建 ünï 🙂 x/y:z"},
}

func TestClean(t *testing.T) {
	for _, c := range hostile {
		if got := Clean(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// harmless tells whether text holds nothing but printable runes and, where allowed, newlines.
func harmless(text string, lines bool) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !(lines && r == '\n') || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	})
}

// TestHostile puts each hostile text into every place that a run has for one.
func TestHostile(t *testing.T) {
	plain := strings.Count(text(t, spoilt("x")), "\n")
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			run := spoilt(c.text)
			if got := Line(run.Findings[0]); !harmless(got, false) {
				t.Errorf("a line: %q", got)
			}
			got := text(t, run)
			if !harmless(got, true) {
				t.Errorf("the text: %q", got)
			}
			if n := strings.Count(got, "\n"); n != plain {
				t.Errorf("it has %d lines, not %d: %q", n, plain, got)
			}
		})
	}
}

func spoilt(s string) evidence.Run {
	finding := evidence.Finding{
		Code: s, Severity: evidence.Severity(s), Object: s, Field: s, NeededBy: s, Origin: evidence.Origin{File: s, Line: 1}, Repeat: 1, Want: s, Got: s + "!", Message: s, Do: s,
	}
	return evidence.Run{
		Request: evidence.Request{Rev: s}, Revision: &evidence.Revision{Name: s, Commit: "01234567890" + s}, Set: &evidence.Set{Path: s, Renderer: s},
		Experiments: []evidence.Experiment{{Name: s, Change: s}}, Clusters: []evidence.Cluster{{Version: s + "v"}}, Findings: []evidence.Finding{finding}, NotCovered: []string{s},
		Repeats: []evidence.Repeat{{Number: 1, Metrics: []evidence.Metric{{Name: s, Unit: s, Text: "sha256:" + s, Observed: true}}}}, Outcome: evidence.Outcome(s),
	}
}

func TestRange(t *testing.T) {
	number := func(values ...float64) (list []evidence.Metric) {
		for _, v := range values {
			list = append(list, evidence.Metric{Unit: "s", Value: v, Observed: true})
		}
		return list
	}
	digest := func(texts ...string) (list []evidence.Metric) {
		for _, s := range texts {
			list = append(list, evidence.Metric{Unit: "sha256", Text: s, Observed: true})
		}
		return list
	}
	cases := []struct {
		name    string
		metrics []evidence.Metric
		want    string
	}{
		{"one value", number(1.5), "1.50"},
		{"equal values", number(1.5, 1.5), "1.50"},
		{"the lowest and the highest", number(2, 1, 3), "1.00 to 3.00"},
		{"falling", number(3, 2, 1), "1.00 to 3.00"},
		{"counts", []evidence.Metric{{Value: 0, Observed: true}, {Value: 12, Observed: true}}, "0 to 12"},
		{"equal digests", digest("sha256:a", "sha256:a"), "equal"},
		{"different digests", digest("sha256:a", "sha256:b", "sha256:a"), "2 different"},
		{"one unobserved", append(number(1, 2), evidence.Metric{Unit: "s"}), "unobserved"},
		{"the first unobserved", append([]evidence.Metric{{Unit: "s"}}, number(1, 2)...), "unobserved"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Range(c.metrics); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is closed") }

func TestTextTellsOfAFailedWrite(t *testing.T) {
	if err := Text(broken{}, notReproduced()); err == nil {
		t.Error("no error")
	}
}
