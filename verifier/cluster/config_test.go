package cluster

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func TestNewName(t *testing.T) {
	shape := regexp.MustCompile(`^rbc-[0-9a-f]{24}$`)
	seen := map[string]bool{}
	for range 1000 {
		name := NewName()
		if !shape.MatchString(name) || seen[name] {
			t.Fatalf("name %q, seen before: %v", name, seen[name])
		}
		seen[name] = true
	}
}

func TestKindConfig(t *testing.T) {
	one, three := []v1alpha4.NodeRole{"control-plane"}, []v1alpha4.NodeRole{"control-plane", "worker", "worker"}
	for name, c := range map[string]struct {
		engine  engine
		nodes   int
		roles   []v1alpha4.NodeRole
		kubelet bool
	}{
		"one node, cgroup v2":    {engine{"29", "2"}, 1, one, false},
		"three nodes, cgroup v2": {engine{"29", "2"}, 3, three, false},
		"one node, cgroup v1":    {engine{"29", "1"}, 1, one, true},
	} {
		t.Run(name, func(t *testing.T) {
			config, patches := kindConfig("rbc-x", c.engine, Options{NodeImage: "node:1", Nodes: c.nodes})
			var roles []v1alpha4.NodeRole
			for _, node := range config.Nodes {
				roles = append(roles, node.Role)
				if node.Image != "node:1" {
					t.Errorf("node image %q", node.Image)
				}
			}
			if diff := cmp.Diff(c.roles, roles); diff != "" || config.Name != "rbc-x" {
				t.Errorf("name %q, roles (-want +got):\n%s", config.Name, diff)
			}
			autoscaler := map[string]string{}
			for _, p := range config.KubeadmConfigPatchesJSON6902 {
				autoscaler[p.Group+"/"+p.Version+" "+p.Kind] = p.Patch
			}
			want := map[string]string{
				"kubeadm.k8s.io/v1beta3 ClusterConfiguration": `[{"op": "add", "path": "/controllerManager/extraArgs/horizontal-pod-autoscaler-sync-period", "value": "1s"}]`,
				"kubeadm.k8s.io/v1beta4 ClusterConfiguration": `[{"op": "add", "path": "/controllerManager/extraArgs/-", "value": {"name": "horizontal-pod-autoscaler-sync-period", "value": "1s"}}]`,
			}
			if diff := cmp.Diff(want, autoscaler); diff != "" {
				t.Errorf("autoscaler patches (-want +got):\n%s", diff)
			}
			text := strings.Join(config.KubeadmConfigPatches, "\n")
			if got := strings.Contains(text, "kind: KubeletConfiguration\nfailCgroupV1: false"); got != c.kubelet || (text != "") != c.kubelet {
				t.Errorf("kubelet patch %q, want one: %v", text, c.kubelet)
			}
			told := strings.Join(patches, "\n")
			if strings.Contains(told, "failCgroupV1") != c.kubelet || !strings.Contains(told, "horizontal-pod-autoscaler-sync-period=1s") {
				t.Errorf("told patches: %q", told)
			}
		})
	}
}
