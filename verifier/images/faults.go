package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// refusal is an answer other than 200 to a request for a manifest or blob.
type refusal struct {
	status int
	// codes are the registry's own words: MANIFEST_UNKNOWN, DENIED, …
	codes  []string
	helper error
}

func (e *refusal) Error() string {
	text := fmt.Sprintf("answered %d %s", e.status, http.StatusText(e.status))
	if len(e.codes) > 0 {
		text += " (" + strings.Join(e.codes, ", ") + ")"
	}
	return text
}

func (e *refusal) says(codes ...string) bool {
	return slices.ContainsFunc(e.codes, func(code string) bool { return slices.Contains(codes, code) })
}

// trouble is a registry that gave no answer to the request itself.
type trouble struct{ err, helper error }

func (e *trouble) Unwrap() error { return e.err }

// Error leaves out URLs: those of redirects can hold credentials.
func (e *trouble) Error() string {
	var refused *transport.Error
	var wrapped *url.Error
	switch {
	case errors.Is(e.err, context.DeadlineExceeded):
		return "did not answer in time"
	case errors.Is(e.err, context.Canceled):
		return "was not asked to the end: canceled"
	case errors.As(e.err, &refused):
		return (&refusal{status: refused.StatusCode}).Error()
	case errors.As(e.err, &wrapped):
		return "did not answer: " + wrapped.Err.Error()
	}
	return "did not answer: " + e.err.Error()
}

// fault is a content of the registry that cannot be trusted or used.
type fault struct {
	code, want, got, message, do string
}

func (e *fault) Error() string { return e.message }

// finding turns what went wrong with a reference into a finding. what names the part that was asked
// for: the reference itself, or a digest that it leads to.
func (c *client) finding(image evidence.Image, ref reference, endpoint string, err error) evidence.Finding {
	if endpoint == "" {
		endpoint = c.place(ref)
	}
	found := about(image)
	var refused *refusal
	var bad *fault
	var far *trouble
	var token *transport.Error
	status, helper := 0, error(nil)
	switch {
	case errors.As(err, &bad):
		found.Code, found.Severity = bad.code, evidence.Fail
		found.Want, found.Got, found.Message, found.Do = bad.want, bad.got, bad.message, bad.do
		return found
	case errors.As(err, &refused):
		status, helper = refused.status, refused.helper
		denied := refused.says("UNAUTHORIZED", "DENIED")
		if (status == http.StatusNotFound && !denied) || (refused.says("NAME_UNKNOWN", "MANIFEST_UNKNOWN") && status < 500) {
			found.Code, found.Severity = "missing-image", evidence.Fail
			found.Message = endpoint + " does not have it: " + err.Error()
			found.Do = "push the image, or name one that is there"
			return found
		}
		if denied {
			status = http.StatusUnauthorized
		}
	case errors.As(err, &far):
		helper = far.helper
		if errors.As(far.err, &token) {
			status = token.StatusCode
		}
	}
	found.Code, found.Severity = "registry-unavailable", evidence.Inconclusive
	found.Message = endpoint + ": " + err.Error()
	found.Do = "try again later, or ask elsewhere: --registry-mirror " + mirrorHost(ref) + "=ENDPOINT"
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		found.Message = "unauthorized: " + endpoint + ": " + err.Error()
		if helper != nil {
			found.Message += "; the credential helper of the Docker config failed"
		}
		found.Do = "look whether the repository exists, log in to " + mirrorHost(ref) + " in the Docker config, or ask elsewhere: --registry-mirror " + mirrorHost(ref) + "=ENDPOINT"
	}
	return found
}

// about begins a finding on an image at its first use.
func about(image evidence.Image) evidence.Finding {
	found := evidence.Finding{Object: image.Reference}
	if len(image.Uses) > 0 {
		first := image.Uses[0]
		found.NeededBy, found.Field, found.Origin = first.Object.String(), first.Field, first.Origin
	}
	return found
}

// mirrorHost is the registry as image references name it.
func mirrorHost(ref reference) string {
	if host := ref.Context().RegistryStr(); host != "index.docker.io" {
		return host
	}
	return "docker.io"
}
