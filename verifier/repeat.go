package verifier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/bundle"
	"rebuild-check.dev/rebuild-check/verifier/diagnose"
	"rebuild-check.dev/rebuild-check/verifier/drift"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/experiment"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// repeat rebuilds the set once from clean: apply, settle, observe, compare, clean up, prove clean.
// It is not Ended when a step failed, and then the run stops there.
func (r *run) repeat(ctx context.Context, p *place, number int, last bool) evidence.Repeat {
	repeat := evidence.Repeat{
		Number: number, Cluster: p.cluster.Facts.Name, Namespaces: r.set.Namespaces(), Applied: []evidence.Applied{}, Pods: []evidence.Pod{},
		Containers: []evidence.Container{}, Artifacts: []evidence.Artifact{}, Metrics: []evidence.Metric{}, Seconds: map[string]float64{},
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := make(chan evidence.Change, 256)
	observer := experiment.Observe(r.set, changes, experiment.Options{
		Window: settleWindow, Patience: patience, Limit: r.settleLimit(scenario.Repeats(r.facts.Experiments)),
	})
	raw := bundle.Raw{Number: number}
	defer func() {
		raw.Timeline = observer.Timeline()
		r.result.Raws = append(r.result.Raws, raw)
	}()
	p.client.WatchPods(watching, r.set, changes)
	if !r.apply(ctx, p, &repeat, observer) {
		return repeat
	}
	applied := time.Now()
	if err := p.client.WatchSet(watching, r.set, changes); err != nil {
		r.trouble(ctx, "watching the set", err)
		return repeat
	}
	if !r.settleAndCompare(ctx, p, &repeat, observer, applied, &raw) {
		return repeat
	}
	stop()
	r.clean(ctx, p, &repeat, last)
	repeat.Metrics = experiment.Measure(r.metrics(), repeat)
	repeat.Ended = ctx.Err() == nil
	return repeat
}

// metrics are the names that the experiments ask for, in the collectors' order.
func (r *run) metrics() []string {
	var names []string
	for _, name := range scenario.Metrics {
		for _, e := range r.facts.Experiments {
			if slices.Contains(e.Metrics, name) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// apply sends the set; it is false when an object was refused or the server could not be spoken to.
func (r *run) apply(ctx context.Context, p *place, repeat *evidence.Repeat, observer *experiment.Observer) bool {
	done := r.stage(fmt.Sprintf("repeat %d: apply", repeat.Number))
	begin := time.Now()
	observer.Step("Apply", "")
	err := p.client.CreateNamespaces(ctx, r.created)
	if err == nil {
		repeat.Applied, err = p.client.Apply(ctx, r.applied)
	}
	stubs := r.stubs()
	repeat.Applied = slices.DeleteFunc(repeat.Applied, func(a evidence.Applied) bool { return a.Error == "" && slices.Contains(stubs, a.Object) })
	repeat.Seconds["apply"] = time.Since(begin).Seconds()
	observer.Step("Applied", fmt.Sprintf("%d objects", len(repeat.Applied)))
	refused := 0
	for _, a := range repeat.Applied {
		if a.Error != "" {
			refused++
		}
	}
	if err != nil {
		done("%v", err)
		r.trouble(ctx, "applying the set", err)
		return false
	}
	done("%d objects, %d refused", len(repeat.Applied), refused)
	return refused == 0
}

// settleAndCompare waits until the set has settled and compares live with Git while it stays so. A
// Pod that moves meanwhile makes both be done again, three times at most.
func (r *run) settleAndCompare(ctx context.Context, p *place, repeat *evidence.Repeat, observer *experiment.Observer, applied time.Time, raw *bundle.Raw) bool {
	for range 3 {
		done := r.stage(fmt.Sprintf("repeat %d: rollout", repeat.Number))
		settled := observer.Settle(ctx, applied)
		repeat.Settled = &settled
		repeat.Seconds["rollout"] = settled.Seconds
		if !settled.Ready {
			r.explain(ctx, p, repeat, observer)
			done("did not settle: %s, %d objects pending", settled.Cause, len(settled.Pending))
			return false
		}
		done("%d Pods, ready after %.1f s, held %s", settled.Pods, settled.Seconds, settleWindow)

		done = r.stage(fmt.Sprintf("repeat %d: compare", repeat.Number))
		begin := time.Now()
		r.compare(ctx, p, repeat, observer, raw)
		repeat.Seconds["compare"] = time.Since(begin).Seconds()
		done("%d objects, %d differences", repeat.Comparison.Compared, len(repeat.Comparison.Differences))
		if ctx.Err() != nil {
			return false
		}
		if !observer.CatchUp() {
			return true
		}
		observer.Step("Again", "a Pod moved while live was compared with Git")
	}
	repeat.Findings = append(repeat.Findings, evidence.Finding{
		Code: "not-ready", Severity: evidence.Fail, Message: "it settled three times, and each time a Pod restarted or lost readiness again", Do: "see the timeline of this repeat in the evidence",
	})
	return false
}

// explain collects what is needed to say why, and says it.
func (r *run) explain(ctx context.Context, p *place, repeat *evidence.Repeat, observer *experiment.Observer) {
	repeat.Pods, repeat.Containers = observer.Pods(), observer.Containers()
	for i := range repeat.Containers {
		c := &repeat.Containers[i]
		if c.Ready || (c.Restarts == 0 && c.State != "Running" && c.State != "Error" && c.State != "OOMKilled") {
			continue
		}
		lines, err := p.client.Log(ctx, c.Pod, c.Name, c.Restarts > 0, 20)
		if err != nil {
			lines = []string{"(the log could not be read: " + err.Error() + ")"}
		}
		c.Log = lines
	}
	withTimeline := *repeat
	withTimeline.Timeline = observer.Timeline()
	repeat.Findings = append(repeat.Findings, diagnose.Why(r.set, withTimeline)...)
}

// compare reads the cluster and answers the four questions.
func (r *run) compare(ctx context.Context, p *place, repeat *evidence.Repeat, observer *experiment.Observer, raw *bundle.Raw) {
	listed := make(chan evidence.Inventory, 1)
	go func() { listed <- p.client.Inventory(ctx) }()
	live := p.client.Read(ctx, r.set)
	repeat.Pods, repeat.Containers = observer.Pods(), observer.Containers()
	repeat.Artifacts = observer.Artifacts(live, r.facts.Images, repeat.Containers)
	now := <-listed
	comparison := drift.Compare(drift.Input{
		Set: r.set, Live: live, Before: p.before, Now: now, Images: r.facts.Images, Containers: repeat.Containers,
		Namespaces: r.created, Stubs: r.stubs(), Mask: r.mask,
	})
	repeat.Comparison = &comparison
	raw.Inventory = now
	raw.Live = live
	for i := range raw.Live {
		raw.Live[i].Content = evidence.Redacted(live[i].Content, r.mask)
	}
}

// clean takes the set away and proves that the cluster is what it was. After the last repeat the
// cluster itself is deleted, and there is nothing to prove for.
func (r *run) clean(ctx context.Context, p *place, repeat *evidence.Repeat, last bool) {
	switch {
	case last:
		repeat.Cleaning = &evidence.Cleaning{Skipped: "this was the last repeat: the cluster itself is deleted"}
		return
	case r.opts.Isolation == "cluster":
		repeat.Cleaning = &evidence.Cleaning{Skipped: "every repeat has a cluster of its own", NewCluster: true}
		return
	}
	done := r.stage(fmt.Sprintf("repeat %d: clean", repeat.Number))
	begin := time.Now()
	cleanCtx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	err := p.client.Clean(cleanCtx, r.applied, r.created)
	cleaning := drift.Clean(p.before, p.client.Inventory(ctx))
	if err == nil && len(cleaning.Left) > 0 {
		// Some go a moment later than what they belonged to, such as volumes after their claims.
		waitCtx, cancel := context.WithTimeout(cleanCtx, 20*time.Second)
		err = p.client.AwaitGone(waitCtx, cleaning.Left)
		cancel()
		cleaning = drift.Clean(p.before, p.client.Inventory(ctx))
	}
	if ctx.Err() != nil {
		done("%v", context.Cause(ctx))
		return
	}
	cleaning.NewCluster = err != nil || len(cleaning.Left)+len(cleaning.Lost)+len(cleaning.Unread) > 0
	repeat.Cleaning = &cleaning
	repeat.Seconds["clean"] = time.Since(begin).Seconds()
	switch {
	case err != nil:
		done("not clean: %v", err)
	case cleaning.NewCluster:
		done("not clean: %d left, %d lost, %d unread", len(cleaning.Left), len(cleaning.Lost), len(cleaning.Unread))
	default:
		done("as before the first repeat")
	}
}
