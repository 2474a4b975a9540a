package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Trouble is an error of the surroundings, never of the revision. Code is the finding code and Do
// the way out.
type Trouble struct {
	Code string
	Do   string
	Err  error
}

func (t *Trouble) Error() string { return t.Err.Error() }
func (t *Trouble) Unwrap() error { return t.Err }

// docker runs the docker client and gives its trimmed standard output. The client has a process
// group of its own, so that a terminal's interrupt does not end a clean-up half way.
func docker(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, lastLine(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// engine is what the Docker engine says of itself.
type engine struct{ version, cgroup string }

func probe(ctx context.Context) (engine, error) {
	out, err := docker(ctx, "", "info", "--format", "{{.ServerVersion}} {{.CgroupVersion}}")
	if err != nil && ctx.Err() != nil {
		return engine{}, err
	}
	version, cgroup, ok := strings.Cut(out, " ")
	if err != nil || !ok || version == "" {
		if err == nil {
			err = fmt.Errorf("docker info: no server answered")
		}
		return engine{}, &Trouble{
			Code: "engine-unavailable", Err: err,
			Do: "start a Docker engine that the docker command on PATH can reach (docker info must answer)",
		}
	}
	return engine{version, cgroup}, nil
}

// ensureImage gives the id of the node image, pulling it where it is not at hand.
func ensureImage(ctx context.Context, image string) (string, error) {
	inspect := func() (string, error) {
		return docker(ctx, "", "image", "inspect", "--format", "{{.Id}}", image)
	}
	if id, err := inspect(); err == nil {
		return id, nil
	}
	if _, err := docker(ctx, "", "pull", "--quiet", image); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", &Trouble{
			Code: "cluster-failed", Err: fmt.Errorf("node image %s is not at hand and cannot be pulled: %w", image, err),
			Do: "name one that is there with --node-image or REBUILD_CHECK_NODE_IMAGE",
		}
	}
	return inspect()
}
