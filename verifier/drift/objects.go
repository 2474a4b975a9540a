package drift

import (
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// objects looks for what is live and not in Git. Explained is what was there before, what the set
// declares, what an owner chain leads to one of those from, and what a listed rule covers.
func (c *comparison) objects() {
	for _, o := range c.in.Now.Objects {
		if c.accounted(o) || c.ownedByAccounted(o) {
			continue
		}
		explained := false
		for _, r := range objectRules {
			if r.object(c, o) {
				c.rules[r.Name]++
				explained = true
				break
			}
		}
		if !explained {
			c.add(evidence.Difference{Question: "object", Object: o.ID, Change: "extra"})
		}
	}
}

// accounted: it was there before the first repeat, or Git declares it.
func (c *comparison) accounted(o evidence.Listed) bool { return c.before[o.UID] || c.declared[o.ID] }

// ownedByAccounted follows ownerReferences upwards; every step must exist now.
func (c *comparison) ownedByAccounted(o evidence.Listed) bool {
	seen := map[string]bool{}
	for queue := o.Owners; len(queue) > 0; queue = queue[1:] {
		owner, there := c.now[queue[0]]
		if !there || seen[owner.UID] {
			continue
		}
		seen[owner.UID] = true
		if c.accounted(owner) {
			return true
		}
		queue = append(queue, owner.Owners...)
	}
	return false
}

// uidIsExplained tells whether a live claim of that UID is accounted for itself.
func (c *comparison) uidIsExplained(uid string) bool {
	o, there := c.now[uid]
	return there && o.Kind == "PersistentVolumeClaim" && (c.accounted(o) || c.ownedByAccounted(o) || c.claimOfStatefulSet(o.ID))
}

// Clean compares the cluster after a clean-up with what was there before the first repeat. What
// Kubernetes made meanwhile for itself is no leftover: its owner was there before, or it is one of
// its leases or node states.
func Clean(before, after evidence.Inventory) evidence.Cleaning {
	cleaning := evidence.Cleaning{Listed: after.Kinds, Unread: after.Unread}
	c := newComparison(Input{Set: &evidence.Set{}, Before: before, Now: after})
	c.objects()
	for _, d := range c.result.Differences {
		cleaning.Left = append(cleaning.Left, d.Object)
	}
	if len(after.Unread) > 0 {
		return cleaning // what could not be read is not lost
	}
	for _, b := range before.Objects {
		o, there := c.now[b.UID]
		switch {
		case there && (o.Generation == b.Generation && o.Version == b.Version || b.Kind == "EndpointSlice"):
		case there:
			cleaning.Left = append(cleaning.Left, b.ID) // its spec was changed and stayed so
		case len(b.Owners) == 0 && !strings.HasPrefix(b.Group, "coordination.k8s.io"):
			cleaning.Lost = append(cleaning.Lost, b.ID)
		}
	}
	return cleaning
}
