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

// status asks git, if it is there, for uncommitted paths. The answer is information only: trouble, or
// a work tree that takes too long, gives none.
func status(ctx context.Context, work string) []string {
	ctx, stop := context.WithTimeout(ctx, statusLimit)
	defer stop()
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
		return nil
	}
	var paths []string
	for line := range strings.SplitSeq(string(out), "\x00") {
		if len(line) > 3 && len(paths) < maxDirty {
			paths = append(paths, line[3:])
		}
	}
	return paths
}
