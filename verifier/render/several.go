package render

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// All renders several paths in their order and makes one set of them, as Render does for one. An
// object that two of them give is a finding, as it is within one.
func All(ctx context.Context, tree Tree, list []Options) (*evidence.Set, []evidence.Finding, error) {
	if len(list) == 1 {
		return Render(ctx, tree, list[0])
	}
	whole := &evidence.Set{Objects: []evidence.Object{}}
	var findings []evidence.Finding
	var renderers, versions, paths []string
	first := map[evidence.ID]evidence.Origin{}
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for _, opts := range list {
		set, found, err := Render(ctx, tree, opts)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range found {
			if !slices.Contains(findings, f) { // two paths may stand on one base
				findings = append(findings, f)
			}
		}
		own := map[evidence.ID]bool{}
		for _, o := range set.Objects {
			if origin, twice := first[o.ID]; twice && !own[o.ID] {
				findings = append(findings, evidence.Finding{Code: "duplicate-object", Severity: evidence.Fail, Object: o.ID.String(), Origin: o.Origin,
					Message: fmt.Sprintf("path %s gives the object of %s once more", set.Path, origin), Do: "remove one"})
			}
			own[o.ID] = true
			if o.Name != "" {
				first[o.ID] = o.Origin
			}
		}
		whole.Objects, whole.Skipped = append(whole.Objects, set.Objects...), append(whole.Skipped, set.Skipped...)
		add(&renderers, set.Renderer)
		add(&versions, set.Version)
		add(&paths, set.Path)
	}
	whole.Renderer, whole.Version, whole.Path = strings.Join(renderers, ", "), strings.Join(versions, ", "), strings.Join(paths, ", ")
	return finish(whole, findings)
}
