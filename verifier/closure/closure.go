// Package closure finds what a set needs by name and does not hold, and what in it is refused. It
// reads the set alone: no cluster, no network, no clock.
package closure

import (
	"slices"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Options say what the run brings along.
type Options struct {
	// Created are the namespaces that the run itself creates.
	Created []string
	// Target is the namespace of objects that name none. Empty means that it is not known, and then
	// its existence is not checked.
	Target string
}

// need is one thing that an object needs by name.
type need struct {
	// code of the finding when the thing is missing.
	code string
	id   evidence.ID
	// key inside the thing, empty when the whole is needed; keyField leads to it.
	key      string
	keyField []any
	// field leads to the name inside the object that needs it.
	field    []any
	severity evidence.Severity
	message  string
	do       string
}

// Missing lists everything that the objects of the set need by name and that is neither in the set nor
// made from it, nor always there by a rule of rules.go; it also lists the encrypted objects and the
// built-in versions that Kubernetes has removed. One finding stands for one missing thing, needing
// object and field. The order is that of evidence.SortFindings.
func Missing(set *evidence.Set, opts Options) []evidence.Finding {
	world := newWorld(set, opts)
	var findings []evidence.Finding
	for i := range set.Objects {
		object := &set.Objects[i]
		findings = append(findings, encrypted(object)...)
		findings = append(findings, removed(object)...)
		for _, need := range world.needs(object) {
			if finding, missing := world.judge(object, need); missing {
				findings = append(findings, finding)
			}
		}
	}
	return sorted(findings)
}

// needs applies every extractor to one object.
func (w *world) needs(object *evidence.Object) []need {
	ns := w.namespace(object)
	var needs []need
	add := func(n need) {
		if n.id.Name != "" {
			needs = append(needs, n)
		}
	}
	for _, pod := range object.PodSpecs() {
		for _, extract := range podExtractors {
			extract(pod, ns, add)
		}
	}
	root := node{value: object.Content}
	for _, rule := range objectExtractors {
		if rule.matches(object.ID) {
			rule.extract(root, ns, add)
		}
	}
	w.ownNeeds(object, ns, add)
	return needs
}

// judge decides whether a need is met.
func (w *world) judge(object *evidence.Object, n need) (evidence.Finding, bool) {
	finding := evidence.Finding{
		Code:     n.code,
		Severity: n.severity,
		Object:   n.id.String(),
		NeededBy: object.ID.String(),
		Field:    evidence.FieldPath(n.field...),
		Origin:   object.At(n.field...),
		Message:  n.message,
		Do:       n.do,
	}
	if finding.Severity == "" {
		finding.Severity = evidence.Fail
	}
	if finding.Message == "" {
		finding.Message = "not in the repository"
	}
	if n.key != "" {
		finding.Object += " key " + n.key
	}
	there, ok := w.find(n.id)
	switch {
	case !ok:
		if finding.Do == "" {
			finding.Do = "add it to the repository" + w.suggest(n.id)
		}
		return finding, true
	case n.key == "" || there == nil || !hasData(there) || hasKey(there, n.key):
		return evidence.Finding{}, false
	}
	finding.Code = "missing-key"
	finding.Field = evidence.FieldPath(n.keyField...)
	finding.Origin = object.At(n.keyField...)
	finding.Message = n.id.String() + " is in the repository, this key is not in it"
	finding.Do = "add the key to " + n.id.Kind + " " + n.id.Name + didYouMean(nearest(n.key, keysOf(there)))
	return finding, true
}

// sorted orders findings fully and drops repeated ones.
func sorted(findings []evidence.Finding) []evidence.Finding {
	slices.SortStableFunc(findings, func(a, b evidence.Finding) int {
		return slices.Compare(
			[]string{a.NeededBy, a.Field, a.Origin.File},
			[]string{b.NeededBy, b.Field, b.Origin.File})
	})
	evidence.SortFindings(findings)
	type identity struct{ code, object, needer, field string }
	seen := map[identity]bool{}
	return slices.DeleteFunc(findings, func(f evidence.Finding) bool {
		id := identity{f.Code, f.Object, f.NeededBy, f.Field}
		twice := seen[id]
		seen[id] = true
		return twice
	})
}
