//go:build e2e

// Package scenarios runs the built program on real kind clusters. Bring the lab up first:
//
//	eval "$(ci/lab/up)" && go test -tags e2e ./scenarios
package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/fixtures/repos"
	"rebuild-check.dev/rebuild-check/verifier/bundle"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/verdict"
)

var (
	testenv  env.Environment
	binary   string
	registry string
)

func TestMain(m *testing.M) {
	registry = os.Getenv("REBUILD_CHECK_REGISTRY")
	if registry == "" {
		fmt.Fprintln(os.Stderr, `no lab: eval "$(ci/lab/up)" first`)
		os.Exit(1)
	}
	folder, err := os.MkdirTemp("", "rebuild-check-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(folder, "rebuild-check")
	testenv = env.NewParallel()
	testenv.Setup(func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../cmd/rebuild-check").CombinedOutput()
		if err != nil {
			return ctx, fmt.Errorf("building: %w: %s", err, out)
		}
		return ctx, nil
	})
	testenv.Finish(func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		return ctx, os.RemoveAll(folder)
	})
	os.Exit(testenv.Run(m))
}

// job is one run of the program, and how a second client takes part in it.
type job struct {
	repo string
	args []string
	env  []string
	// on is called for each progress line, with the cluster's name once that is known.
	on func(line, cluster string, process *os.Process)
}

// result is what a run left.
type result struct {
	code    int
	cluster string
	stdout  string
	stderr  string
	run     evidence.Run
	folder  string
	// peak is the largest resident set of any process of the run, in bytes.
	peak int64
}

var clusterName = regexp.MustCompile(`rbc-[0-9a-f]{24}`)

// do runs the program with folders of its own, and checks what must hold however it ends: no
// container or volume of its cluster, no temporary file, and the user's kubeconfig as it was.
func do(t *testing.T, j job) result {
	t.Helper()
	home, temp, work := t.TempDir(), t.TempDir(), t.TempDir()
	kubeconfig := filepath.Join(home, ".kube", "config")
	must(t, os.MkdirAll(filepath.Dir(kubeconfig), 0o700))
	must(t, os.WriteFile(kubeconfig, []byte("current-context: mine\n"), 0o600))
	folder := filepath.Join(work, "evidence")
	cmd := exec.Command(binary, append([]string{"--repo", j.repo, "--evidence-dir", folder, "--registry-mirror", "registry.example.com=" + registry, "--registry-mirror", "ghcr.io=" + registry}, j.args...)...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), append([]string{"HOME=" + home, "TMPDIR=" + temp}, j.env...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	r := result{folder: folder}
	r.stderr, r.cluster = follow(pipe, j.on, cmd.Process)
	_ = cmd.Wait() // the exit code is what is looked at
	r.code, r.stdout = cmd.ProcessState.ExitCode(), stdout.String()
	r.peak = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("exit code %d\n%s\n%s", r.code, r.stdout, r.stderr)

	if r.cluster != "" {
		if left := docker(t, "ps", "-aq", "--filter", "label=io.x-k8s.kind.cluster="+r.cluster); left != "" {
			t.Errorf("containers are left: %s", left)
		}
		if inspect := docker(t, "network", "inspect", "kind", "--format", "{{json .Containers}}"); strings.Contains(inspect, r.cluster) {
			t.Errorf("a network entry is left: %s", inspect)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	if text, err := os.ReadFile(kubeconfig); err != nil || string(text) != "current-context: mine\n" {
		t.Errorf("the user's kubeconfig is %q, %v", text, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(kubeconfig)); err != nil || len(entries) != 1 {
		t.Errorf("beside the user's kubeconfig: %v, %v", entries, err)
	}
	if r.code == 2 {
		return r
	}
	r.run, err = bundle.Read(folder)
	must(t, err)
	findings, outcome, code := verdict.Judge(r.run)
	if outcome != r.run.Outcome || code != r.code {
		t.Errorf("the evidence gives %s and %d, the run ended with %s and %d", outcome, code, r.run.Outcome, r.code)
	}
	if diff := cmp.Diff(plain(t, r.run.Findings), plain(t, findings)); diff != "" {
		t.Errorf("the evidence gives other findings (-run +evidence):\n%s", diff)
	}
	return r
}

func follow(pipe io.Reader, on func(string, string, *os.Process), process *os.Process) (text, cluster string) {
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		text += lines.Text() + "\n"
		if cluster == "" {
			cluster = clusterName.FindString(lines.Text())
		}
		if on != nil {
			on(lines.Text(), cluster, process)
		}
	}
	return text, cluster
}

func plain(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Errorf("docker %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// kubectl is the second client: the one that is in every node.
func kubectl(t *testing.T, cluster string, args ...string) {
	t.Helper()
	docker(t, append([]string{"exec", cluster + "-control-plane", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"}, args...)...)
}

// repository makes a Git repository of a scenario, with some of its text replaced: file to pairs of
// old and new text; an empty list deletes the file, a list of one text writes it.
func repository(t *testing.T, name string, edits map[string][]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	must(t, repos.Scenario(t.Context(), name, dir, func(dir string) error {
		for file, pairs := range edits {
			path := filepath.Join(dir, file)
			if len(pairs) == 0 {
				if err := os.Remove(path); err != nil {
					return err
				}
				continue
			}
			if len(pairs) == 1 {
				if err := os.WriteFile(path, []byte(pairs[0]), 0o644); err != nil {
					return err
				}
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			edited := string(text)
			for i := 0; i+1 < len(pairs); i += 2 {
				if !strings.Contains(edited, pairs[i]) {
					return fmt.Errorf("%s holds no %q", file, pairs[i])
				}
				edited = strings.ReplaceAll(edited, pairs[i], pairs[i+1])
			}
			if err := os.WriteFile(path, []byte(edited), 0o644); err != nil {
				return err
			}
		}
		return nil
	}))
	return dir
}

// wanted is a scenario's want.yaml: the outcome and every finding it must have, and no other.
type wanted struct {
	Outcome  evidence.Outcome `json:"outcome"`
	ExitCode int              `json:"exitCode"`
	Findings []struct {
		Code     string            `json:"code"`
		Severity evidence.Severity `json:"severity"`
	} `json:"findings"`
}

func wantFile(t *testing.T, name string, r result) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name, "want.yaml"))
	must(t, err)
	var want wanted
	must(t, yaml.UnmarshalStrict(text, &want))
	if r.run.Outcome != want.Outcome || r.code != want.ExitCode {
		t.Errorf("outcome %s, exit code %d; want %s, %d", r.run.Outcome, r.code, want.Outcome, want.ExitCode)
	}
	var wantList, gotList []string
	for _, f := range want.Findings {
		wantList = append(wantList, string(f.Severity)+" "+f.Code)
	}
	for _, f := range r.run.Findings {
		gotList = append(gotList, string(f.Severity)+" "+f.Code)
	}
	slices.Sort(wantList)
	slices.Sort(gotList)
	if diff := cmp.Diff(wantList, gotList); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// wantFinding checks that exactly one finding has the code, object and field, and gives it back.
func wantFinding(t *testing.T, r result, code, object, field string) evidence.Finding {
	t.Helper()
	var found []evidence.Finding
	for _, f := range r.run.Findings {
		if f.Code == code && f.Object == object && f.Field == field {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d findings %s %s %s, want one", len(found), code, object, field)
		return evidence.Finding{}
	}
	return found[0]
}
