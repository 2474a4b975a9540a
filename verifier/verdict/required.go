package verdict

import (
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// nothingSkipped is the guard against a pass by accident: every check that a pass stands on must
// have run, have seen something, and have held in every repeat. Failures were told elsewhere; here
// is only what was not looked at.
func (j *judgement) nothingSkipped() {
	run := j.run
	switch {
	case run.Revision == nil || run.Revision.Commit == "" || run.Revision.Tree == "":
		j.gap(0, "the revision was not resolved")
		return
	case run.Set == nil || len(run.Set.Objects) == 0:
		j.gap(0, "nothing was rendered")
		return
	case len(run.Experiments) == 0:
		j.gap(0, "no experiment was read")
		return
	case !run.ImagesAsked:
		j.gap(0, "the images were not resolved")
	}
	for _, image := range run.Images {
		switch {
		case !image.Resolved():
			j.gap(0, "image %s was not resolved", image.Reference)
		case !image.Pinned && image.After == "":
			j.gap(0, "image %s was not resolved again after the run", image.Reference)
		case !image.Pinned && image.After != image.Top():
			j.gap(0, "image %s resolved to another digest after the run", image.Reference)
		}
	}
	wanted := scenario.Repeats(run.Experiments)
	if len(run.Repeats) != wanted || wanted == 0 {
		j.gap(0, "%d of %d repeats ran", len(run.Repeats), wanted)
	}
	for i, r := range run.Repeats {
		j.repeatComplete(r, i == len(run.Repeats)-1)
	}
}

func (j *judgement) repeatComplete(r evidence.Repeat, last bool) {
	objects := len(j.run.Set.Objects)
	if len(r.Applied) != objects {
		j.gap(r.Number, "%d of %d objects were applied", len(r.Applied), objects)
	}
	switch {
	case r.Settled == nil:
		j.gap(r.Number, "the rollout was not awaited")
	case !r.Settled.Ready:
		j.gap(r.Number, "the rollout did not settle (%s)", r.Settled.Cause)
	case r.Settled.Window <= 0:
		j.gap(r.Number, "there was no settle window")
	case r.Settled.Expected && (r.Settled.Pods == 0 || len(r.Containers) == 0):
		j.gap(r.Number, "the set asks for Pods, and none was seen")
	}
	if r.Settled != nil && r.Settled.Gaps > 0 {
		j.gap(r.Number, "the watches broke %d times, so that a restart may have gone unseen", r.Settled.Gaps)
	}
	for _, c := range r.Containers {
		if c.Digest == "" && c.Ready {
			j.gap(r.Number, "%s %s reports no image digest", c.Pod, c.Name)
		}
	}
	switch c := r.Comparison; {
	case c == nil:
		j.gap(r.Number, "live was not compared with Git")
	case c.Compared != objects:
		j.gap(r.Number, "%d of %d objects were compared", c.Compared, objects)
	case c.Listed == 0:
		j.gap(r.Number, "nothing was listed to look for extra objects")
	}
	if r.Comparison != nil {
		for _, unread := range r.Comparison.Unread {
			j.gap(r.Number, "unread: %s", unread)
		}
	}
	switch c := r.Cleaning; {
	case c == nil:
		j.gap(r.Number, "the clean-up was not proven")
	case c.Skipped != "" && !last && !c.NewCluster:
		j.gap(r.Number, "the clean-up was skipped (%s)", c.Skipped)
	case c.Skipped == "" && c.Listed == 0:
		j.gap(r.Number, "nothing was listed to prove the clean-up")
	case !c.NewCluster && !last && len(c.Left)+len(c.Lost)+len(c.Unread) > 0:
		j.gap(r.Number, "the next repeat began in a cluster that was not proven clean")
	}
	for _, e := range j.run.Experiments {
		for _, name := range e.Metrics {
			if !slices.ContainsFunc(r.Metrics, func(m evidence.Metric) bool { return m.Name == name && m.Observed }) {
				j.gap(r.Number, "metric %s was not observed", name)
			}
		}
	}
	if !r.Ended {
		j.gap(r.Number, "the repeat did not run to its end")
	}
}

// NotCovered is what no outcome of this run speaks about.
func NotCovered() []string {
	return []string{
		"whether the software is safe, fast or right, and whether production equals Git",
		"load balancers, cloud identity and storage of a cloud: a kind cluster has none",
		"GPUs and other devices, and node platforms other than this host's",
		"what the containers fetch from outside the cluster while they run",
		"data that volumes must hold before the first start",
	}
}
