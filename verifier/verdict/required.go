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
	for _, stub := range run.Stubs {
		if stub.Explain {
			j.gap(0, "%s was stubbed, and no finding says that it is missing", stub.Object)
		}
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
	for i := range run.Set.Objects {
		for _, pod := range run.Set.Objects[i].PodSpecs() {
			for _, c := range pod.Containers() {
				if reference, _ := c.Spec["image"].(string); reference != "" && j.image(reference) == nil {
					j.gap(0, "image %s was not resolved", reference)
				}
			}
		}
	}
	for _, f := range j.findings {
		switch f.Severity {
		case evidence.Fail, evidence.Inconclusive, evidence.Warn, evidence.Info:
		default:
			j.gap(f.Repeat, "finding %s has the unknown severity %q", f.Code, f.Severity)
		}
	}
	wanted := scenario.Repeats(run.Experiments)
	if len(run.Repeats) != wanted || wanted == 0 {
		j.gap(0, "%d of %d repeats ran", len(run.Repeats), wanted)
	}
	for i, r := range run.Repeats {
		last := i == len(run.Repeats)-1
		if r.Number != i+1 {
			j.gap(r.Number, "it stands in the place of repeat %d", i+1)
		}
		if !last && r.Cleaning != nil && r.Cleaning.NewCluster && run.Repeats[i+1].Cluster == r.Cluster {
			j.gap(r.Number, "the next repeat was to get a new cluster, and ran in the same")
		}
		j.repeatComplete(r, last)
	}
}

// image is what the registry proved about a reference, or nil.
func (j *judgement) image(reference string) *evidence.Image {
	for i := range j.run.Images {
		if j.run.Images[i].Reference == reference {
			return &j.run.Images[i]
		}
	}
	return nil
}

func (j *judgement) repeatComplete(r evidence.Repeat, last bool) {
	objects := len(j.run.Set.Objects)
	applied := map[evidence.ID]bool{}
	for _, a := range r.Applied {
		if j.run.Set.Find(a.Object) != nil {
			applied[a.Object] = true
		}
	}
	if len(applied) != objects || len(r.Applied) != objects {
		j.gap(r.Number, "%d of %d objects were applied", len(applied), objects)
	}
	switch {
	case r.Settled == nil:
		j.gap(r.Number, "the rollout was not awaited")
	case !r.Settled.Ready:
		j.gap(r.Number, "the rollout did not settle (%s)", r.Settled.Cause)
	case r.Settled.Window <= 0:
		j.gap(r.Number, "there was no settle window")
	case (r.Settled.Expected || j.run.Set.ExpectsPods()) && (r.Settled.Pods == 0 || len(r.Containers) == 0):
		j.gap(r.Number, "the set asks for Pods, and none was seen")
	}
	if r.Settled != nil && r.Settled.Gaps > 0 {
		j.gap(r.Number, "the watches broke %d times, so that a restart may have gone unseen", r.Settled.Gaps)
	}
	for _, c := range r.Containers {
		switch image := j.image(c.Reference); {
		case c.Digest == "" && c.Ready:
			j.gap(r.Number, "%s %s reports no image digest", c.Pod, c.Name)
		case c.Digest != "" && (image == nil || c.Digest != image.Index && c.Digest != image.Manifest && c.Digest != image.Config):
			j.gap(r.Number, "%s %s runs %s, which was not compared with what the registry proved", c.Pod, c.Name, c.Digest)
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
