package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		info    string
		want    engine
		trouble []string
	}{
		"cgroup v2":     {"echo 29.0.1 2", engine{"29.0.1", "2"}, nil},
		"cgroup v1":     {"echo 24.0.7 1", engine{"24.0.7", "1"}, nil},
		"no engine":     {"echo Cannot connect to the Docker daemon >&2; exit 1", engine{}, []string{"Cannot connect to the Docker daemon", "docker info must answer"}},
		"client alone":  {"echo", engine{}, []string{"no server answered", "docker info must answer"}},
		"empty version": {"echo ' 2'", engine{}, []string{"no server answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			newFake(t, map[string]string{"info": c.info})
			got, err := probe(t.Context())
			if c.trouble != nil {
				wantTrouble(t, err, "engine-unavailable", c.trouble...)
			} else if err != nil || got != c.want {
				t.Errorf("engine %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	t.Run("no client", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := probe(t.Context())
		wantTrouble(t, err, "engine-unavailable", "executable file not found")
	})
}

// A context that ends is no trouble of the engine, and a client that hangs does not hold it up.
func TestCancelledClientIsNoTrouble(t *testing.T) {
	hang := "exec sleep 60"
	newFake(t, map[string]string{"info": hang, "image": "exit 1", "pull": hang})
	for name, call := range map[string]func(context.Context) error{
		"probe":       func(ctx context.Context) error { _, err := probe(ctx); return err },
		"ensureImage": func(ctx context.Context) error { _, err := ensureImage(ctx, "node:1"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begin := time.Now()
			err := call(ctx)
			var trouble *Trouble
			if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &trouble) {
				t.Errorf("error %v, want that of the context alone", err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestEnsureImage(t *testing.T) {
	const inspect, pull = "image inspect --format {{.Id}} node:1", "pull --quiet node:1"
	for name, c := range map[string]struct {
		image, pull string
		trouble     []string
		calls       []string
	}{
		"there":            {"echo sha256:aa", "exit 1", nil, []string{inspect}},
		"pulled":           {"[ -f pulled ] || exit 1\necho sha256:aa", "touch pulled", nil, []string{inspect, pull, inspect}},
		"cannot be pulled": {"exit 1", "echo no route to host >&2; exit 1", []string{"node image node:1", "no route to host", "--node-image", "REBUILD_CHECK_NODE_IMAGE"}, []string{inspect, pull}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, map[string]string{"image": c.image, "pull": c.pull})
			id, err := ensureImage(t.Context(), "node:1")
			if c.trouble != nil {
				wantTrouble(t, err, "cluster-failed", c.trouble...)
			} else if err != nil || id != "sha256:aa" {
				t.Errorf("id %q, %v", id, err)
			}
			if diff := cmp.Diff(c.calls, f.calls("")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
