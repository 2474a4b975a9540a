// Package scenario is what was declared: the experiment in the set and the choices of the command
// line. It loads strictly and reports every mistake at once.
package scenario

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// hostname holds all that may stand before the first slash of an image reference.
var hostname = regexp.MustCompile(`^[A-Za-z0-9.:_\[\]-]+$`)

// Mirror says where images of a registry host are pulled from.
type Mirror struct {
	// Host is the registry as image references name it: docker.io, ghcr.io, localhost:5000.
	Host string
	// Endpoint is where this process asks, as scheme://host[:port]; Node is where the cluster's nodes
	// pull, empty when it is to be derived from Endpoint.
	Endpoint string
	Node     string
}

// String is the mirror as ParseMirror reads it.
func (m Mirror) String() string {
	if m.Node == "" {
		return m.Host + "=" + m.Endpoint
	}
	return m.Host + "=" + m.Endpoint + "," + m.Node
}

// ParseMirror reads HOST=ENDPOINT or HOST=ENDPOINT,NODE-ENDPOINT.
func ParseMirror(text string) (Mirror, error) {
	host, endpoints, ok := strings.Cut(text, "=")
	if !ok || !hostname.MatchString(host) {
		return Mirror{}, fmt.Errorf("registry mirror of %q: want HOST=ENDPOINT, as in docker.io=http://127.0.0.1:5001", host)
	}
	endpoint, node, both := strings.Cut(endpoints, ",")
	mirror := Mirror{Host: host, Endpoint: strings.TrimSuffix(endpoint, "/"), Node: strings.TrimSuffix(node, "/")}
	if err := checkEndpoint(mirror.Endpoint); err != nil {
		return Mirror{}, fmt.Errorf("registry mirror of %s: %w", host, err)
	}
	if both {
		if err := checkEndpoint(mirror.Node); err != nil {
			return Mirror{}, fmt.Errorf("registry mirror of %s, for the nodes: %w", host, err)
		}
	}
	return mirror, nil
}

// checkEndpoint tells what is wrong without repeating the text: it may hold a password.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("want an endpoint that begins with http:// or https://")
	case u.User != nil:
		return fmt.Errorf("the endpoint of %s holds credentials; put them into the Docker configuration (docker login)", u.Host)
	case !hostname.MatchString(u.Host) || u.Path != "" || u.RawQuery != "":
		return fmt.Errorf("want an endpoint of the form scheme://host[:port], and nothing more")
	}
	return nil
}
