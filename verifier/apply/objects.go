package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	crds            = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// stage orders the set by what needs what: what others live in or are made of first, what stands in
// everybody's way (admission) last.
func stage(id evidence.ID) int {
	switch id.Group + "/" + id.Kind {
	case "/Namespace", "apiextensions.k8s.io/CustomResourceDefinition":
		return 0
	case "/ServiceAccount", "/ConfigMap", "/Secret", "/PersistentVolume", "/PersistentVolumeClaim", "/ResourceQuota", "/LimitRange",
		"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/ClusterRole", "scheduling.k8s.io/PriorityClass",
		"storage.k8s.io/StorageClass", "node.k8s.io/RuntimeClass", "networking.k8s.io/IngressClass":
		return 1
	case "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRoleBinding", "/Service":
		return 2
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return 4
	}
	return 3
}

// Apply sends every object once by server-side apply, in stages, as Git has it: strict about
// unknown fields and never forcing a conflict. Before workloads it waits for what Kubernetes puts
// into each new namespace, and for definitions to be served. The answers come back object by
// object, in the order in which they were sent; after a stage with a refusal the later stages are
// still sent, so that every refusal is known. The error is trouble, not a refusal.
func (c *Client) Apply(ctx context.Context, set *evidence.Set) ([]evidence.Applied, error) {
	var answers []evidence.Applied
	for number := range 5 {
		var batch []*evidence.Object
		for i := range set.Objects {
			if stage(set.Objects[i].ID) == number {
				batch = append(batch, &set.Objects[i])
			}
		}
		results := make([]evidence.Applied, len(batch))
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(workers)
		for i, object := range batch {
			group.Go(func() (err error) {
				results[i], err = c.applyOne(groupCtx, object)
				return err
			})
		}
		err := group.Wait()
		answers = append(answers, results...)
		if err == nil && number == 0 {
			err = c.settleGround(ctx, set, results)
		}
		if err != nil {
			return answers, err
		}
	}
	return answers, nil
}

func (c *Client) applyOne(ctx context.Context, object *evidence.Object) (evidence.Applied, error) {
	answer := evidence.Applied{Object: object.ID}
	_, err := c.send(ctx, object, metav1.PatchOptions{FieldManager: Manager, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return answer, nil
	}
	answer.Error, answer.Reason = err.Error(), string(apierrors.ReasonForError(err))
	if troubled(ctx, err) {
		answer.Reason = evidence.ReasonTrouble
		return answer, fmt.Errorf("applying %s: %w", object.ID, err)
	}
	return answer, nil
}

// storageTrouble tells the server's own internal errors from those that judge the object: a field that
// the schema lacks is "failed to create typed patch object", and an internal error as well.
var storageTrouble = regexp.MustCompile(`etcdserver|context deadline exceeded|context canceled|connection refused|connection reset|transport is closing|timed out`)

// troubled tells trouble between us and the server from the server's judgement of an object.
func troubled(ctx context.Context, err error) bool {
	if ctx.Err() != nil || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
		return true
	}
	if apierrors.IsInternalError(err) && storageTrouble.MatchString(err.Error()) && !strings.Contains(err.Error(), "failed calling webhook") {
		return true
	}
	var judged apierrors.APIStatus
	return !errorsAs(err, &judged) && !isNoMatch(err)
}

// send applies an object; options may make it a dry-run.
func (c *Client) send(ctx context.Context, object *evidence.Object, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	resource, err := c.resource(object.APIVersion, object.ID)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object.Content)
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, object.Name, applyPatch, body, options)
}

// settleGround waits until the new namespaces and definitions can be used.
func (c *Client) settleGround(ctx context.Context, set *evidence.Set, results []evidence.Applied) error {
	group, waiting := errgroup.WithContext(ctx)
	established := false
	for _, r := range results {
		if r.Error != "" || r.Object.Kind != "CustomResourceDefinition" {
			continue
		}
		established = true
		group.Go(func() error {
			err := c.await(waiting, crds, "", r.Object.Name, func(event watch.Event) (bool, error) {
				return conditionTrue(event.Object, "Established"), nil
			})
			if err != nil {
				return fmt.Errorf("waiting for %s to be established: %w", r.Object, err)
			}
			return nil
		})
	}
	for _, namespace := range set.Namespaces() {
		group.Go(func() error { return c.awaitNamespace(waiting, namespace) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if established {
		return c.awaitServed(ctx, set)
	}
	return nil
}

// servedLimit is how long an established definition may take to show in discovery.
const servedLimit = 30 * time.Second

// awaitServed waits until discovery shows every kind that the set defines and uses. Discovery cannot
// be watched, and lags behind the Established condition.
func (c *Client) awaitServed(ctx context.Context, set *evidence.Set) error {
	ctx, cancel := context.WithTimeout(ctx, servedLimit)
	defer cancel()
	for _, o := range set.Objects {
		if !set.Defines(o.Group, o.Kind) {
			continue
		}
		for {
			_, err := c.mapping(o.APIVersion, o.Kind)
			if err == nil {
				break
			}
			if !isNoMatch(err) {
				return err
			}
			select {
			case <-time.After(100 * time.Millisecond):
				c.mapper.Reset()
			case <-ctx.Done():
				return nil // the definition may lack this version: applying the object will tell
			}
		}
	}
	return nil
}

// awaitNamespace waits for what Kubernetes itself puts into a namespace and Pods need.
func (c *Client) awaitNamespace(ctx context.Context, namespace string) error {
	there := func(event watch.Event) (bool, error) { return event.Type != watch.Deleted, nil }
	if err := c.await(ctx, serviceAccounts, namespace, "default", there); err != nil {
		return fmt.Errorf("waiting for ServiceAccount/%s/default: %w", namespace, err)
	}
	if err := c.await(ctx, configMaps, namespace, "kube-root-ca.crt", there); err != nil {
		return fmt.Errorf("waiting for ConfigMap/%s/kube-root-ca.crt: %w", namespace, err)
	}
	return nil
}

// CreateNamespaces makes the namespaces that the run itself provides.
func (c *Client) CreateNamespaces(ctx context.Context, names []string) error {
	for _, name := range names {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := c.dynamic.Resource(namespaces).Create(ctx, object, metav1.CreateOptions{FieldManager: Manager}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}

func conditionTrue(object runtime.Object, kind string) bool {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == kind && m["status"] == "True"
	})
}

func convert(object runtime.Object, into any) error {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a watch delivered %T", object)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

func sortBy[T any](list []T, key func(T) string) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// watchFunc lets a function be the watcher that a RetryWatcher asks for.
type watchFunc func(metav1.ListOptions) (watch.Interface, error)

func (f watchFunc) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(options)
}

var _ cache.WatcherWithContext = watchFunc(nil)
