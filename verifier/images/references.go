// Package images resolves the image references of a set at their registries, cold: whatever a node or
// an engine has cached plays no part. It pulls no layer.
package images

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// References lists every image that a Pod spec of the set names, at any depth: init, ordinary and
// ephemeral containers, and image volumes. Each distinct text is one entry, sorted, with all its uses
// in the order of the set.
func References(set *evidence.Set) []evidence.Image {
	uses := map[string][]evidence.Use{}
	for i := range set.Objects {
		object := &set.Objects[i]
		add := func(value any, path ...any) {
			if reference, ok := value.(string); ok && reference != "" {
				uses[reference] = append(uses[reference], evidence.Use{
					Object: object.ID, Field: evidence.FieldPath(path...), Origin: object.At(path...),
				})
			}
		}
		for _, pod := range object.PodSpecs() {
			for _, container := range pod.Containers() {
				add(container.Spec["image"], append(slices.Clone(container.Path), "image")...)
			}
			volumes, _ := pod.Spec["volumes"].([]any)
			for i, item := range volumes {
				volume, _ := item.(map[string]any)
				image, _ := volume["image"].(map[string]any)
				add(image["reference"], append(slices.Clone(pod.Path), "volumes", i, "image", "reference")...)
			}
		}
	}
	list := make([]evidence.Image, 0, len(uses))
	for _, reference := range slices.Sorted(maps.Keys(uses)) {
		list = append(list, evidence.Image{Reference: reference, Pinned: strings.Contains(reference, "@"), Uses: uses[reference]})
	}
	return list
}

// The grammar of https://pkg.go.dev/github.com/distribution/reference, by which container runtimes
// read references; the library accepts more.
var (
	pathComponent = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	tagText       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	bareID        = regexp.MustCompile(`^(?:sha256:)?[0-9a-f]{64}$`)
)

// reference is one parsed image reference.
type reference struct {
	name.Reference
	// digest is the pinned one, tag the one in the text; with neither the tag is latest.
	digest, tag string
}

// parse reads a reference as a container runtime does. The digest wins where there is also a tag.
func parse(text string) (reference, error) {
	if bareID.MatchString(text) {
		return reference{}, fmt.Errorf("an image id is not a reference: no registry can be asked for it")
	}
	parsed, err := name.ParseReference(text)
	if err != nil {
		return reference{}, fmt.Errorf("not an image reference: %w", err)
	}
	for component := range strings.SplitSeq(parsed.Context().RepositoryStr(), "/") {
		if !pathComponent.MatchString(component) {
			return reference{}, fmt.Errorf("not an image reference: %q cannot be part of a repository's name", component)
		}
	}
	ref := reference{Reference: parsed}
	base, digest, pinned := strings.Cut(text, "@")
	if pinned {
		ref.digest = digest
	}
	if tag, err := name.NewTag(base, name.WithDefaultTag("")); err == nil {
		ref.tag = tag.TagStr()
	}
	if ref.tag == "" && !pinned {
		ref.tag = name.DefaultTag
	}
	if ref.tag != "" && !tagText.MatchString(ref.tag) {
		return reference{}, fmt.Errorf("not an image reference: %q cannot be a tag", ref.tag)
	}
	return ref, nil
}

// pinnedForm is the text with its tag replaced by a digest.
func pinnedForm(text, digest string) string {
	base, _, _ := strings.Cut(text, "@")
	if colon := strings.LastIndex(base, ":"); colon > strings.LastIndex(base, "/") {
		base = base[:colon]
	}
	return base + "@" + digest
}
