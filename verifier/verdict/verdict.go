// Package verdict is the pure function from the recorded facts to the outcome. Anyone can call it
// again on the facts of an evidence folder.
package verdict

import (
	"fmt"
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Judge computes the findings, the outcome and the exit code of a run. It reads neither of these
// three from the run.
func Judge(run evidence.Run) (findings []evidence.Finding, outcome evidence.Outcome, exitCode int) {
	j := &judgement{run: run}
	j.findings = slices.Clone(run.Found)
	for _, r := range run.Repeats {
		j.repeat(r)
	}
	j.across()
	if !j.has(evidence.Fail) && !j.has(evidence.Inconclusive) && run.Signal == "" {
		j.nothingSkipped()
	}
	if run.Signal != "" {
		j.add(evidence.Finding{Code: "interrupted", Severity: evidence.Inconclusive, Message: "ended by " + run.Signal, Do: "run it again"})
	}
	for _, left := range run.Leftovers {
		j.add(evidence.Finding{Code: "not-clean", Severity: evidence.Warn, Message: "left behind; remove it with: " + left})
	}
	evidence.SortFindings(j.findings)
	outcome, exitCode = evidence.Reproduced, 0
	switch {
	case j.has(evidence.Fail):
		outcome, exitCode = evidence.NotReproduced, 1
	case j.has(evidence.Inconclusive):
		outcome, exitCode = evidence.Undecided, 3
	}
	switch run.Signal {
	case "INT":
		exitCode = 130
	case "TERM":
		exitCode = 143
	}
	return j.findings, outcome, exitCode
}

type judgement struct {
	run      evidence.Run
	findings []evidence.Finding
}

func (j *judgement) add(f evidence.Finding) { j.findings = append(j.findings, f) }

func (j *judgement) has(severity evidence.Severity) bool {
	return slices.ContainsFunc(j.findings, func(f evidence.Finding) bool { return f.Severity == severity })
}

// gap is a required check that did not run or saw nothing.
func (j *judgement) gap(repeat int, format string, args ...any) {
	j.add(evidence.Finding{
		Code: "observation-gap", Severity: evidence.Inconclusive, Repeat: repeat, Message: fmt.Sprintf(format, args...), Do: "run it again",
	})
}

// repeat judges what one repeat recorded.
func (j *judgement) repeat(r evidence.Repeat) {
	for _, f := range r.Findings {
		f.Repeat = r.Number
		j.add(f)
	}
	for _, a := range r.Applied {
		if a.Error == "" {
			continue
		}
		f := evidence.Finding{
			Code: "apply-rejected", Severity: evidence.Fail, Object: a.Object.String(), Repeat: r.Number,
			Origin: j.origin(a.Object), Message: a.Error, Do: "mend the object in the repository",
		}
		switch a.Reason {
		case "Conflict":
			f.Code = "apply-conflict"
		case evidence.ReasonTrouble:
			f.Code, f.Severity, f.Do = "cluster-failed", evidence.Inconclusive, "run it again"
		}
		j.add(f)
	}
	for _, c := range r.Containers {
		if c.Restarts > 0 && r.Settled != nil && r.Settled.Ready {
			j.add(evidence.Finding{
				Code: "restarted", Severity: evidence.Warn, Object: c.Pod.String(), Field: "containers[" + c.Name + "]", Repeat: r.Number,
				Origin: j.origin(c.Workload), Message: fmt.Sprintf("it restarted %d times before it settled (%s)", c.Restarts, c.Why), Do: "see its log in the evidence",
			})
		}
	}
	if r.Comparison != nil {
		j.differences(r)
	}
	if c := r.Cleaning; c != nil {
		for _, id := range c.Left {
			j.notClean(r.Number, id, "it is still there, or was changed and stayed so, after the clean-up")
		}
		for _, id := range c.Lost {
			j.notClean(r.Number, id, "it was there before the first repeat and is gone after the clean-up")
		}
	}
	for _, m := range r.Metrics {
		if !m.Observed && r.Ended {
			j.add(evidence.Finding{
				Code: "metric-unobserved", Severity: evidence.Inconclusive, Object: "metric " + m.Name, Repeat: r.Number, Message: m.Why, Do: "run it again",
			})
		}
	}
	j.fixed(r)
}

// notClean is a warning: the next repeat got a new cluster, so that it was clean all the same.
func (j *judgement) notClean(repeat int, id evidence.ID, message string) {
	j.add(evidence.Finding{
		Code: "not-clean", Severity: evidence.Warn, Object: id.String(), Repeat: repeat, Message: message,
		Do: "the next repeat got a new cluster; --isolation cluster gives every repeat its own",
	})
}

func (j *judgement) origin(id evidence.ID) evidence.Origin {
	if j.run.Set != nil {
		if object := j.run.Set.Find(id); object != nil {
			return object.Origin
		}
	}
	return evidence.Origin{}
}

// differences turns each difference of live and Git into a finding.
func (j *judgement) differences(r evidence.Repeat) {
	for _, d := range r.Comparison.Differences {
		f := evidence.Finding{
			Severity: evidence.Fail, Object: d.Object.String(), Field: d.Field, Origin: d.Origin, Repeat: r.Number, Want: d.Git, Got: d.Live,
		}
		by := ""
		if d.Manager != "" {
			by = ", written by " + d.Manager
			if d.Time != "" {
				by += " at " + d.Time
			}
		}
		switch d.Question + " " + d.Change {
		case "object missing":
			f.Code, f.Message, f.Do = "object-missing", "Git declares it, and it is not live", "find what deleted it"
		case "object extra":
			f.Code, f.Message, f.Do = "object-extra", "it is live, and Git does not declare it, nor anything that owns it", "add it to the repository, or find who makes it"
		case "bits changed":
			f.Code, f.Message = "image-digest-mismatch", "it runs "+d.Live+", and the registry proved "+d.Git
			f.Do = "pin the image by digest"
			if !j.pinned(r, d) {
				f.Code = "image-tag-moved"
			}
		case "bits extra":
			f.Code, f.Message, f.Do = "image-unverified", "a container runs an image that no Pod template of the set names: "+d.Live, "find what injects it"
		case "declared removed":
			f.Code, f.Message, f.Do = "drift-changed", "Git declares it, and live lacks it"+by, "put the change into Git, or undo it"
		case "foreign undeclared":
			f.Code, f.Message, f.Do = "drift-foreign-field", "live has "+d.Live+", Git declares nothing, and the server's default is "+orNothing(d.Git)+by, "put the change into Git, or undo it"
		case "foreign added":
			f.Code, f.Message, f.Do = "drift-foreign-field", "live has it, and Git does not declare it"+by, "put the change into Git, or undo it"
		default:
			f.Code, f.Message, f.Do = "drift-changed", "live differs from Git"+by, "put the change into Git, or undo it"
		}
		j.add(f)
	}
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// pinned tells whether the image that a difference is about is named by digest in Git.
func (j *judgement) pinned(r evidence.Repeat, d evidence.Difference) bool {
	for _, c := range r.Containers {
		if c.Pod != d.Object || c.Name != d.Field {
			continue
		}
		for _, image := range j.run.Images {
			if image.Reference == c.Reference {
				return image.Pinned
			}
		}
	}
	return false
}

// fixed checks what the experiments hold fixed: Git and live must agree on it.
func (j *judgement) fixed(r evidence.Repeat) {
	if r.Settled == nil || !r.Settled.Ready {
		return
	}
	for _, e := range j.run.Experiments {
		for _, role := range e.Fixed {
			seen := false
			for _, a := range r.Artifacts {
				if a.Role != role {
					continue
				}
				seen = true
				switch {
				case a.Live == "":
					j.gap(r.Number, "experiment %s holds the %s fixed, and %s was not read", e.Name, role, a.Name)
				case a.Git != a.Live && role != "image": // images have their own question
					j.add(evidence.Finding{
						Code: "fixed-moved", Severity: evidence.Fail, Object: a.Name, Field: role, Repeat: r.Number, Want: a.Git, Got: a.Live,
						Origin: e.Origin, Message: fmt.Sprintf("experiment %s holds the %s fixed, and live is not what Git has", e.Name, role), Do: "find what changed it",
					})
				}
			}
			if !seen {
				j.add(evidence.Finding{
					Code: "metric-unobserved", Severity: evidence.Fail, Object: "experiment " + e.Name, Field: "fixed", Repeat: r.Number, Origin: e.Origin,
					Message: fmt.Sprintf("it holds the %s fixed, and nothing in the set is known as one", role),
					Do:      remedy(role),
				})
			}
		}
	}
}

// remedy says how the set can show what an experiment holds fixed.
func remedy(role string) string {
	if role == "image" {
		return "hold fixed what the set has: no container of it ran"
	}
	return "label the ConfigMap that holds it rebuild-check.dev/artifact: " + role
}

// across compares the repeats with each other: the artifacts that ran must be the same in all.
func (j *judgement) across() {
	if len(j.run.Repeats) < 2 {
		return
	}
	fixed := map[string]string{}
	for _, e := range j.run.Experiments {
		for _, role := range e.Fixed {
			fixed[role] = e.Name
		}
	}
	first := j.run.Repeats[0]
	if first.Settled == nil || !first.Settled.Ready {
		return
	}
	for _, r := range j.run.Repeats[1:] {
		if r.Settled == nil || !r.Settled.Ready {
			continue
		}
		for _, name := range union(first.Artifacts, r.Artifacts) {
			was, is := digests(first.Artifacts, name), digests(r.Artifacts, name)
			if slices.Equal(was, is) {
				continue
			}
			f := evidence.Finding{
				Code: "repeat-differs", Severity: evidence.Fail, Object: name.Name, Field: name.Role, Repeat: r.Number,
				Want: fmt.Sprint(was), Got: fmt.Sprint(is), Message: "it is not what it was in repeat 1", Do: "find what changed it between the repeats",
			}
			if experiment, ok := fixed[name.Role]; ok {
				f.Code, f.Message = "fixed-moved", "experiment "+experiment+" holds it fixed, and it is not what it was in repeat 1"
			}
			j.add(f)
		}
	}
}

// key is an artifact without its digests.
type key struct{ Role, Name string }

func union(lists ...[]evidence.Artifact) []key {
	var keys []key
	for _, list := range lists {
		for _, a := range list {
			if k := (key{a.Role, a.Name}); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func digests(list []evidence.Artifact, name key) []string {
	var result []string
	for _, a := range list {
		if a.Role == name.Role && a.Name == name.Name {
			result = append(result, a.Live)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
