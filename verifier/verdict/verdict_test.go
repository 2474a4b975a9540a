package verdict

import (
	"slices"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func TestDifferences(t *testing.T) {
	field := func(question, change string) evidence.Difference {
		return evidence.Difference{Question: question, Change: change, Object: web, Field: "spec.x", Git: "one", Live: "two", Manager: "kubectl-patch", Time: "2026-01-01T00:00:00Z", Origin: evidence.Origin{File: "web.yaml", Line: 9}}
	}
	bits := func(change string) evidence.Difference {
		return evidence.Difference{Question: "bits", Change: change, Object: pod, Field: "c", Git: hash("1"), Live: hash("9")}
	}
	by := "written by kubectl-patch at 2026-01-01T00:00:00Z"
	cases := []struct {
		name       string
		difference evidence.Difference
		pinned     bool
		want, part string
	}{
		{"object missing", evidence.Difference{Question: "object", Change: "missing", Object: web}, false, "object-missing", "is not live"},
		{"object extra", evidence.Difference{Question: "object", Change: "extra", Object: stray}, false, "object-extra", "Git does not declare it"},
		{"declared changed", field("declared", "changed"), false, "drift-changed", by},
		{"declared removed", field("declared", "removed"), false, "drift-changed", "live lacks it"},
		{"declared added", field("declared", "added"), false, "drift-changed", "live differs"},
		{"foreign added", field("foreign", "added"), false, "drift-foreign-field", by},
		{"foreign undeclared", field("foreign", "undeclared"), false, "drift-foreign-field", "the server's default is one"},
		{"bits of a tag", bits("changed"), false, "image-tag-moved", "it runs " + hash("9")},
		{"bits of a digest", bits("changed"), true, "image-digest-mismatch", "it runs " + hash("9")},
		{"bits of an unknown image", bits("extra"), false, "image-unverified", hash("9")},
		{"a kind that nobody knows", field("weather", "rain"), false, "drift-changed", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := soundRun()
			run.Images[0].Pinned = c.pinned
			run.Repeats[1].Comparison.Differences = []evidence.Difference{c.difference}
			findings, outcome, exitCode := Judge(run)
			if outcome != evidence.NotReproduced || exitCode != 1 || len(lines(findings)) != 1 {
				t.Fatalf("%s %d %v", outcome, exitCode, lines(findings))
			}
			f := findings[0]
			if f.Code != c.want || f.Severity != evidence.Fail || f.Repeat != 2 || !strings.Contains(f.Message, c.part) || f.Object != c.difference.Object.String() ||
				f.Field != c.difference.Field || f.Origin != c.difference.Origin || f.Want != c.difference.Git || f.Got != c.difference.Live || (f.Do == "") {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestApplied(t *testing.T) {
	for reason, want := range map[string]string{
		"Invalid": "fail apply-rejected Deployment/ns/web", "Conflict": "fail apply-conflict Deployment/ns/web", "Trouble": "inconclusive cluster-failed Deployment/ns/web", "": "fail apply-rejected Deployment/ns/web",
	} {
		t.Run(reason, func(t *testing.T) {
			run := soundRun()
			run.Repeats[0].Applied[1].Error, run.Repeats[0].Applied[1].Reason = "the server said no", reason
			findings, _, _ := Judge(run)
			if got := lines(findings); !slices.Equal(got, []string{want}) || findings[0].Message != "the server said no" || findings[0].Origin.String() != "deploy/web.yaml:3" {
				t.Errorf("%v %+v", got, findings[0])
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	fail := evidence.Finding{Code: "missing-secret", Severity: evidence.Fail}
	trouble := evidence.Finding{Code: "registry-unavailable", Severity: evidence.Inconclusive}
	cases := []struct {
		name     string
		found    []evidence.Finding
		signal   string
		outcome  evidence.Outcome
		exitCode int
		first    string
	}{
		{"fail beats trouble", []evidence.Finding{trouble, fail}, "", evidence.NotReproduced, 1, "missing-secret"},
		{"trouble alone", []evidence.Finding{trouble}, "", evidence.Undecided, 3, "registry-unavailable"},
		{"a warning alone", nil, "", evidence.Reproduced, 0, "image-unpinned"},
		{"INT", nil, "INT", evidence.Undecided, 130, "interrupted"},
		{"TERM", nil, "TERM", evidence.Undecided, 143, "interrupted"},
		{"another signal", nil, "HUP", evidence.Undecided, 3, "interrupted"},
		{"INT after a fail", []evidence.Finding{fail}, "INT", evidence.NotReproduced, 130, "missing-secret"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := soundRun()
			run.Found, run.Signal = append(run.Found, c.found...), c.signal
			findings, outcome, exitCode := Judge(run)
			if outcome != c.outcome || exitCode != c.exitCode || findings[0].Code != c.first {
				t.Errorf("%s %d %v", outcome, exitCode, lines(findings))
			}
		})
	}
}

func TestFixed(t *testing.T) {
	cases := []struct {
		name string
		make func(*evidence.Run)
		want []string
	}{
		{"the model differs between repeats, and Git with it", func(r *evidence.Run) {
			r.Repeats[2].Artifacts[1].Git, r.Repeats[2].Artifacts[1].Live = hash("9"), hash("9")
		},
			[]string{"fail fixed-moved ConfigMap/ns/model model"}},
		{"the model is not Git's in all repeats", func(r *evidence.Run) {
			for i := range r.Repeats {
				r.Repeats[i].Artifacts[1].Live = hash("9")
			}
		}, []string{"fail fixed-moved ConfigMap/ns/model model", "fail fixed-moved ConfigMap/ns/model model", "fail fixed-moved ConfigMap/ns/model model"}},
		{"the image differs between repeats", func(r *evidence.Run) { r.Repeats[2].Artifacts[0].Live = hash("9") }, []string{"fail fixed-moved " + reference + " image"}},
		{"what nothing holds fixed differs between repeats", func(r *evidence.Run) {
			r.Experiments[0].Fixed = nil
			r.Repeats[2].Artifacts[1].Live = hash("9")
		}, []string{"fail repeat-differs ConfigMap/ns/model model"}},
		{"an artifact is there in one repeat only", func(r *evidence.Run) {
			r.Repeats[2].Artifacts = append(r.Repeats[2].Artifacts, evidence.Artifact{Role: "input", Name: "i", Git: hash("6"), Live: hash("6")})
		}, []string{"fail repeat-differs i input"}},
		{"input is held fixed, and nothing is labelled", func(r *evidence.Run) { r.Experiments[0].Fixed = []string{"input"} },
			[]string{"fail metric-unobserved experiment ns/e fixed", "fail metric-unobserved experiment ns/e fixed", "fail metric-unobserved experiment ns/e fixed"}},
		{"input is held fixed, and labelled", func(r *evidence.Run) {
			r.Experiments[0].Fixed = []string{"input"}
			for i := range r.Repeats {
				r.Repeats[i].Artifacts = append(r.Repeats[i].Artifacts, evidence.Artifact{Role: "input", Name: "i", Git: hash("6"), Live: hash("6")})
			}
		}, nil},
		{"a repeat that did not settle has moved nothing", func(r *evidence.Run) {
			r.Repeats[2].Settled.Ready, r.Repeats[2].Artifacts = false, nil
		}, []string{"inconclusive observation-gap"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := soundRun()
			c.make(&run)
			findings, _, _ := Judge(run)
			if got := lines(findings); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestMetricUnobserved: a repeat that was cut off is told once, and not metric by metric.
func TestMetricUnobserved(t *testing.T) {
	run := soundRun()
	run.Repeats[2].Metrics[0] = evidence.Metric{Name: "diff", Why: "live was not compared with Git"}
	findings, _, _ := Judge(run)
	if got := lines(findings); !slices.Equal(got, []string{"inconclusive metric-unobserved metric diff"}) || findings[0].Message != "live was not compared with Git" || findings[0].Repeat != 3 {
		t.Errorf("%+v", findings)
	}
	run.Repeats[2].Ended = false
	findings, _, _ = Judge(run)
	if got := lines(findings); slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "metric-unobserved") }) {
		t.Errorf("%v", got)
	}
}
