package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/render"
)

// The test binary is the program, and so also the child that renders.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == render.ChildArgument {
		render.ChildMain()
	}
	testscript.Main(m, map[string]func(){"rebuild-check": main})
}

// fakeDocker answers docker NAME with the script docker/NAME, and is an engine that is down
// otherwise. Every call is logged.
const fakeDocker = `#!/bin/sh
echo "$*" >>"$WORK/docker.log"
[ -f "$WORK/docker/$1" ] && . "$WORK/docker/$1"
echo "Cannot connect to the Docker daemon" >&2
exit 1
`

func TestScripts(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	realDocker, _ := exec.LookPath("docker") // empty where there is none
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[seenKey{}] = map[string]bool{}
			bin := filepath.Join(env.WorkDir, ".bin")
			for key, value := range map[string]string{
				"PATH": bin + ":" + env.Getenv("PATH"), "REGISTRY": server.URL, "CLOSED": "http://" + closed.Addr().String(), "REAL_DOCKER": realDocker,
				"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
				"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com",
			} {
				env.Setenv(key, value)
			}
			if err := os.Mkdir(bin, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(bin, "docker"), []byte(fakeDocker), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"check": check, "code": code, "signal": interrupted, "counts": counts},
	})
}

type seenKey struct{}

// check runs the program and holds it to what every run promises:
//
//	check EXIT-CODE [FLAGS...]
func check(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: check EXIT-CODE [FLAGS...]")
	}
	promises(ts, args[0], exitOf(ts, args[1:]), args[1:], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

// code runs a command that makes nothing and looks at its exit code:
//
//	code EXIT-CODE COMMAND [FLAGS...]
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code EXIT-CODE COMMAND [FLAGS...]")
	}
	if got := exitOf(ts, args[1:]); strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// exitOf runs the program and gives its exit code.
func exitOf(ts *testscript.TestScript, args []string) int {
	err := ts.Exec("rebuild-check", args...)
	if err == nil {
		return 0
	}
	exit := (*exec.ExitError)(nil)
	if !asExit(err, &exit) {
		ts.Fatalf("running: %v", err)
	}
	return exit.ExitCode()
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

// interrupted runs the program, sends it a signal once the fake docker hangs, and wants it to be
// gone within five seconds:
//
//	signal INT|TERM EXIT-CODE FLAGS...
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: signal INT|TERM EXIT-CODE FLAGS...")
	}
	// The shell gives its place to the program, which is found on the script's PATH.
	cmd := exec.Command("/bin/sh", append([]string{"-c", `exec rebuild-check "$@"`, "sh"}, args[2:]...)...)
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "WORK", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &stdout, &stderr
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer cmd.Process.Kill()
	hanging := filepath.Join(ts.Getenv("WORK"), "hanging")
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(hanging); err == nil {
			break
		}
		if len(done) > 0 || time.Now().After(limit) {
			ts.Fatalf("docker was not called in a way that hangs; stderr: %s", stderr.String())
		}
	}
	ts.Check(os.Remove(hanging))
	ts.Check(cmd.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}[args[0]]))
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		ts.Fatalf("it did not end within 5 s of the signal; stderr: %s", stderr.String())
	}
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	promises(ts, args[1], cmd.ProcessState.ExitCode(), args[2:], stdout.String(), stderr.String())
}

// promises are what holds of every run: the exit code, nothing left in TMPDIR, no escape bytes in
// what is piped; of a wrong call that nothing was created; of all others that the evidence is there
// and tells the same.
func promises(ts *testscript.TestScript, want string, code int, args []string, stdout, stderr string) {
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
	if bytes.ContainsAny([]byte(stdout+stderr), "\x1b\r\x9b") {
		ts.Fatalf("escape bytes in %q %q", stdout, stderr)
	}
	if left, err := os.ReadDir(ts.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		ts.Fatalf("left in TMPDIR: %v, %v", left, err)
	}
	folders, err := filepath.Glob(ts.MkAbs("rebuild-check-evidence/[0-9]*"))
	ts.Check(err)
	if i := slices.Index(args, "--evidence-dir"); i >= 0 {
		folders = []string{ts.MkAbs(args[i+1])}
	}
	seen := ts.Value(seenKey{}).(map[string]bool)
	folders = slices.DeleteFunc(folders, func(f string) bool { return seen[f] })
	if code == 0 { // help
		return
	}
	if code == 2 {
		if stdout != "" {
			ts.Fatalf("a wrong call wrote %q on standard output", stdout)
		}
		for _, path := range []string{filepath.Join(ts.Getenv("WORK"), "docker.log"), ts.MkAbs("rebuild-check-evidence")} {
			if _, err := os.Lstat(path); err == nil {
				ts.Fatalf("a wrong call made %s", path)
			}
		}
		return
	}
	if len(folders) != 1 {
		ts.Fatalf("evidence folders %q, want one new one", folders)
	}
	seen[folders[0]] = true
	text, err := os.ReadFile(filepath.Join(folders[0], "evidence.json"))
	ts.Check(err)
	if slices.Contains(args, "json") && stdout != string(text) {
		ts.Fatalf("standard output is not the evidence: %s", stdout)
	}
	var run evidence.Run
	ts.Check(json.Unmarshal(text, &run))
	if run.SchemaVersion != evidence.SchemaVersion || run.ExitCode != code {
		ts.Fatalf("the evidence has schemaVersion %q and exitCode %d, the run ended with %d", run.SchemaVersion, run.ExitCode, code)
	}
	outcome := map[int]evidence.Outcome{1: evidence.NotReproduced, 3: evidence.Undecided, 130: evidence.Undecided, 143: evidence.Undecided}[code]
	if run.Outcome != outcome {
		ts.Fatalf("outcome %s with exit code %d, want %s", run.Outcome, code, outcome)
	}
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "evidence.json"), text, 0o600)) // for the script to look at
}

// counts wants the last evidence to be about as many objects and images with a proven manifest:
//
//	counts OBJECTS MANIFESTS
func counts(ts *testscript.TestScript, neg bool, args []string) {
	var run evidence.Run
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(ts.Getenv("WORK"), "evidence.json"))), &run))
	objects, manifests := 0, 0
	if run.Set != nil {
		objects = len(run.Set.Objects)
	}
	for _, image := range run.Images {
		if image.Manifest != "" {
			manifests++
		}
	}
	if got := []string{strconv.Itoa(objects), strconv.Itoa(manifests)}; neg || !slices.Equal(got, args) {
		ts.Fatalf("objects and manifests %q, want %q", got, args)
	}
}
