package verdict

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

func TestSoundRun(t *testing.T) {
	findings, outcome, exitCode := Judge(soundRun())
	if outcome != evidence.Reproduced || exitCode != 0 || len(lines(findings)) != 0 || len(findings) != 1 {
		t.Errorf("%s %d %+v", outcome, exitCode, findings)
	}
}

// mutations spoil one fact each; no pass may survive one of them. The outcome is inconclusive where
// something was not looked at, and not-reproduced where something was seen to be wrong.
var mutations = []struct {
	name string
	fail bool
	make func(*evidence.Run)
}{
	{"no revision", false, func(r *evidence.Run) { r.Revision = nil }},
	{"no commit", false, func(r *evidence.Run) { r.Revision.Commit = "" }},
	{"no tree", false, func(r *evidence.Run) { r.Revision.Tree = "" }},
	{"no set", false, func(r *evidence.Run) { r.Set = nil }},
	{"no objects", false, func(r *evidence.Run) { r.Set.Objects = nil }},
	{"an object more than was applied", false, func(r *evidence.Run) { r.Set.Objects = append(r.Set.Objects, evidence.Object{ID: stray}) }},
	{"no experiment", false, func(r *evidence.Run) { r.Experiments = nil }},
	{"no repeats asked for", false, func(r *evidence.Run) { r.Experiments[0].Repeats = 0 }},
	{"no repeats asked for, and none ran", false, func(r *evidence.Run) { r.Experiments[0].Repeats, r.Repeats = 0, nil }},
	{"images not asked", false, func(r *evidence.Run) { r.ImagesAsked = false }},
	{"image not among those that were asked", false, func(r *evidence.Run) { r.Images = nil }},
	{"image without a manifest", false, func(r *evidence.Run) { r.Images[0].Manifest = "" }},
	{"image without a config", false, func(r *evidence.Run) { r.Images[0].Config = "" }},
	{"image not asked again", false, func(r *evidence.Run) { r.Images[0].After = "" }},
	{"image moved", false, func(r *evidence.Run) { r.Images[0].After = hash("9") }},
	{"image that nothing of the set needs is unresolved", false, func(r *evidence.Run) { r.Images = append(r.Images, evidence.Image{Reference: "x"}) }},
	{"no repeats", false, func(r *evidence.Run) { r.Repeats = nil }},
	{"a repeat missing", false, func(r *evidence.Run) { r.Repeats = r.Repeats[:2] }},
	{"the first repeat missing", false, func(r *evidence.Run) { r.Repeats = r.Repeats[1:] }},
	{"a repeat too many", false, func(r *evidence.Run) { r.Repeats = append(r.Repeats, soundRepeat(4)) }},
	{"a repeat told twice", false, func(r *evidence.Run) {
		r.Repeats[2] = soundRepeat(2)
		r.Repeats[2].Cleaning = &evidence.Cleaning{Skipped: "last"}
	}},
	{"an object not applied", false, func(r *evidence.Run) { r.Repeats[1].Applied = r.Repeats[1].Applied[:1] }},
	{"an object applied twice, another not", false, func(r *evidence.Run) { r.Repeats[1].Applied[0] = r.Repeats[1].Applied[1] }},
	{"another object applied", false, func(r *evidence.Run) { r.Repeats[1].Applied[0].Object = stray }},
	{"an object refused", true, func(r *evidence.Run) { r.Repeats[1].Applied[0].Error = "invalid" }},
	{"not awaited", false, func(r *evidence.Run) { r.Repeats[1].Settled = nil }},
	{"not settled", false, func(r *evidence.Run) { r.Repeats[1].Settled.Ready = false }},
	{"no window", false, func(r *evidence.Run) { r.Repeats[1].Settled.Window = 0 }},
	{"no Pods", false, func(r *evidence.Run) { r.Repeats[1].Settled.Pods = 0 }},
	{"no Pods, and none said to be wanted", false, func(r *evidence.Run) { r.Repeats[1].Settled.Pods, r.Repeats[1].Settled.Expected = 0, false }},
	{"no containers", false, func(r *evidence.Run) { r.Repeats[1].Containers = nil }},
	{"a gap in a watch", false, func(r *evidence.Run) { r.Repeats[1].Settled.Gaps = 1 }},
	{"container without a digest", false, func(r *evidence.Run) { r.Repeats[1].Containers[0].Digest = "" }},
	{"container with other bits that nobody compared", false, func(r *evidence.Run) { r.Repeats[1].Containers[0].Digest = hash("9") }},
	{"container of an image that nobody asked about", false, func(r *evidence.Run) { r.Repeats[1].Containers[0].Reference = "x" }},
	{"not compared", false, func(r *evidence.Run) { r.Repeats[1].Comparison = nil }},
	{"fewer compared", false, func(r *evidence.Run) { r.Repeats[1].Comparison.Compared = 1 }},
	{"nothing listed", false, func(r *evidence.Run) { r.Repeats[1].Comparison.Listed = 0 }},
	{"unread", false, func(r *evidence.Run) { r.Repeats[1].Comparison.Unread = []string{"secrets: forbidden"} }},
	{"a difference", true, func(r *evidence.Run) { r.Repeats[1].Comparison.Differences = []evidence.Difference{{Object: web}} }},
	{"no clean-up", false, func(r *evidence.Run) { r.Repeats[1].Cleaning = nil }},
	{"no word of the last clean-up", false, func(r *evidence.Run) { r.Repeats[2].Cleaning = nil }},
	{"clean-up skipped in the middle", false, func(r *evidence.Run) { r.Repeats[1].Cleaning = &evidence.Cleaning{Skipped: "in a hurry"} }},
	{"clean-up listed nothing", false, func(r *evidence.Run) { r.Repeats[1].Cleaning.Listed = 0 }},
	{"left behind, and no new cluster", false, func(r *evidence.Run) { r.Repeats[1].Cleaning.Left = []evidence.ID{stray} }},
	{"lost, and no new cluster", false, func(r *evidence.Run) { r.Repeats[1].Cleaning.Lost = []evidence.ID{stray} }},
	{"clean-up unread, and no new cluster", false, func(r *evidence.Run) { r.Repeats[1].Cleaning.Unread = []string{"pods: forbidden"} }},
	{"a new cluster that is the old one", false, func(r *evidence.Run) { r.Repeats[1].Cleaning.NewCluster = true }},
	{"a metric unobserved", false, func(r *evidence.Run) { r.Repeats[1].Metrics[1].Observed = false }},
	{"a metric absent", false, func(r *evidence.Run) { r.Repeats[1].Metrics = r.Repeats[1].Metrics[1:] }},
	{"no metrics", false, func(r *evidence.Run) { r.Repeats[1].Metrics = nil }},
	{"a stub of what is missing, and nothing said to be missing", false, func(r *evidence.Run) { r.Stubs = []evidence.Stub{{Object: stray, Explain: true}} }},
	{"not ended", false, func(r *evidence.Run) { r.Repeats[1].Ended = false }},
	{"a signal", false, func(r *evidence.Run) { r.Signal = "INT" }},
	{"no artifacts", true, func(r *evidence.Run) { r.Repeats[1].Artifacts = nil }},
	{"no model", true, func(r *evidence.Run) { r.Repeats[1].Artifacts = r.Repeats[1].Artifacts[:1] }},
	{"the model is not Git's", true, func(r *evidence.Run) { r.Repeats[1].Artifacts[1].Live = hash("9") }},
	{"the model was not read", false, func(r *evidence.Run) {
		for i := range r.Repeats {
			r.Repeats[i].Artifacts[1].Live = ""
		}
	}},
	{"the model has no digest at all", false, func(r *evidence.Run) {
		for i := range r.Repeats {
			r.Repeats[i].Artifacts[1] = evidence.Artifact{Role: "model", Name: "m"}
		}
	}},
	{"another image in one repeat", true, func(r *evidence.Run) { r.Repeats[1].Artifacts[0].Live = hash("9") }},
	{"a fail before the repeats", true, func(r *evidence.Run) { r.Found = append(r.Found, evidence.Finding{Severity: evidence.Fail}) }},
	{"trouble before the repeats", false, func(r *evidence.Run) { r.Found = append(r.Found, evidence.Finding{Severity: evidence.Inconclusive}) }},
	{"a finding of an unknown severity", false, func(r *evidence.Run) { r.Found = append(r.Found, evidence.Finding{Severity: "error"}) }},
	{"a fail in a repeat", true, func(r *evidence.Run) { r.Repeats[1].Findings = []evidence.Finding{{Severity: evidence.Fail}} }},
	{"trouble in a repeat", false, func(r *evidence.Run) { r.Repeats[1].Findings = []evidence.Finding{{Severity: evidence.Inconclusive}} }},
}

func TestNoPassByAccident(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			run := soundRun()
			m.make(&run)
			want, code := evidence.Undecided, 3
			if m.fail {
				want, code = evidence.NotReproduced, 1
			}
			if run.Signal != "" {
				code = 130
			}
			if findings, outcome, exitCode := Judge(run); outcome != want || exitCode != code {
				t.Errorf("want %s %d, got %s %d %v", want, code, outcome, exitCode, lines(findings))
			}
		})
	}
}

// TestStillAPass has the twins of the mutations: what leaves the pass as it is.
func TestStillAPass(t *testing.T) {
	cases := []struct {
		name string
		make func(*evidence.Run)
		want []string
	}{
		{"pinned, and not asked again", func(r *evidence.Run) { r.Images[0].Pinned, r.Images[0].After = true, "" }, nil},
		{"single manifest", func(r *evidence.Run) {
			r.Images[0].Index, r.Images[0].After = "", hash("2")
			for i := range r.Repeats {
				r.Repeats[i].Containers[0].Digest = hash("2")
			}
		}, nil},
		{"no Pods wanted and none there", func(r *evidence.Run) {
			r.Set.Objects[1].Content["spec"].(map[string]any)["replicas"] = int64(0)
			r.Experiments[0].Fixed = []string{"model"}
			for i := range r.Repeats {
				r.Repeats[i].Settled.Expected, r.Repeats[i].Settled.Pods, r.Repeats[i].Containers = false, 0, nil
			}
		}, nil},
		{"a container that is not ready has no digest", func(r *evidence.Run) {
			for i := range r.Repeats {
				r.Repeats[i].Containers = append(r.Repeats[i].Containers, evidence.Container{Reference: reference})
			}
		}, nil},
		{"left behind, and the next got a new cluster", func(r *evidence.Run) {
			r.Repeats[0].Cleaning.Left, r.Repeats[0].Cleaning.NewCluster = []evidence.ID{stray}, true
			r.Repeats[1].Cluster, r.Repeats[2].Cluster = "rbc-2", "rbc-2"
		}, []string{"warn not-clean ConfigMap/ns/stray"}},
		{"lost, and the next got a new cluster", func(r *evidence.Run) {
			r.Repeats[1].Cleaning.Lost, r.Repeats[1].Cleaning.NewCluster = []evidence.ID{stray}, true
			r.Repeats[2].Cluster = "rbc-2"
		}, []string{"warn not-clean ConfigMap/ns/stray"}},
		{"a cluster a repeat", func(r *evidence.Run) {
			for i, name := range []string{"rbc-1", "rbc-2", "rbc-3"} {
				r.Repeats[i].Cluster = name
				r.Repeats[i].Cleaning = &evidence.Cleaning{Skipped: "every repeat has its own", NewCluster: true}
			}
		}, nil},
		{"restarted before it settled", func(r *evidence.Run) { r.Repeats[1].Containers[0].Restarts = 1 }, []string{"warn restarted Pod/ns/web-1-x containers[c]"}},
		{"leftovers", func(r *evidence.Run) { r.Leftovers = []string{"docker rm x"} }, []string{"warn not-clean"}},
		{"a stub of a declared input", func(r *evidence.Run) { r.Stubs = []evidence.Stub{{Object: stray, Reason: "x"}} }, nil},
		{"a slower repeat", func(r *evidence.Run) { r.Repeats[1].Metrics[1].Value = 99 }, nil},
		{"an artifact that nothing holds fixed is not labelled", func(r *evidence.Run) { r.Experiments[0].Fixed = nil }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := soundRun()
			c.make(&run)
			findings, outcome, exitCode := Judge(run)
			if outcome != evidence.Reproduced || exitCode != 0 || !slices.Equal(lines(findings), c.want) {
				t.Errorf("%s %d %v, want %v", outcome, exitCode, lines(findings), c.want)
			}
		})
	}
}

// needed tells of every field of a run whether a pass stands on it. A new field must be told here.
var needed = map[string]bool{
	"Revision": true, "Set": true, "Experiments": true, "Images": true, "ImagesAsked": true, "Repeats": true,
	// These can only make a pass worse, or say where it was.
	"Found": false, "Signal": false, "Leftovers": false, "Stubs": false, "Explain": false,
	"SchemaVersion": false, "Tool": false, "ID": false, "Started": false, "Request": false, "Clusters": false, "Stages": false, "NotCovered": false,
	// These are computed, and never read.
	"Findings": false, "Outcome": false, "ExitCode": false,
}

func TestEveryFieldOfARun(t *testing.T) {
	kind := reflect.TypeFor[evidence.Run]()
	if kind.NumField() != len(needed) {
		t.Errorf("a run has %d fields, and %d are told", kind.NumField(), len(needed))
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			want, told := needed[field.Name]
			if !told {
				t.Fatal("does a pass stand on it?")
			}
			run := soundRun()
			reflect.ValueOf(&run).Elem().Field(i).SetZero()
			if _, outcome, _ := Judge(run); (outcome != evidence.Reproduced) != want {
				t.Errorf("without it the outcome is %s", outcome)
			}
		})
	}
}

func TestComputedFieldsAreNotRead(t *testing.T) {
	run := soundRun()
	run.Repeats[1].Ended = false
	findings, outcome, exitCode := Judge(run)
	run.Findings, run.Outcome, run.ExitCode = []evidence.Finding{{Severity: evidence.Fail, Code: "x"}}, evidence.Reproduced, 0
	again, outcomeAgain, exitCodeAgain := Judge(run)
	if outcome != outcomeAgain || exitCode != exitCodeAgain || cmp.Diff(findings, again) != "" {
		t.Errorf("%s %d %v", outcomeAgain, exitCodeAgain, again)
	}
}

func TestJudgeChangesNothing(t *testing.T) {
	for _, m := range mutations {
		run, same := soundRun(), soundRun()
		m.make(&run)
		m.make(&same)
		Judge(run)
		if d := cmp.Diff(same, run); d != "" {
			t.Fatalf("%s: %s", m.name, d)
		}
	}
}

// TestJudgeAfterJSON: the facts as a file holds them give the same answer, spoilt or not.
func TestJudgeAfterJSON(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			run := soundRun()
			m.make(&run)
			text, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			var read evidence.Run
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			findings, outcome, exitCode := Judge(run)
			again, outcomeAgain, exitCodeAgain := Judge(read)
			if d := cmp.Diff(findings, again); d != "" || outcome != outcomeAgain || exitCode != exitCodeAgain {
				t.Errorf("%s %d became %s %d: %s", outcome, exitCode, outcomeAgain, exitCodeAgain, d)
			}
		})
	}
}
