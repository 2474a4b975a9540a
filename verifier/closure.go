package verifier

import (
	"context"
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/closure"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Closure checks out and renders the revision as Verify does, asks of the set alone what it needs and
// lacks, and stops there. Trouble of the surroundings is a finding. The error is a *UsageError.
func Closure(ctx context.Context, opts Options) (evidence.Closure, error) {
	r := newRun(opts)
	set, err := r.render(ctx)
	if err != nil {
		return evidence.Closure{}, err
	}
	result := evidence.Closure{SchemaVersion: evidence.SchemaVersion, References: []evidence.Reference{}}
	if set != nil {
		r.place(set)
		result.Objects, result.References = len(set.Objects), append(result.References, r.close()...)
	}
	result.Revision, result.Path, result.Namespace = r.facts.Revision, r.facts.Request.Path, r.facts.Request.Namespace
	result.Findings = r.alone(ctx)
	return result, nil
}

// close asks of the set alone what it needs and lacks, and what in it is refused.
func (r *run) close() []evidence.Reference {
	done := r.stage("closure")
	opts := closure.Options{Created: r.created, Target: r.facts.Request.Namespace, Inputs: r.inputs}
	graph := closure.Graph(r.set, opts)
	findings := slices.Concat(closure.Refused(r.set), closure.Findings(r.set, graph), closure.Inputs(r.set, graph, opts))
	r.found(findings...)
	r.stub(graph, opts)
	done("%d findings, for namespace %s", len(findings), r.facts.Request.Namespace)
	return graph
}

// alone ends a command that reads and creates nothing: all that was found, in order.
func (r *run) alone(ctx context.Context) []evidence.Finding {
	if signal, _ := ended(ctx, r.opts.Timeout); ctx.Err() != nil && signal == "" {
		r.found(evidence.Finding{Code: "environment-failed", Severity: evidence.Inconclusive, Message: ctx.Err().Error()})
	}
	evidence.SortFindings(r.facts.Found)
	return r.facts.Found
}
