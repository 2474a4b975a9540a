package source

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	statusLimit = 5 * time.Second
	maxDirty    = 10
)

// startStatus asks git, if it is there, for uncommitted paths while the tree is read. The answer is
// information only: trouble, or a work tree that takes too long, gives none. The function returned
// waits for the answer, stop ends the wait.
func startStatus(ctx context.Context, work string) (wait func() []string, stop context.CancelFunc) {
	ctx, stop = context.WithTimeout(ctx, statusLimit)
	var paths []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The options keep git from running a hook of the repository and from writing its index.
		cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
			"status", "--porcelain", "-z", "--ignore-submodules=all", "--no-renames")
		cmd.Dir = work
		cmd.WaitDelay = time.Second
		for _, variable := range os.Environ() {
			if !strings.HasPrefix(variable, "GIT_") {
				cmd.Env = append(cmd.Env, variable)
			}
		}
		out, err := cmd.Output()
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(string(out), "\x00") {
			if len(line) > 3 && len(paths) < maxDirty {
				paths = append(paths, line[3:])
			}
		}
	}()
	return func() []string { <-done; return paths }, stop
}
