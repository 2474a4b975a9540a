package render

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// ChildArgument is the one argument that makes this program a child; main must call ChildMain when
// it is given.
const ChildArgument = "__render"

// request is what the child gets on its standard input.
type request struct {
	Renderer string
	// Root is the folder to render, Files all files by their path in the tree.
	Root  string
	Files fileSet           `json:"-"`
	Links map[string]string `json:",omitempty"`
	// Release is for Helm.
	Release *release `json:",omitempty"`
	// Lines asks for origins and the lines of fields, which for kustomize changes what is rendered
	// on the way; the answer must not show it.
	Lines bool
	// YAML asks for the renderer's own output.
	YAML    bool
	Memory  int64
	Seconds int
}

// answer is what the child writes to its standard output.
type answer struct {
	Objects  []object
	Skipped  []evidence.Skipped
	Findings []evidence.Finding
	// Unmatched are the entries of kustomizations that matched nothing; only the run with Lines asks.
	Unmatched []evidence.Finding `json:",omitempty"`
	YAML      []byte             `json:"-"`
	YAMLSize  int                `json:",omitempty"`
	limited   bool               // the child was ended by a limit
}

// ChildMain renders the request on standard input and ends the process. It belongs to the first
// lines of main and of a test's TestMain, for when os.Args[1] is ChildArgument.
func ChildMain() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve() error {
	http.DefaultTransport = refused{}
	http.DefaultClient = &http.Client{Transport: refused{}}
	debug.SetMaxStack(64 << 20)
	req, err := receive(os.Stdin)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(req.Memory)
	debug.SetGCPercent(400) // a child is short; near the limit of its memory it collects as often as it must
	if err := limit(req.Memory, req.Seconds); err != nil {
		return fmt.Errorf("setting limits: %w", err)
	}
	result := renderSafely(req)
	result.seal(req)
	if err := result.send(os.Stdout); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// renderSafely makes a panic of a renderer a finding about the content.
func renderSafely(req request) (result answer) {
	defer func() {
		if r := recover(); r != nil {
			result = failed(req, fmt.Sprintf("the renderer gave up on this content: %v", r))
		}
	}()
	switch req.Renderer {
	case Kustomize:
		return renderKustomize(req)
	case Helm:
		return renderHelm(req)
	}
	return renderPlain(req)
}

// refused is the child's way to every server.
type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("rendering has no network")
}
