package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// pause waits before a failed request is sent again; it is false when ctx ended.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(time.Second):
		return true
	case <-ctx.Done():
		return false
	}
}

// Clean takes the set away: the namespaces it made or were made for it, with all in them, and each
// object outside of those. It returns when all of that is gone. Workloads are deleted by name
// beside their namespace, so that their Pods are gone when the namespace controller looks (it waits
// five seconds, and half a grace period more while it finds a Pod).
func (c *Client) Clean(ctx context.Context, set *evidence.Set, created []string) error {
	own := slices.Clone(created)
	for _, o := range set.Objects {
		if o.Kind == "Namespace" && o.Group == "" {
			own = append(own, o.Name)
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, name := range own {
		group.Go(func() error {
			return ignoreNotFound(c.dynamic.Resource(namespaces).Delete(groupCtx, name, metav1.DeleteOptions{}))
		})
		group.Go(func() error {
			pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
			return ignoreNotFound(c.dynamic.Resource(pods).Namespace(name).DeleteCollection(groupCtx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		})
	}
	var alone []evidence.ID // objects that go by themselves
	for i := range set.Objects {
		o := &set.Objects[i]
		if (o.Kind == "Namespace" && o.Group == "") || (slices.Contains(own, o.Namespace) && !workload(o.ID)) {
			continue
		}
		if !slices.Contains(own, o.Namespace) {
			alone = append(alone, o.ID)
		}
		group.Go(func() error {
			resource, err := c.resource(o.APIVersion, o.ID)
			if err != nil {
				if isNoMatch(err) { // it was refused for that reason and is not there
					return nil
				}
				return err
			}
			return ignoreNotFound(resource.Delete(groupCtx, o.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("deleting what was applied: %w", err)
	}
	group, groupCtx = errgroup.WithContext(ctx)
	for _, name := range own {
		group.Go(func() error { return c.awaitGone(groupCtx, name) })
	}
	group.Go(func() error { return c.AwaitGone(groupCtx, alone) })
	if err := group.Wait(); err != nil {
		return err
	}
	c.mapper.Reset() // definitions of the set are gone
	return nil
}

func workload(id evidence.ID) bool {
	return id.Group == "apps" || id.Group == "batch" || id.Kind == "ReplicationController" || id.Kind == "HorizontalPodAutoscaler"
}

func (c *Client) awaitGone(ctx context.Context, namespace string) error {
	err := c.await(ctx, namespaces, "", namespace, func(event watch.Event) (bool, error) {
		return event.Type == watch.Deleted, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for namespace %s to go: %w", namespace, err)
	}
	return nil
}

// AwaitGone waits until none of the objects is there any more.
func (c *Client) AwaitGone(ctx context.Context, ids []evidence.ID) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, id := range ids {
		group.Go(func() error {
			m, err := c.mapper.RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
			if isNoMatch(err) {
				_, err = c.cache.ServerPreferredResources() // fails where any group cannot be read
				return err                                  // nil: its definition is gone, and all of its objects
			}
			if err != nil {
				return err
			}
			return c.await(ctx, m.Resource, id.Namespace, id.Name, func(event watch.Event) (bool, error) {
				return event.Type == watch.Deleted, nil
			})
		})
	}
	return group.Wait()
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
