// Package apply speaks to the API server: it brings the set into the cluster, watches it, reads it
// back, lists everything there is, and takes it away again. It judges nothing.
package apply

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Manager is the field manager under which Git's fields are applied.
const Manager = "rebuild-check"

// workers bounds the requests in flight; the API server's own priority levels do the rest.
const workers = 16

func init() {
	// client-go logs what it also returns; errors come back to the caller here, and nothing is told twice.
	klog.SetLogger(logr.Discard())
}

// Client is a connection to one API server.
type Client struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	typed    kubernetes.Interface
	cache    discovery.CachedDiscoveryInterface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
}

// Connect makes a client from the bytes of a kubeconfig. It sends nothing yet.
func Connect(kubeconfig []byte) (*Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1 // no limit of the client's own: the server's priority and fairness rules
	config.UserAgent = Manager
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = 0
	c := &Client{}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c.typed = typed
	c.cache = memory.NewMemCacheClient(typed.Discovery())
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.cache)
	return c, nil
}

// WaitReady waits until as many nodes as asked for are Ready, and gives the server's version and
// the nodes.
func (c *Client) WaitReady(ctx context.Context, count int) (string, []evidence.Node, error) {
	version, err := c.cache.ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	ready := map[string]evidence.Node{}
	see := func(node *corev1.Node, gone bool) bool {
		delete(ready, node.Name)
		if gone {
			return false
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				info := node.Status.NodeInfo
				ready[node.Name] = evidence.Node{
					Name: node.Name, Platform: info.OperatingSystem + "/" + info.Architecture, Kernel: info.KernelVersion,
					Runtime: info.ContainerRuntimeVersion, Kubelet: info.KubeletVersion,
				}
			}
		}
		return len(ready) >= count
	}
	err = c.await(ctx, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", "", func(event watch.Event) (bool, error) {
		node := &corev1.Node{}
		if err := convert(event.Object, node); err != nil {
			return false, err
		}
		return see(node, event.Type == watch.Deleted), nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("waiting for %d ready nodes (%d are): %w", count, len(ready), err)
	}
	var nodes []evidence.Node
	for _, node := range ready {
		nodes = append(nodes, node)
	}
	sortBy(nodes, func(n evidence.Node) string { return n.Name })
	return version.GitVersion, nodes, nil
}

// await lists, then watches, until done says so. name narrows to one object, which counts as
// deleted where the list lacks it; namespace "" is all.
func (c *Client) await(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, done watchtools.ConditionFunc) error {
	options := metav1.ListOptions{}
	if name != "" {
		options.FieldSelector = "metadata.name=" + name
	}
	resource := c.dynamic.Resource(gvr).Namespace(namespace)
	list, err := resource.List(ctx, options)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if ok, err := done(watch.Event{Type: watch.Added, Object: &list.Items[i]}); ok || err != nil {
			return err
		}
	}
	if name != "" && len(list.Items) == 0 {
		if ok, err := done(watch.Event{Type: watch.Deleted}); ok || err != nil {
			return err
		}
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watchFunc(func(opts metav1.ListOptions) (watch.Interface, error) {
		opts.FieldSelector = options.FieldSelector
		return resource.Watch(ctx, opts)
	}))
	if err != nil {
		return err
	}
	_, err = watchtools.UntilWithoutRetry(ctx, watcher, done)
	return err
}

// mapping is where the server serves a kind. The mapper takes a group whose discovery failed for one
// that is not there, so that its "no such kind" counts only where the server itself says the same.
func (c *Client) mapping(apiVersion, kind string) (*meta.RESTMapping, error) {
	group, version := evidence.SplitAPIVersion(apiVersion)
	gk := schema.GroupKind{Group: group, Kind: kind}
	m, err := c.mapper.RESTMapping(gk, version)
	if isNoMatch(err) {
		served, askErr := c.serves(apiVersion, kind)
		if askErr != nil {
			return nil, fmt.Errorf("asking what %s serves: %w", apiVersion, askErr)
		}
		if served {
			c.mapper.Reset()
			m, err = c.mapper.RESTMapping(gk, version)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster serves no %s in %s: %w", kind, apiVersion, err)
	}
	return m, nil
}

// serves asks the server itself, past all caches.
func (c *Client) serves(apiVersion, kind string) (bool, error) {
	list, err := c.typed.Discovery().ServerResourcesForGroupVersion(apiVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }), nil
}

// resource is the server's endpoint for one object.
func (c *Client) resource(apiVersion string, id evidence.ID) (dynamic.ResourceInterface, error) {
	m, err := c.mapping(apiVersion, id.Kind)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(m.Resource), nil
	}
	return c.dynamic.Resource(m.Resource).Namespace(id.Namespace), nil
}

// Log is the end of a container's log, at most lines lines: of the run before the last restart
// where previous is true.
func (c *Client) Log(ctx context.Context, pod evidence.ID, container string, previous bool, lines int64) ([]string, error) {
	limit := int64(64 << 10)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := c.typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: &lines, LimitBytes: &limit,
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, limit))
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil, nil
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n"), nil
}
