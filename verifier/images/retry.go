package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	maxTries = 3
	// tryTimeout bounds one request with its answer.
	tryTimeout = 30 * time.Second
	// maxAnswer bounds an answer; registries take manifests up to 4 MiB.
	maxAnswer = 16 << 20
)

// retry is a transport that asks again, at most maxTries times in all, where that can help: rate
// limits, with the pause that the registry asks for, server errors, and connections that broke. It
// reads the whole answer, so a body that is cut off counts as broken.
type retry struct {
	inner http.RoundTripper
	sleep func(context.Context, time.Duration) error
	// scheme is the one that host is asked with, empty when requests keep theirs.
	host, scheme string
}

func (r *retry) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.scheme != "" && request.URL.Host == r.host && request.URL.Scheme != r.scheme {
		request = request.Clone(request.Context())
		request.URL.Scheme = r.scheme
	}
	for try := 1; ; try++ {
		response, err := r.once(request)
		pause := 100 * time.Millisecond << (2 * (try - 1))
		switch {
		case try == maxTries || request.Context().Err() != nil || (request.Body != nil && request.GetBody == nil):
			return response, err
		case err != nil:
			if !broken(err) {
				return nil, err
			}
		case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500:
			if response.StatusCode == http.StatusTooManyRequests {
				pause = time.Second << (try - 1)
			}
			if wanted, ok := retryAfter(response.Header.Get("Retry-After")); ok {
				pause = wanted
			}
		default:
			return response, nil
		}
		if deadline, ok := request.Context().Deadline(); ok && time.Until(deadline) < pause {
			return response, err
		}
		if r.sleep(request.Context(), pause) != nil {
			return response, err
		}
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = body
		}
	}
}

func (r *retry) once(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), tryTimeout)
	defer cancel()
	response, err := r.inner.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// broken tells whether a connection failed in a way that may pass.
func broken(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || (errors.As(err, &timeout) && timeout.Timeout())
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(text string) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
