package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

const applyPatch = types.ApplyPatchType

func errorsAs(err error, target any) bool { return errors.As(err, target) }

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }

// Read reads every object of the set back, and asks the server what it would be if Git's text were
// applied once more. One entry an object, in the set's order; a refusal or a failure is in it.
func (c *Client) Read(ctx context.Context, set *evidence.Set) []evidence.Live {
	list := make([]evidence.Live, len(set.Objects))
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range set.Objects {
		group.Go(func() error {
			list[i] = c.readOne(ctx, &set.Objects[i])
			return nil
		})
	}
	_ = group.Wait() // the functions return none
	return list
}

func (c *Client) readOne(ctx context.Context, object *evidence.Object) evidence.Live {
	live := c.readTwice(ctx, object)
	if live.Content == nil {
		return live
	}
	var err error
	if live.Fresh, err = c.fresh(ctx, object); err != nil {
		live.FreshError = err.Error()
	}
	return live
}

// fresh is what the server would make of Git's text under a name that nothing has. The scale
// subresource (seen with kubectl scale and with autoscalers on 1.37) leaves no managedFields entry,
// so that who owns a field cannot tell everything that was written.
func (c *Client) fresh(ctx context.Context, object *evidence.Object) (map[string]any, error) {
	switch object.Group + "/" + object.Kind {
	case "apiextensions.k8s.io/CustomResourceDefinition", "apiregistration.k8s.io/APIService":
		return nil, errors.New("the server takes this kind under its own name only")
	}
	renamed := *object
	renamed.Name = evidence.FreshName
	renamed.Content = maps.Clone(object.Content)
	meta, _ := object.Content["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["name"] = renamed.Name
	renamed.Content["metadata"] = meta
	made, err := c.send(ctx, &renamed, metav1.PatchOptions{FieldManager: Manager, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return made.Object, nil
}

// readTwice reads the object, and what applying it once more would give.
func (c *Client) readTwice(ctx context.Context, object *evidence.Object) evidence.Live {
	live := evidence.Live{Object: object.ID}
	resource, err := c.resource(object.APIVersion, object.ID)
	if err == nil {
		// The dry-run is made between two reads of one resourceVersion, so that both speak of one state.
		for range 5 {
			before, getErr := resource.Get(ctx, object.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(getErr) {
				live.Missing = true
				return live
			}
			if err = getErr; err != nil {
				break
			}
			again, dryErr := c.send(ctx, object, metav1.PatchOptions{
				FieldManager: Manager, DryRun: []string{metav1.DryRunAll}, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict,
			})
			if err = dryErr; err != nil {
				break
			}
			if again.GetUID() == before.GetUID() && again.GetResourceVersion() == before.GetResourceVersion() {
				live.Content, live.Again = before.Object, again.Object
				return live
			}
			err = errors.New("it changed while it was read, five times")
		}
	}
	live.Error = err.Error()
	return live
}

// Inventory lists every object of every kind that can be listed, as metadata only. Events are left
// out: they come and go by themselves. A kind that could not be listed is in Unread, never absent.
func (c *Client) Inventory(ctx context.Context) evidence.Inventory {
	var inventory evidence.Inventory
	c.cache.Invalidate()
	lists, err := c.cache.ServerPreferredResources()
	if err != nil {
		var partial *discovery.ErrGroupDiscoveryFailed
		if !errors.As(err, &partial) {
			inventory.Unread = append(inventory.Unread, "discovery: "+err.Error())
		} else {
			for gv, err := range partial.Groups {
				inventory.Unread = append(inventory.Unread, gv.String()+": "+err.Error())
			}
		}
	}
	var mutex sync.Mutex
	var group errgroup.Group
	group.SetLimit(workers)
	for _, list := range lists {
		for _, resource := range list.APIResources {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil || resource.Kind == "Event" || strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") || gv.Group == "metrics.k8s.io" {
				continue
			}
			group.Go(func() error {
				objects, err := c.listKind(ctx, gv.WithResource(resource.Name), resource.Kind)
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					inventory.Unread = append(inventory.Unread, fmt.Sprintf("%s.%s: %v", resource.Name, gv.Group, err))
					return nil
				}
				inventory.Kinds++
				inventory.Objects = append(inventory.Objects, objects...)
				return nil
			})
		}
	}
	_ = group.Wait() // failures are in Unread
	sortBy(inventory.Objects, func(o evidence.Listed) string { return o.ID.String() + "\x00" + o.UID })
	sortBy(inventory.Unread, func(s string) string { return s })
	return inventory
}

func (c *Client) listKind(ctx context.Context, gvr schema.GroupVersionResource, kind string) ([]evidence.Listed, error) {
	var objects []evidence.Listed
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtimeObject, error) {
		return c.metadata.Resource(gvr).List(ctx, options)
	})
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(object runtimeObject) error {
		m, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a list holds %T", object)
		}
		listed := evidence.Listed{
			ID:  evidence.ID{Group: gvr.Group, Kind: kind, Namespace: m.Namespace, Name: m.Name},
			UID: string(m.UID), Generation: m.Generation,
		}
		if gvr.Group == "" && (kind == "ConfigMap" || kind == "Secret") {
			listed.Version = m.ResourceVersion
		}
		for _, owner := range m.OwnerReferences {
			listed.Owners = append(listed.Owners, string(owner.UID))
		}
		objects = append(objects, listed)
		return nil
	})
	return objects, err
}
