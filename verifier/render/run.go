package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// maxStderr is how many bytes of a child's error output are kept. A crash says why at its start.
const maxStderr = 64 << 10

// outOfMemory matches how the Go runtime says so: for the heap, for a stack, for a new thread. Its
// collector does not say so: it follows a nil pointer where the system gives it no memory, on a
// stack of its own, which no fault of Go code does.
var outOfMemory = regexp.MustCompile(`\ASIGSEGV: segmentation violation\nPC=|out of memory|cannot allocate memory|pthread_create failed|failed to create new OS thread`)

// run renders a request in one child. What the content did to the child is a finding in the answer;
// the error is trouble of ours, or the end of ctx.
func run(ctx context.Context, req request, deadline time.Time, timeout time.Duration) (answer, error) {
	exe, err := executable()
	if err != nil {
		return answer{}, fmt.Errorf("finding this program: %w", err)
	}
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var out, stderr buffer
	var cmd *exec.Cmd
	for _, flags := range isolations(os.Getuid()) {
		out, stderr = buffer{max: MaxAnswer}, buffer{max: maxStderr, cut: true}
		in, err := req.send()
		if err != nil {
			return answer{}, err
		}
		cmd = exec.CommandContext(limited, exe, ChildArgument)
		isolate(cmd, flags)
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &stderr
		cmd.WaitDelay = time.Second
		if err = cmd.Start(); err == nil {
			break
		}
	}
	if err != nil {
		return answer{}, fmt.Errorf("starting the render child: %w", err)
	}
	err = cmd.Wait()
	text := stderr.String()
	refuse := func(what string) (answer, error) {
		a := failed(req, "rendering "+what)
		a.Findings[0].Do, a.limited = "render a smaller folder", true
		return a, nil
	}
	switch {
	case ctx.Err() != nil:
		return answer{}, ctx.Err()
	case limited.Err() != nil:
		return refuse(fmt.Sprintf("took longer than the limit of %s", timeout))
	case out.over:
		return refuse(fmt.Sprintf("gave more than the limit of %d bytes", MaxAnswer))
	case err == nil:
		a, err := readAnswer(out.Bytes())
		if err != nil {
			return answer{}, fmt.Errorf("reading the render child's answer: %w", err)
		}
		return a, nil
	case outOfMemory.MatchString(text):
		return refuse(fmt.Sprintf("used more memory than the limit of %d MiB", req.Memory>>20))
	case strings.Contains(text, "stack exceeds") || strings.Contains(text, "stack overflow"):
		return refuse("is nested deeper than the limit of the stack, 64 MiB")
	case strings.Contains(err.Error(), "CPU time limit"):
		return refuse(fmt.Sprintf("used more processor time than the limit of %d s", 2*req.Seconds))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 { // a crash of the Go program: a fatal error or a panic of another goroutine
		a := failed(req, "the renderer crashed on this content: "+reason(text))
		return a, nil
	}
	return answer{}, fmt.Errorf("running the render child: %w: %s", err, reason(text))
}

// renderTwice renders in two processes and compares. The one whose objects count is the plain run;
// the other finds the origins, for which kustomize adds annotations on the way. Patches can see
// those, so where the two differ a second plain run decides.
func renderTwice(ctx context.Context, req request, timeout time.Duration) (answer, []evidence.Finding, error) {
	var results [2]answer
	var errs [2]error
	deadline := time.Now().Add(timeout)
	located := req
	located.Lines, located.YAML = true, false
	done := make(chan struct{})
	go func() {
		defer close(done)
		results[1], errs[1] = run(ctx, located, deadline, timeout)
	}()
	results[0], errs[0] = run(ctx, req, deadline, timeout)
	<-done
	if err := errors.Join(errs[:]...); err != nil {
		return answer{}, nil, err
	}
	first, second := results[0], results[1]
	if first.limited || second.limited {
		// How far a child gets before a limit is chance; there is nothing to compare.
		if !first.limited {
			first = second
		}
		return first, nil, nil
	}
	difference, differs := compare(first, second)
	if differs && req.Renderer != Helm {
		again, err := run(ctx, req, deadline, timeout)
		if err != nil {
			return answer{}, nil, err
		}
		if again.limited {
			return again, nil, nil
		}
		if detail, still := compare(first, again); still || req.Renderer == Kustomize {
			difference, differs = detail, still
		}
	}
	findings := second.Unmatched
	if differs {
		findings = append(findings, difference)
	}
	locate(first.Objects, second.Objects)
	return first, findings, nil
}

// buffer keeps the first max bytes. What is more is dropped if cut is set, and an error otherwise.
type buffer struct {
	bytes.Buffer
	max  int
	cut  bool
	over bool
}

func (b *buffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.max-b.Len())]
	b.Buffer.Write(kept)
	if len(kept) < len(p) {
		b.over = true
		if !b.cut {
			return len(kept), errors.New("the answer is too long")
		}
	}
	return len(p), nil
}

// reason is the line in which a Go program says why it ends, or the end of its last words.
func reason(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		for _, prefix := range []string{"fatal error: ", "panic: ", "runtime: ", "runtime/cgo: "} {
			if strings.HasPrefix(line, prefix) {
				return line
			}
		}
	}
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-400):]
}
