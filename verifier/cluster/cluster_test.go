package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const filter = "--filter label=io.x-k8s.kind.cluster=rbc-x"

func made(t *testing.T) *Cluster {
	t.Helper()
	folder := filepath.Join(os.TempDir(), "rbc-x-1")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kubeconfig"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Cluster{folder: folder, Facts: evidence.Cluster{Name: "rbc-x"}}
}

func TestClose(t *testing.T) {
	list := "ps --all --no-trunc " + filter + " --format {{.ID}}"
	for name, c := range map[string]struct {
		scripts  map[string]string
		calls    []string
		leftover bool
	}{
		"two containers":     {map[string]string{"ps": "echo aa; echo bb"}, []string{list, "rm --force --volumes aa bb"}, false},
		"none any more":      {nil, []string{list}, false},
		"rm fails":           {map[string]string{"ps": "echo aa", "rm": "echo device busy >&2; exit 1"}, []string{list, "rm --force --volumes aa"}, true},
		"the engine is down": {map[string]string{"ps": "echo device busy >&2; exit 1"}, []string{list}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.scripts)
			err := made(t).Close(t.Context())
			if diff := cmp.Diff(c.calls, f.calls("")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if !c.leftover {
				if err != nil {
					t.Error(err)
				}
				wantEmptyTemp(t)
				return
			}
			var left *Leftover
			if !errors.As(err, &left) {
				t.Fatalf("error %v, want a *Leftover", err)
			}
			if want := "docker ps -aq " + filter + " | xargs docker rm -fv"; left.Command != want {
				t.Errorf("command %q, want %q", left.Command, want)
			}
			if !strings.Contains(err.Error(), "device busy") || !strings.Contains(err.Error(), left.Command) {
				t.Errorf("error %q lacks the reason or the command", err)
			}
		})
	}
}

// engineUp are the answers that kind needs to come as far as docker run.
var engineUp = map[string]string{
	"info": `case "$3" in
'{{json .}}') echo '{"CgroupVersion":"2","CgroupDriver":"systemd","MemoryLimit":true,"PidsLimit":true,"CPUShares":true}' ;;
'{{.ServerVersion}} {{.CgroupVersion}}') echo 29.0.1 2 ;;
esac`,
	"image":   "echo sha256:aa",
	"network": "[ $2 != ls ] || echo kind-network",
	// A container is there from docker run on until docker rm.
	"ps": "[ ! -f started ] || [ -f removed ] || echo c1",
	"rm": "touch removed",
}

func with(scripts map[string]string, name, script string) map[string]string {
	all := map[string]string{name: script}
	for key, value := range scripts {
		if key != name {
			all[key] = value
		}
	}
	return all
}

// awaitFile waits until the fake has made a file.
func awaitFile(ctx context.Context, f *fake, name string) {
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(f.folder, name)); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestCreateCancelledWhileKindWaits(t *testing.T) {
	// As with a real engine, docker run ends when its container is removed.
	f := newFake(t, with(engineUp, "run", "touch started\nwhile [ ! -f removed ]; do sleep 0.05; done\necho container is gone >&2\nexit 1"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { awaitFile(ctx, f, "started"); cancel() }()
	begin := time.Now()
	c, err := Create(ctx, "rbc-x", Options{NodeImage: "node:1", Nodes: 1})
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	var left *Leftover
	if c != nil || !errors.Is(err, context.Canceled) || errors.As(err, &left) {
		t.Errorf("cluster %v, error %v; want that of the context, and nothing left", c, err)
	}
	if diff := cmp.Diff([]string{"rm --force --volumes c1"}, f.calls("rm")); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
	wantEmptyTemp(t)
}

func TestCreateFails(t *testing.T) {
	f := newFake(t, with(engineUp, "run", "touch started\necho no space left on device >&2\nexit 1"))
	c, err := Create(t.Context(), "rbc-x", Options{NodeImage: "node:1", Nodes: 1})
	if c != nil {
		t.Errorf("cluster %v", c)
	}
	wantTrouble(t, err, "cluster-failed", "creating the kind cluster", "no space left on device", "kind create cluster --image node:1")
	if got := f.calls("rm"); len(got) != 1 {
		t.Errorf("removals %q, want one", got)
	}
	if got := f.calls("run"); len(got) != 1 || !strings.Contains(got[0], "io.x-k8s.kind.cluster=rbc-x") || !strings.HasSuffix(got[0], " node:1") {
		t.Errorf("docker run was called as %q", got)
	}
	wantEmptyTemp(t)
}

func TestCreateFailsAndLeavesSomething(t *testing.T) {
	scripts := with(with(engineUp, "run", "touch started\nexit 1"), "rm", "echo device busy >&2\nexit 1")
	newFake(t, scripts)
	_, err := Create(t.Context(), "rbc-x", Options{NodeImage: "node:1", Nodes: 1})
	var left *Leftover
	if !errors.As(err, &left) || !strings.Contains(left.Command, filter) {
		t.Errorf("error %v, want a *Leftover with the command", err)
	}
	wantTrouble(t, err, "cluster-failed")
}

// An engine that hangs must not hold a run up for ever: the clean-up has a limit, and what may still
// come is named.
func TestAbortGivesUp(t *testing.T) {
	for name, scripts := range map[string]map[string]string{
		"docker run hangs": nil,
		"docker ps hangs":  {"ps": "exec sleep 60"},
		"docker rm fails":  {"ps": "echo aa", "rm": "exit 1"},
	} {
		t.Run(name, func(t *testing.T) {
			newFake(t, scripts)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			begin := time.Now()
			err := made(t).abort(ctx, make(chan error))
			var left *Leftover
			if !errors.As(err, &left) || !strings.Contains(left.Command, filter) {
				t.Errorf("error %v, want a *Leftover with the command", err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// What kind makes after the first removal is removed too.
func TestAbortRemovesUntilKindHasGivenUp(t *testing.T) {
	f := newFake(t, map[string]string{
		"ps": "[ -f started ] || exit 0\n[ -f removed ] || echo late",
		"rm": "touch removed",
	})
	done := make(chan error, 1)
	go func() {
		for ctx := t.Context(); len(f.calls("ps")) < 2 && ctx.Err() == nil; {
			time.Sleep(5 * time.Millisecond)
		}
		if err := os.WriteFile(filepath.Join(f.folder, "started"), nil, 0o600); err != nil {
			t.Error(err)
		}
		done <- nil
	}()
	if err := made(t).abort(t.Context(), done); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"rm --force --volumes late"}, f.calls("rm")); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
}
