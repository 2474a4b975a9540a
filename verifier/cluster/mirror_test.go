package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// inspected is what docker inspect says of a registry whose port 5000 is published as 5001.
const inspected = `cat <<'J'
[{"Name":"/other","NetworkSettings":{"Networks":{"kind":{}},"Ports":{"80/tcp":[{"HostIp":"","HostPort":"8080"}],"53/udp":[{"HostPort":"5001"}],"443/tcp":null}}},
 {"Name":"/lab-registry","NetworkSettings":{"Networks":{"bridge":{},"NETWORK":{}},"Ports":{"5000/tcp":[{"HostIp":"127.0.0.1","HostPort":"5001"}]}}}]
J
`

func TestNodeEndpoint(t *testing.T) {
	onKind := strings.Replace(inspected, "NETWORK", "kind", 1)
	for name, c := range map[string]struct {
		mirror  scenario.Mirror
		ps      string
		inspect string
		want    string
		trouble []string
		calls   []string
	}{
		"loopback": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://127.0.0.1:5001"}, "echo a1\necho b2", onKind, "http://lab-registry:5000", nil,
			[]string{"ps --quiet --filter publish=5001", "inspect a1 b2"},
		},
		"localhost": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://localhost:5001"}, "echo b2", onKind, "http://lab-registry:5000", nil,
			[]string{"ps --quiet --filter publish=5001", "inspect b2"},
		},
		"loopback of IPv6": {
			scenario.Mirror{Host: "docker.io", Endpoint: "https://[::1]:5001"}, "echo b2", onKind, "https://lab-registry:5000", nil,
			[]string{"ps --quiet --filter publish=5001", "inspect b2"},
		},
		"not on the nodes' network": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://127.0.0.1:5001"}, "echo b2", strings.Replace(inspected, "NETWORK", "lab", 1), "",
			[]string{"container lab-registry is not on the network kind", "docker network connect kind lab-registry", "--registry-mirror docker.io=http://127.0.0.1:5001,http://NAME:PORT"},
			[]string{"ps --quiet --filter publish=5001", "inspect b2"},
		},
		"nothing publishes the port": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://127.0.0.1:5001"}, "", onKind, "",
			[]string{"no container publishes port 5001", "--registry-mirror docker.io=http://127.0.0.1:5001,http://NAME:PORT"},
			[]string{"ps --quiet --filter publish=5001"},
		},
		"another port is published": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://127.0.0.1:5002"}, "echo b2", onKind, "", []string{"no container publishes port 5002"},
			[]string{"ps --quiet --filter publish=5002", "inspect b2"},
		},
		"not on loopback": {scenario.Mirror{Host: "docker.io", Endpoint: "https://cache.example.com"}, "exit 1", "exit 1", "https://cache.example.com", nil, nil},
		"another address": {scenario.Mirror{Host: "docker.io", Endpoint: "http://192.0.2.7:5001"}, "exit 1", "exit 1", "http://192.0.2.7:5001", nil, nil},
		"named for nodes": {
			scenario.Mirror{Host: "docker.io", Endpoint: "http://127.0.0.1:5001", Node: "http://named:5000"}, "exit 1", "exit 1", "http://named:5000", nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, map[string]string{"ps": c.ps, "inspect": c.inspect})
			got, err := nodeEndpoint(t.Context(), c.mirror)
			if c.trouble != nil {
				wantTrouble(t, err, "registry-unavailable", c.trouble...)
			} else if err != nil || got != c.want {
				t.Errorf("endpoint %q, %v; want %q", got, err, c.want)
			}
			if diff := cmp.Diff(c.calls, f.calls("")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWireMirrors(t *testing.T) {
	// exec -i NODE sh: the script comes on standard input.
	f := newFake(t, map[string]string{"exec": `cat >"$3.script"`})
	mirrors := []scenario.Mirror{
		{Host: "docker.io", Endpoint: "http://127.0.0.1:5001", Node: "http://lab:5000"},
		{Host: "registry.example.com:5000", Endpoint: "https://cache.example.com"},
	}
	if err := wireMirrors(t.Context(), []string{"n1", "n2"}, mirrors); err != nil {
		t.Fatal(err)
	}
	want := `set -e
mkdir -p '/etc/containerd/certs.d/docker.io'
cat >'/etc/containerd/certs.d/docker.io/hosts.toml' <<'T'
server = "http://lab:5000"
[host."http://lab:5000"]
  capabilities = ["pull", "resolve"]
T
mkdir -p '/etc/containerd/certs.d/registry.example.com:5000'
cat >'/etc/containerd/certs.d/registry.example.com:5000/hosts.toml' <<'T'
server = "https://cache.example.com"
[host."https://cache.example.com"]
  capabilities = ["pull", "resolve"]
T
`
	for _, node := range []string{"n1", "n2"} {
		if diff := cmp.Diff(want, f.read(node+".script")); diff != "" {
			t.Errorf("script of %s (-want +got):\n%s", node, diff)
		}
	}

	t.Run("no mirror", func(t *testing.T) {
		f := newFake(t, nil)
		if err := wireMirrors(t.Context(), []string{"n1"}, nil); err != nil || len(f.calls("")) > 0 {
			t.Errorf("error %v, calls %q", err, f.calls(""))
		}
	})
	t.Run("a node refuses", func(t *testing.T) {
		newFake(t, map[string]string{"exec": "cat >/dev/null\n[ $3 = n1 ] || { echo read-only file system >&2; exit 1; }"})
		if err := wireMirrors(t.Context(), []string{"n1", "n2"}, mirrors); err == nil || !strings.Contains(err.Error(), "read-only file system") {
			t.Errorf("error %v, want the node's words", err)
		}
	})
}
