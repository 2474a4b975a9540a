// Package verifier proves that a revision can be rebuilt from the repository alone, or names the
// piece that is missing. Verify is the one place where the stages meet.
package verifier

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/bundle"
	"rebuild-check.dev/rebuild-check/verifier/cluster"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/images"
	"rebuild-check.dev/rebuild-check/verifier/render"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
	"rebuild-check.dev/rebuild-check/verifier/verdict"
)

// Result is the facts of a run, and what each repeat read from the cluster.
type Result struct {
	Run  evidence.Run
	Raws []bundle.Raw
	// Kept names the kubeconfig of each cluster that was kept.
	Kept []string
}

// Verify checks out the revision, renders it, resolves every image digest, creates a throwaway kind
// cluster and a clean namespace, applies the manifests, runs the declared experiment as often as it
// says, and compares the live state with Git. Whatever happens, the facts come back judged, and what
// was made is removed. The error is a *UsageError, and then nothing was created.
func Verify(ctx context.Context, opts Options) (*Result, error) {
	r := newRun(opts)
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, errTimedOut)
	defer cancel()

	if err := r.checkOut(ctx); err != nil {
		return nil, err
	}
	if r.sound(ctx) {
		r.rebuild(ctx)
	}
	r.judge(ctx)
	return &r.result, nil
}

var errTimedOut = errors.New("the timeout passed")

// run is a run under way.
type run struct {
	opts   Options
	start  time.Time
	result Result
	facts  *evidence.Run
	// set is the rendered set with its secrets; the facts hold a redacted copy.
	set *evidence.Set
	// created are the namespaces that the run itself provides.
	created []string
	// inputs are declared to come from outside; applied is the set with the stubs of the run; covered are
	// the findings that stubs let the run pass, to find the next ones.
	inputs  []scenario.Input
	applied *evidence.Set
	covered map[evidence.Finding]bool
	key     [32]byte
	mutex   sync.Mutex
}

func newRun(opts Options) *run {
	r := &run{opts: opts, start: time.Now(), covered: map[evidence.Finding]bool{}}
	r.facts = &r.result.Run
	*r.facts = evidence.Run{
		SchemaVersion: evidence.SchemaVersion, Tool: opts.Tool, ID: cluster.NewName(), Started: r.start.UTC(),
		Request: evidence.Request{
			Rev: opts.Rev, Path: opts.Path, Namespace: opts.Namespace, Nodes: opts.Nodes, Isolation: opts.Isolation, Timeout: opts.Timeout.Seconds(),
		},
		Images: []evidence.Image{}, Clusters: []evidence.Cluster{}, Repeats: []evidence.Repeat{}, Stages: []evidence.Stage{}, Found: []evidence.Finding{},
		NotCovered: verdict.NotCovered(),
	}
	for _, m := range opts.Mirrors {
		r.facts.Request.Mirrors = append(r.facts.Request.Mirrors, m.String())
	}
	rand.Read(r.key[:]) // never fails: crypto/rand
	return r
}

// mask stands in for a secret value: a hash keyed for this run, so that values can be told apart and
// not be guessed.
func (r *run) mask(value string) string {
	mac := hmac.New(sha256.New, r.key[:])
	mac.Write([]byte(value))
	return "hmac:" + hex.EncodeToString(mac.Sum(nil)[:8])
}

// stage tells that a stage begins; the function it returns tells that it ended, with a note.
func (r *run) stage(name string) func(format string, args ...any) {
	s := evidence.Stage{Name: name, Start: time.Since(r.start).Seconds(), Seconds: -1}
	r.opts.Progress(s)
	return func(format string, args ...any) {
		s.Seconds, s.Note = time.Since(r.start).Seconds()-s.Start, fmt.Sprintf(format, args...)
		r.mutex.Lock()
		r.facts.Stages = append(r.facts.Stages, s)
		r.mutex.Unlock()
		r.opts.Progress(s)
	}
}

func (r *run) found(findings ...evidence.Finding) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.facts.Found = append(r.facts.Found, findings...)
}

// trouble records an error of the surroundings. When ctx has ended, that is the reason, and it is
// told once, by judge.
func (r *run) trouble(ctx context.Context, stage string, err error) {
	if ctx.Err() == nil {
		r.found(trouble(stage, err))
	}
}

// sound tells whether the run can go on: the context lives and nothing found so far stops it; what a
// stub covers decides the outcome and does not.
func (r *run) sound(ctx context.Context) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, f := range r.facts.Found {
		if f.Severity == evidence.Fail && !r.covered[f] || f.Severity == evidence.Inconclusive {
			return false
		}
	}
	return ctx.Err() == nil && r.set != nil
}

// checkOut resolves and renders the revision, reads the experiments in it, and asks of the set alone
// what is missing. It creates nothing.
func (r *run) checkOut(ctx context.Context) error {
	set, err := r.render(ctx)
	if err != nil || set == nil {
		return err
	}
	experiments, err := scenario.Experiments(set)
	if err != nil {
		return &UsageError{err}
	}
	r.facts.Experiments = experiments
	r.place(set)

	r.close()
	return nil
}

// place settles which namespace the set goes to, and which the run must provide.
func (r *run) place(set *evidence.Set) {
	declared := map[string]bool{"default": true}
	used := map[string]bool{}
	for _, o := range set.Objects {
		if o.Kind == "Namespace" && o.Group == "" {
			declared[o.Name], used[o.Name] = true, true
		} else if o.Namespace != "" {
			used[o.Namespace] = true
		}
	}
	target := r.opts.Namespace
	if target == "" {
		target = DefaultNamespace
		if len(used) == 1 && !strings.Contains(set.Renderer, render.Helm) { // a chart was told DefaultNamespace
			for only := range used {
				target = only
			}
		}
	}
	set.Place(target)
	for i := 1; i < len(set.Objects); i++ {
		if a, b := set.Objects[i-1], set.Objects[i]; a.ID == b.ID {
			r.duplicate(a, b)
		}
	}
	r.set = set
	r.facts.Request.Namespace = target
	r.facts.Set = set.Redacted(r.mask)
	for _, namespace := range set.Namespaces() {
		if namespace == target && !declared[target] {
			r.created = []string{target}
		}
	}
}

// duplicate records two objects that are one once they are in their namespace; the renderer has told
// of those that are one in the text.
func (r *run) duplicate(a, b evidence.Object) {
	for _, f := range r.facts.Found {
		if f.Code == "duplicate-object" && (f.Origin == a.Origin || f.Origin == b.Origin) {
			return
		}
	}
	r.found(evidence.Finding{
		Code: "duplicate-object", Severity: evidence.Fail, Object: a.ID.String(), Origin: b.Origin,
		Message: "declared twice, also at " + a.Origin.String() + ", once the object without a namespace is in its own", Do: "remove one of the two",
	})
}

// rebuild raises the cluster while the images are resolved, runs the repeats in it, and asks the
// registries again when they are over.
func (r *run) rebuild(ctx context.Context) {
	raised, cancel := context.WithCancel(ctx)
	defer cancel()
	coming := r.raise(raised)

	done := r.stage("images")
	lookup := images.Options{Mirrors: r.opts.Mirrors, Platform: platform()}
	locked, findings := images.Resolve(ctx, images.References(r.set), lookup)
	r.facts.Images, r.facts.ImagesAsked = locked, ctx.Err() == nil
	r.found(findings...)
	resolved := 0
	for _, image := range locked {
		if image.Resolved() {
			resolved++
		}
	}
	done("%d of %d resolved", resolved, len(locked))
	if !r.sound(ctx) {
		cancel()
		r.leave(ctx, <-coming)
		return
	}
	r.repeats(ctx, <-coming)
	if ctx.Err() == nil && len(r.facts.Repeats) > 0 {
		r.facts.Images, findings = images.Recheck(ctx, r.facts.Images, lookup)
		r.found(findings...)
	}
}

// judge computes the outcome from the facts.
func (r *run) judge(ctx context.Context) {
	signal, timedOut := ended(ctx, r.opts.Timeout)
	r.facts.Signal = signal
	if timedOut != nil {
		r.found(*timedOut)
	}
	r.facts.Findings, r.facts.Outcome, r.facts.ExitCode = verdict.Judge(*r.facts)
}
