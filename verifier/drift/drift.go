// Package drift answers the four questions of live against Git, from recorded facts alone: declared
// fields, foreign fields, objects, running bits. It reaches no cluster.
package drift

import (
	"encoding/json"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Input is what a repeat read from the cluster, and what there was before.
type Input struct {
	Set  *evidence.Set
	Live []evidence.Live
	// Before is the cluster's inventory before the first repeat, Now the one of this repeat.
	Before, Now evidence.Inventory
	Images      []evidence.Image
	Containers  []evidence.Container
	// Namespaces are those that the run created and Git does not declare.
	Namespaces []string
	// Stubs are the objects that the run applied beside the set.
	Stubs []evidence.ID
	// Mask stands in for a secret value; the same value gives the same text within a run.
	Mask func(string) string
}

// Compare answers the four questions.
func Compare(in Input) evidence.Comparison {
	c := newComparison(in)
	for i, live := range in.Live {
		c.object(&in.Set.Objects[i], live)
	}
	c.objects()
	c.bits()
	for _, r := range slices.Concat(fieldRules, objectRules, []rule{freshRule}) {
		if n := c.rules[r.Name]; n > 0 {
			c.result.Rules = append(c.result.Rules, evidence.Rule{Name: r.Name, Reason: r.Reason, Count: n})
		}
	}
	slices.SortStableFunc(c.result.Differences, func(a, b evidence.Difference) int {
		if n := a.Object.Compare(b.Object); n != 0 {
			return n
		}
		return strings.Compare(a.Field, b.Field)
	})
	return c.result
}

type comparison struct {
	in     Input
	result evidence.Comparison
	// rules counts how often each listed rule applied.
	rules map[string]int
	// before holds the UIDs that were there before the first repeat, declared the set's IDs, now the
	// live objects by UID.
	before   map[string]bool
	declared map[evidence.ID]bool
	now      map[string]evidence.Listed
}

func newComparison(in Input) *comparison {
	c := &comparison{
		in: in, rules: map[string]int{}, before: map[string]bool{}, declared: map[evidence.ID]bool{}, now: map[string]evidence.Listed{},
		result: evidence.Comparison{Listed: in.Now.Kinds, Unread: slices.Clone(in.Now.Unread), Differences: []evidence.Difference{}},
	}
	for _, o := range in.Before.Objects {
		c.before[o.UID] = true
	}
	for _, o := range in.Set.Objects {
		c.declared[o.ID] = true
	}
	for _, o := range in.Now.Objects {
		c.now[o.UID] = o
	}
	return c
}

func (c *comparison) add(d evidence.Difference) {
	c.result.Differences = append(c.result.Differences, d)
}

// object settles the declared and the foreign fields of one object: Git applied once more against
// live, then what others own, then what nobody owns and no default explains.
func (c *comparison) object(object *evidence.Object, live evidence.Live) {
	switch {
	case live.Error != "":
		c.result.Unread = append(c.result.Unread, object.ID.String()+": "+live.Error)
		return
	case live.Missing:
		c.add(evidence.Difference{Question: "object", Object: object.ID, Origin: object.Origin, Change: "missing"})
		return
	}
	if live.Content == nil || live.Again == nil {
		c.result.Unread = append(c.result.Unread, object.ID.String()+": it was not read")
		return
	}
	c.result.Compared++
	owners := readOwners(live.Content)
	keys := listKeys(live.Content, live.Again)
	changed := diff(live.Again, live.Content, keys)
	for _, d := range changed {
		who := owners.of(d.path)
		if c.explained(object, d.path, who, true) {
			continue
		}
		c.add(evidence.Difference{
			Question: "declared", Object: object.ID, Field: d.path.String(), Origin: object.At(d.path.plain()...), Change: d.change,
			Git: c.show(object, d.path, d.git), Live: c.show(object, d.path, d.live), Manager: who.manager, Time: who.time,
		})
	}
	told := func(p path) bool {
		return slices.ContainsFunc(changed, func(d delta) bool { return d.path.within(p) || p.within(d.path) })
	}
	foreign := owners.foreign()
	for _, f := range foreign {
		if told(f.path) || c.explained(object, f.path, f.owner, false) {
			continue
		}
		value, _ := f.path.lookup(live.Content)
		c.add(evidence.Difference{
			Question: "foreign", Object: object.ID, Field: f.path.String(), Origin: object.At(f.path.plain()...), Change: "added",
			Live: c.show(object, f.path, value), Manager: f.owner.manager, Time: f.owner.time,
		})
	}
	if live.Fresh == nil {
		c.rules[freshRule.Name]++
		return
	}
	for _, d := range diff(live.Fresh, live.Content, keys) {
		who := owners.of(d.path)
		if d.git == evidence.FreshName && d.live == object.Name {
			continue // the name itself, also where the server repeats it in a label
		}
		owned := func(f foreignField) bool { return d.path.within(f.path) || f.path.within(d.path) }
		if told(d.path) || slices.ContainsFunc(foreign, owned) || c.explained(object, d.path, who, false) {
			continue
		}
		c.add(evidence.Difference{
			Question: "foreign", Object: object.ID, Field: d.path.String(), Origin: object.At(d.path.plain()...), Change: "undeclared",
			Git: c.show(object, d.path, d.git), Live: c.show(object, d.path, d.live), Manager: who.manager, Time: who.time,
		})
	}
}

// explained tells whether a listed rule covers the field, and counts it. Few cover a declared one.
func (c *comparison) explained(object *evidence.Object, p path, who owner, declared bool) bool {
	for _, r := range fieldRules {
		if (r.declared || !declared) && r.field(c.in.Set, object, p, who) {
			c.rules[r.Name]++
			return true
		}
	}
	return false
}

// show writes a value in one line; what may be secret is masked.
func (c *comparison) show(object *evidence.Object, p path, value any) string {
	if value == nil {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil {
			return err.Error()
		}
		text = string(encoded)
	}
	if object.Kind == "Secret" && object.Group == "" && p.mayHoldSecret() {
		return c.in.Mask(text)
	}
	return text
}

// bits compares what runs with what the registry proved.
func (c *comparison) bits() {
	locked := map[string]evidence.Image{}
	for _, image := range c.in.Images {
		locked[image.Reference] = image
	}
	for _, container := range c.in.Containers {
		image, known := locked[container.Reference]
		d := evidence.Difference{
			Question: "bits", Object: container.Pod, Field: container.Name, Change: "changed", Live: container.Digest,
		}
		switch {
		case !known:
			d.Change, d.Live = "extra", container.Reference+" "+container.Digest
			c.add(d)
		case !image.Resolved() || (container.Digest == "" && !container.Ready):
			// Nothing to compare: the verdict knows of the image, or of the Pod that is not ready.
		case container.Digest == "":
			c.result.Unread = append(c.result.Unread, container.Pod.String()+" "+container.Name+": the runtime reports no image digest ("+container.ImageID+")")
		case container.Digest != image.Index && container.Digest != image.Manifest && container.Digest != image.Config:
			d.Git = image.Top()
			if len(image.Uses) > 0 {
				d.Origin = image.Uses[0].Origin
			}
			c.add(d)
		}
	}
}
