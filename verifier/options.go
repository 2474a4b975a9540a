package verifier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/cluster"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/render"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
	"rebuild-check.dev/rebuild-check/verifier/source"
)

// Options are what the user asked for.
type Options struct {
	// Rev names the revision, Repo a folder or URL, Path a folder inside the revision; an empty Path
	// means the paths that the revision's rebuild-check.yaml names, or else the root.
	Rev, Repo, Path string
	// Namespace is where objects that name none go; empty means what rebuild-check.yaml says, or the
	// only one that the set uses, or else DefaultNamespace.
	Namespace string
	// Values, Set and Release are for Helm charts: files of the revision from its root, KEY=VALUE, and
	// the release's name. They win over those of rebuild-check.yaml.
	Values, Set []string
	Release     string
	NodeImage   string
	// Nodes is how many the cluster has; 0 means what rebuild-check.yaml says, or else one.
	Nodes   int
	Mirrors []scenario.Mirror
	// Isolation is "namespace" (one cluster a run) or "cluster" (one a repeat).
	Isolation   string
	Timeout     time.Duration
	KeepCluster bool
	// ExplainAll lets the run go on past missing Secrets, ConfigMaps and keys, with stubs, to find what
	// else is missing.
	ExplainAll bool
	// Progress is told of every stage when it begins (Seconds < 0) and when it ends. It may be called
	// from several goroutines.
	Progress func(evidence.Stage)
	// Tool is the name and version of this program.
	Tool string
}

// DefaultNamespace takes objects that name none, where the set uses several namespaces or none.
const DefaultNamespace = "rebuild-check"

const (
	// settleWindow is how long every Pod must stay as it is: longer than the default readiness period
	// of a crash that follows at once, short against any rollout.
	settleWindow = 5 * time.Second
	// patience is how long a state that rarely mends itself may last.
	patience = 20 * time.Second
	// cleanLimit bounds one clean-up of a namespace, closeLimit the removal of a cluster.
	cleanLimit = 90 * time.Second
	closeLimit = 60 * time.Second
)

// UsageError is a mistake in the call or in what the revision declares: exit code 2, and nothing was
// created.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal string }

func (e *Interrupted) Error() string { return "interrupted by " + e.Signal }

// isUsage tells mistakes of the call from trouble.
func isUsage(err error) bool {
	var usage *source.UsageError
	var path *render.PathError
	var config configError
	return errors.As(err, &usage) || errors.As(err, &path) || errors.As(err, &config)
}

// trouble turns an error of the surroundings into its finding. A context that ended is not one: the
// signal or the deadline is told once, for the whole run.
func trouble(stage string, err error) evidence.Finding {
	finding := evidence.Finding{Code: "cluster-failed", Severity: evidence.Inconclusive, Message: fmt.Sprintf("%s: %v", stage, err), Do: "run it again"}
	var known *cluster.Trouble
	var damaged *source.IntegrityError
	switch {
	case errors.As(err, &known):
		finding.Code, finding.Do = known.Code, known.Do
	case errors.As(err, &damaged):
		finding.Code, finding.Do = "object-integrity", "see git fsck"
	case stage == "revision" || stage == "render":
		finding.Code = "environment-failed"
	}
	return finding
}

// ended is the finding for a context that ended the run, if one did.
func ended(ctx context.Context, timeout time.Duration) (signal string, finding *evidence.Finding) {
	var interrupted *Interrupted
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return "", nil
	case errors.As(cause, &interrupted):
		return interrupted.Signal, nil
	default:
		return "", &evidence.Finding{
			Code: "timed-out", Severity: evidence.Inconclusive, Message: fmt.Sprintf("the run took longer than %s", timeout), Do: "allow more with --timeout",
		}
	}
}
