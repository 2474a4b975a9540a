// Command rebuild-check answers whether a revision can be rebuilt from the repository alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/render"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == render.ChildArgument {
		render.ChildMain()
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go interrupt(signals, cancel)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// interrupt lets the first signal end the run, clean-up included, and the second leave at once.
func interrupt(signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	name := map[os.Signal]string{os.Interrupt: "INT", syscall.SIGTERM: "TERM"}
	first := <-signals
	fmt.Fprintf(os.Stderr, "\n%s: cleaning up; once more leaves at once\n", name[first])
	cancel(&verifier.Interrupted{Signal: name[first]})
	<-signals
	fmt.Fprintln(os.Stderr, "left at once; remove the cluster named above with: docker ps -aq --filter label=io.x-k8s.kind.cluster=NAME | xargs docker rm -fv")
	os.Exit(exitCode(name[first]))
}

func exitCode(signal string) int {
	if signal == "TERM" {
		return 143
	}
	return 130
}

// exit is an error that is told already, or has an exit code of its own.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }
func (e *exit) Unwrap() error { return e.err }

// execute runs the command line and gives the exit code. Every error that says nothing else is a
// mistake in the call: 2.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var coded *exit
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &coded):
		coded = &exit{2, err}
	}
	if coded.err != nil {
		fmt.Fprintf(stderr, "rebuild-check: %v\n", coded.err)
	}
	return coded.code
}
