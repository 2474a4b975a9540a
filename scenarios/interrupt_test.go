//go:build e2e

package scenarios

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// TestInterrupt ends runs at ten moments: as stages begin and end, and at times while kind is at work
// and knows of no interrupt.
func TestInterrupt(t *testing.T) {
	moments := []struct {
		name, line string
		after      time.Duration
	}{
		{"as the cluster begins", ": creating", 0},
		{"as the node container starts", ": creating", 700 * time.Millisecond},
		{"as the node boots", ": creating", 2 * time.Second},
		{"as the control plane is made", ": creating", 6 * time.Second},
		{"later in that", ": creating", 11 * time.Second},
		{"as the network is made", ": creating", 16 * time.Second},
		{"as the cluster is there", ": Kubernetes v", 0},
		{"as the set is applied", "repeat 1: apply:", 0},
		{"in the rollout", "repeat 1: apply:", 2 * time.Second},
		{"in the clean-up", "repeat 1: compare:", time.Second},
	}
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			feature(t, m.name, func(t *testing.T) {
				sent := false
				r := do(t, job{repo: repository(t, "day27-rebuild", nil), args: []string{"--rev", "main"}, on: func(line, _ string, process *os.Process) {
					if sent || !strings.Contains(line, m.line) {
						return
					}
					sent = true
					time.AfterFunc(m.after, func() {
						if err := process.Signal(syscall.SIGINT); err != nil {
							t.Errorf("sending INT: %v", err)
						}
					})
				}})
				if r.code != 130 || r.run.Outcome != evidence.Undecided || r.run.Signal != "INT" {
					t.Errorf("exit code %d, %s, signal %q", r.code, r.run.Outcome, r.run.Signal)
				}
			})
		})
	}
}
