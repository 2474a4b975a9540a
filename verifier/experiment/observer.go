// Package experiment follows one repeat: it turns what the watches deliver into one timeline, and
// says when the set has settled or never will.
package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Options bound the wait.
type Options struct {
	// Window is how long everything must hold: no Pod's readiness changes, no restart count rises.
	Window time.Duration
	// Limit is how long the set may take to settle, Window included.
	Limit time.Duration
	// Patience is how long a state that rarely mends itself (an image that cannot be pulled, a
	// missing key, no node that fits) may last before the wait ends early.
	Patience time.Duration
}

// Observer holds the last state of every object that one repeat's watches delivered.
type Observer struct {
	set     *evidence.Set
	changes <-chan evidence.Change
	options Options
	start   time.Time

	wanted  map[evidence.ID]bool
	states  map[evidence.ID]map[string]any
	pending map[evidence.ID]evidence.Pending
	// hopeless remembers since when an object is in a state that rarely mends itself.
	hopeless map[evidence.ID]time.Time
	failed   bool
	// moved is when a Pod last appeared, went, changed readiness or restarted; current is when
	// pending last became empty.
	moved, current time.Time
	gaps           int
	timeline       []evidence.Event
}

// Observe prepares to follow the set; Seconds in the timeline count from now.
func Observe(set *evidence.Set, changes <-chan evidence.Change, options Options) *Observer {
	now := time.Now()
	o := &Observer{
		set: set, changes: changes, options: options, start: now, moved: now,
		wanted: map[evidence.ID]bool{}, states: map[evidence.ID]map[string]any{},
		pending: map[evidence.ID]evidence.Pending{}, hopeless: map[evidence.ID]time.Time{},
	}
	for _, object := range set.Objects {
		o.wanted[object.ID] = true
		o.pending[object.ID] = evidence.Pending{Object: object.ID, Status: "Unseen", Why: "no watch has delivered it"}
	}
	return o
}

// Settle waits until every object of the set is current and every Pod ready, and it has held for
// the window; or until an object has failed for good, or the limit or ctx ends. from is when the
// apply ended.
func (o *Observer) Settle(ctx context.Context, from time.Time) evidence.Settled {
	limit := time.NewTimer(o.options.Limit)
	defer limit.Stop()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	cause := ""
	for cause == "" {
		now := time.Now()
		next := now.Add(time.Hour)
		switch { // the window begins with the last movement of a Pod; being current may come later
		case len(o.pending) == 0 && now.Sub(o.moved) >= o.options.Window:
			cause = "ready"
			continue
		case len(o.pending) == 0:
			next = o.moved.Add(o.options.Window)
		case o.failed:
			cause = "failed"
			continue
		}
		for _, since := range o.hopeless {
			if end := since.Add(o.options.Patience); !end.After(now) {
				cause = "failed"
			} else if end.Before(next) {
				next = end
			}
		}
		if cause != "" {
			continue
		}
		wake.Reset(time.Until(next))
		select {
		case change := <-o.changes:
			o.see(change)
		case <-wake.C:
		case <-limit.C:
			cause = "timeout"
		case <-ctx.Done():
			cause = "interrupted"
		}
	}
	settled := evidence.Settled{
		Ready: cause == "ready", Window: o.options.Window.Seconds(), Seconds: time.Since(from).Seconds(),
		Pods: o.standing(), Expected: o.set.ExpectsPods(), Gaps: o.gaps,
	}
	if settled.Ready {
		ready := o.current
		if o.moved.After(ready) {
			ready = o.moved
		}
		settled.Seconds = max(0, ready.Sub(from).Seconds())
	} else {
		settled.Cause = cause
		settled.Pending = slices.SortedFunc(maps.Values(o.pending), func(a, b evidence.Pending) int { return a.Object.Compare(b.Object) })
	}
	return settled
}

// CatchUp takes in what the watches have delivered since Settle returned, and tells whether a Pod
// moved or an object stopped being current in the meantime.
func (o *Observer) CatchUp() (moved bool) {
	before := o.moved
	for {
		select {
		case change := <-o.changes:
			o.see(change)
		default:
			return o.moved != before || len(o.pending) != 0
		}
	}
}

// see takes in one change.
func (o *Observer) see(change evidence.Change) {
	if change.Gap != "" {
		o.gaps++
		o.note("gap", evidence.ID{}, "Gap", change.Gap)
		return
	}
	id := evidence.IDOf(change.Content)
	before := o.states[id]
	if change.Gone {
		delete(o.states, id)
	} else {
		o.states[id] = change.Content
	}
	switch {
	case id.Kind == "Event" && (id.Group == "" || id.Group == "events.k8s.io"):
		delete(o.states, id)
		o.seeEvent(change)
		return
	case id.Kind == "Pod" && id.Group == "":
		o.seePod(id, before, change)
	}
	if o.wanted[id] || o.isPod(id) {
		o.judge(id, change)
	}
}

func (o *Observer) isPod(id evidence.ID) bool { return id.Kind == "Pod" && id.Group == "" }

// judge decides whether an object is current.
func (o *Observer) judge(id evidence.ID, change evidence.Change) {
	wasPending := len(o.pending) > 0
	delete(o.pending, id)
	var rarely bool
	switch {
	case !change.Gone:
		status, why, failed, hopeless := state(id, change.Content)
		if status != current {
			o.pending[id] = evidence.Pending{Object: id, Status: status, Why: why}
		}
		o.failed = o.failed || failed
		rarely = hopeless
	case o.wanted[id]:
		o.pending[id] = evidence.Pending{Object: id, Status: "Gone", Why: "it was deleted"}
	}
	if _, since := o.hopeless[id]; rarely && !since {
		o.hopeless[id] = time.Now()
	} else if !rarely {
		delete(o.hopeless, id)
	}
	if wasPending && len(o.pending) == 0 {
		o.current = time.Now()
		o.note("step", evidence.ID{}, "Current", "every object is current and every Pod ready")
	}
}

// Step puts a step of the run itself on the timeline.
func (o *Observer) Step(reason, message string) { o.note("step", evidence.ID{}, reason, message) }

func (o *Observer) note(kind string, id evidence.ID, reason, message string) {
	o.timeline = append(o.timeline, evidence.Event{Seconds: time.Since(o.start).Seconds(), Kind: kind, Object: id, Reason: reason, Message: message})
}

// Timeline is everything that happened so far, in order.
func (o *Observer) Timeline() []evidence.Event { return o.timeline }

// pods are the last states of the Pods that are there, sorted by name.
func (o *Observer) pods() []map[string]any {
	var ids []evidence.ID
	for id := range o.states {
		if o.isPod(id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, evidence.ID.Compare)
	list := make([]map[string]any, len(ids))
	for i, id := range ids {
		list[i] = o.states[id]
	}
	return list
}

// standing counts the Pods that are ready or have succeeded.
func (o *Observer) standing() (n int) {
	for _, pod := range o.pods() {
		if _, waits := o.pending[evidence.IDOf(pod)]; !waits {
			n++
		}
	}
	return n
}

func (o *Observer) seeEvent(change evidence.Change) {
	if change.Gone {
		return
	}
	c := change.Content
	about, _ := c["involvedObject"].(map[string]any)
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	id := evidence.ID{Kind: text(about, "kind"), Namespace: text(about, "namespace"), Name: text(about, "name")}
	id.Group, _ = evidence.SplitAPIVersion(text(about, "apiVersion"))
	message := text(c, "message")
	if count, ok := c["count"].(int64); ok && count > 1 {
		message = fmt.Sprintf("%s (%d times)", message, count)
	}
	o.note("event", id, text(c, "reason"), message)
}
