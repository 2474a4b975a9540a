package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// network is the Docker network that kind puts its nodes on.
const network = "kind"

// wireMirrors makes containerd on every node pull the mirrored hosts from their mirrors and from
// nowhere else. Source of the file's form: containerd's docs/hosts.md.
func wireMirrors(ctx context.Context, nodes []string, mirrors []scenario.Mirror) error {
	if len(mirrors) == 0 {
		return nil
	}
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, m := range mirrors {
		endpoint, err := nodeEndpoint(ctx, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(&script, "mkdir -p '/etc/containerd/certs.d/%s'\ncat >'/etc/containerd/certs.d/%s/hosts.toml' <<'T'\nserver = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\nT\n", m.Host, m.Host, endpoint, endpoint)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error {
			_, err := docker(ctx, script.String(), "exec", "-i", node, "sh")
			return err
		})
	}
	return group.Wait()
}

// nodeEndpoint is where the nodes reach the mirror. An endpoint on this host's loopback is a
// published port of a container for them, so that container's name and own port are used.
func nodeEndpoint(ctx context.Context, m scenario.Mirror) (string, error) {
	if m.Node != "" {
		return m.Node, nil
	}
	u, err := url.Parse(m.Endpoint)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return m.Endpoint, nil
	}
	fail := func(format string, args ...any) error {
		return &Trouble{
			Code: "registry-unavailable", Err: fmt.Errorf("the nodes cannot reach the mirror %s of %s: "+format, append([]any{m.Endpoint, m.Host}, args...)...),
			Do: fmt.Sprintf("name the endpoint that nodes reach: --registry-mirror %s=%s,http://NAME:PORT", m.Host, m.Endpoint),
		}
	}
	ids, err := docker(ctx, "", "ps", "--quiet", "--filter", "publish="+u.Port())
	if err != nil {
		return "", err
	}
	if ids == "" {
		return "", fail("it is on this host's loopback, and no container publishes port %s", u.Port())
	}
	out, err := docker(ctx, "", append([]string{"inspect"}, strings.Fields(ids)...)...)
	if err != nil {
		return "", err
	}
	var containers []struct {
		Name            string
		NetworkSettings struct {
			Networks map[string]json.RawMessage
			Ports    map[string][]struct{ HostPort string }
		}
	}
	if err := json.Unmarshal([]byte(out), &containers); err != nil {
		return "", fmt.Errorf("reading docker inspect: %w", err)
	}
	for _, c := range containers {
		for published, bindings := range c.NetworkSettings.Ports {
			port, tcp := strings.CutSuffix(published, "/tcp")
			for _, b := range bindings {
				if !tcp || b.HostPort != u.Port() {
					continue
				}
				name := strings.TrimPrefix(c.Name, "/")
				if _, ok := c.NetworkSettings.Networks[network]; !ok {
					return "", fail("container %s is not on the network %s (docker network connect %s %s)", name, network, network, name)
				}
				return fmt.Sprintf("%s://%s:%s", u.Scheme, name, port), nil
			}
		}
	}
	return "", fail("no container publishes port %s", u.Port())
}
