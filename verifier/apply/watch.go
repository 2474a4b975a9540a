package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

type runtimeObject = runtime.Object

// WatchPods delivers every state of every Pod and Event in the set's namespaces, from now until ctx
// ends. A watch that breaks lists again and delivers a Gap first.
func (c *Client) WatchPods(ctx context.Context, set *evidence.Set, changes chan<- evidence.Change) {
	for _, namespace := range set.Namespaces() {
		for _, resource := range []string{"pods", "events"} {
			go c.follow(ctx, schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace, changes)
		}
	}
}

// WatchSet does the same for every object of the set's kinds in its namespaces. The server must
// serve all these kinds by now.
func (c *Client) WatchSet(ctx context.Context, set *evidence.Set, changes chan<- evidence.Change) error {
	type source struct {
		gvr       schema.GroupVersionResource
		namespace string
	}
	sources := map[source]bool{}
	for _, o := range set.Objects {
		m, err := c.mapping(o.APIVersion, o.Kind)
		if err != nil {
			return err
		}
		if o.Kind != "Pod" || o.Group != "" {
			sources[source{m.Resource, o.Namespace}] = true
		}
	}
	for s := range sources {
		go c.follow(ctx, s.gvr, s.namespace, changes)
	}
	return nil
}

// follow lists and watches one kind in one namespace until ctx ends.
func (c *Client) follow(ctx context.Context, gvr schema.GroupVersionResource, namespace string, changes chan<- evidence.Change) {
	deliver := func(change evidence.Change) bool {
		select {
		case changes <- change:
			return true
		case <-ctx.Done():
			return false
		}
	}
	resource := c.dynamic.Resource(gvr).Namespace(namespace)
	for ctx.Err() == nil {
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			if !deliver(evidence.Change{Gap: fmt.Sprintf("listing %s: %v", gvr.Resource, err)}) || !pause(ctx) {
				return
			}
			continue
		}
		for i := range list.Items {
			if !deliver(evidence.Change{Content: list.Items[i].Object}) {
				return
			}
		}
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watchFunc(func(options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		}))
		if err == nil {
			err = drain(watcher, deliver)
			watcher.Stop()
		}
		if err != nil && ctx.Err() == nil && (!deliver(evidence.Change{Gap: fmt.Sprintf("watching %s: %v", gvr.Resource, err)}) || !pause(ctx)) {
			return
		}
	}
}

func drain(watcher watch.Interface, deliver func(evidence.Change) bool) error {
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			u, ok := event.Object.(*unstructured.Unstructured)
			if ok && !deliver(evidence.Change{Content: u.Object, Gone: event.Type == watch.Deleted}) {
				return nil
			}
		case watch.Error:
			return fmt.Errorf("%v", event.Object)
		}
	}
	return fmt.Errorf("the watch ended")
}
