// Package cluster makes a clean place: one throwaway kind cluster a run, under a name no other run
// can have, with a kubeconfig of its own that never touches the user's.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kind "sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// DefaultNodeImage is kind's own node image for this release of kind.
const DefaultNodeImage = defaults.Image

// closeLimit bounds each of the two steps that take away a cluster that could not be made: until
// kind has given up, and the rest. An engine that hangs answers neither.
const closeLimit = 30 * time.Second

// Options say what cluster to make.
type Options struct {
	// NodeImage is a reference that the engine has or can pull.
	NodeImage string
	// Nodes counts all nodes, at least 1: one control plane, the rest workers.
	Nodes   int
	Mirrors []scenario.Mirror
}

// Cluster is a running kind cluster that this process made.
type Cluster struct {
	// Kubeconfig reaches the API server on the loopback interface with full rights.
	Kubeconfig []byte
	// Facts lack what only the API server can tell: Version and Nodes.
	Facts evidence.Cluster
	// KubeconfigPath is where a kept cluster's kubeconfig lies; the file lives as long as the cluster.
	KubeconfigPath string
	folder         string
}

// NewName is a cluster name with 96 random bits.
func NewName() string {
	bits := make([]byte, 12)
	rand.Read(bits) // never fails: crypto/rand
	return "rbc-" + hex.EncodeToString(bits)
}

// Create makes a cluster and returns once its API server answers; its nodes may not be ready yet.
// When it fails or ctx ends, what it made is removed again and anything that could not be is in
// the error. Errors of the surroundings are *Trouble.
func Create(ctx context.Context, name string, opts Options) (*Cluster, error) {
	eng, err := probe(ctx)
	if err != nil {
		return nil, err
	}
	imageID, err := ensureImage(ctx, opts.NodeImage)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return nil, &Trouble{Code: "cluster-failed", Err: fmt.Errorf("making a private folder: %w", err), Do: "free space or set TMPDIR"}
	}
	c := &Cluster{
		folder: folder, KubeconfigPath: filepath.Join(folder, "kubeconfig"),
		Facts: evidence.Cluster{Name: name, Engine: "docker " + eng.version, Cgroup: eng.cgroup, NodeImage: opts.NodeImage, NodeImageID: imageID},
	}
	config, patches := kindConfig(name, eng, opts)
	c.Facts.Patches = patches
	if err := c.start(ctx, config, opts); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, c.Close(closing))
	}
	return c, nil
}

// kindConfig is the cluster's configuration, and in words what differs from kind's own.
func kindConfig(name string, eng engine, opts Options) (*v1alpha4.Cluster, []string) {
	config := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{APIVersion: "kind.x-k8s.io/v1alpha4", Kind: "Cluster"},
		Name:     name,
	}
	for i := range opts.Nodes {
		role := v1alpha4.WorkerRole
		if i == 0 {
			role = v1alpha4.ControlPlaneRole
		}
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: role, Image: opts.NodeImage})
	}
	// The controller looks at a new autoscaler only after one period. With the default of 15 s a
	// rollout counts as settled before the autoscaler has asked for its minimum of replicas.
	add := func(version, path, value string) {
		config.KubeadmConfigPatchesJSON6902 = append(config.KubeadmConfigPatchesJSON6902, v1alpha4.PatchJSON6902{
			Group: "kubeadm.k8s.io", Version: version, Kind: "ClusterConfiguration",
			Patch: fmt.Sprintf(`[{"op": "add", "path": "/controllerManager/extraArgs/%s", "value": %s}]`, path, value),
		})
	}
	add("v1beta3", "horizontal-pod-autoscaler-sync-period", `"1s"`)
	add("v1beta4", "-", `{"name": "horizontal-pod-autoscaler-sync-period", "value": "1s"}`)
	patches := []string{"kube-controller-manager --horizontal-pod-autoscaler-sync-period=1s: an autoscaler's minimum is asked for at once"}
	if eng.cgroup == "1" {
		config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n")
		patches = append(patches, "kubelet failCgroupV1: false: this host has cgroup v1, which Kubernetes 1.35 and later refuse otherwise")
	}
	return config, patches
}

// start runs kind, which knows no context: when ctx ends, its containers are removed under it, and
// it fails by itself.
func (c *Cluster) start(ctx context.Context, config *v1alpha4.Cluster, opts Options) error {
	provider := kind.NewProvider(kind.ProviderWithDocker())
	done := make(chan error, 1)
	go func() {
		done <- provider.Create(c.Facts.Name,
			kind.CreateWithV1Alpha4Config(config),
			kind.CreateWithKubeconfigPath(c.KubeconfigPath),
			kind.CreateWithRetain(true), // kind's own clean-up goes by name
			kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false))
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return errors.Join(ctx.Err(), c.abort(closing, done))
	}
	if err != nil {
		return &Trouble{
			Code: "cluster-failed", Err: fmt.Errorf("creating the kind cluster: %w", withOutput(err)),
			Do: "see that `kind create cluster --image " + opts.NodeImage + "` works on this host (https://kind.sigs.k8s.io/docs/user/known-issues/)",
		}
	}
	nodes, err := c.containers(ctx, "{{.Names}}")
	if err != nil {
		return err
	}
	if err := wireMirrors(ctx, nodes, opts.Mirrors); err != nil {
		return err
	}
	c.Kubeconfig, err = os.ReadFile(c.KubeconfigPath)
	return err
}

// abort removes the cluster's containers until kind has given up. Where ctx ends first, what kind may
// still make is left behind.
func (c *Cluster) abort(ctx context.Context, done <-chan error) error {
	for {
		err := c.remove(ctx)
		select {
		case <-done: // whatever kind says, what it made is what counts
			return c.remove(ctx)
		case <-ctx.Done():
			return c.leftover(errors.Join(fmt.Errorf("waiting for kind to give up: %w", ctx.Err()), err))
		case <-time.After(200 * time.Millisecond): // kind may be starting the next container
		}
	}
}

// withOutput adds what the failed command printed.
func withOutput(err error) error {
	if run := kindexec.RunErrorForError(err); run != nil {
		return fmt.Errorf("%w: %s", err, tail(string(run.Output), 5))
	}
	return err
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// containers lists the cluster's containers. The label's value has 96 random bits: nobody else's
// container carries it.
func (c *Cluster) containers(ctx context.Context, format string) ([]string, error) {
	out, err := docker(ctx, "", "ps", "--all", "--no-trunc", "--filter", "label=io.x-k8s.kind.cluster="+c.Facts.Name, "--format", format)
	return strings.Fields(out), err
}

func (c *Cluster) remove(ctx context.Context) error {
	ids, err := c.containers(ctx, "{{.ID}}")
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = docker(ctx, "", append([]string{"rm", "--force", "--volumes"}, ids...)...)
	return err
}

// Close removes the cluster and its private folder. What could not be removed is in the error, as
// the commands that remove it.
func (c *Cluster) Close(ctx context.Context) error {
	if err := c.remove(ctx); err != nil {
		return c.leftover(err)
	}
	if err := os.RemoveAll(c.folder); err != nil {
		return &Leftover{Command: "rm -r " + c.folder, Err: err}
	}
	return nil
}

func (c *Cluster) leftover(err error) *Leftover {
	return &Leftover{Command: "docker ps -aq --filter label=io.x-k8s.kind.cluster=" + c.Facts.Name + " | xargs docker rm -fv", Err: err}
}

// Leftover is something that could not be removed, and the command that removes it.
type Leftover struct {
	Command string
	Err     error
}

func (l *Leftover) Error() string {
	return fmt.Sprintf("left behind (%v); remove it with: %s", l.Err, l.Command)
}
func (l *Leftover) Unwrap() error { return l.Err }
