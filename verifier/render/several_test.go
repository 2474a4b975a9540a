package render

import (
	"slices"
	"strings"
	"testing"
)

func TestAll(t *testing.T) {
	tree := files{"crds/a.yaml": cm("a"), "app/kustomization.yaml": "resources: [b.yaml]\n", "app/b.yaml": cm("b"), "again/a.yaml": "\n" + cm("a"),
		"rebuild-check.yaml": "apiVersion: rebuild-check.dev/v1alpha1\nkind: RebuildCheck\n", "sub/rebuild-check.yaml": cm("other"), "empty/x.txt": "x"}
	for name, test := range map[string]struct {
		paths                  []string
		objects, found, skips  []string
		renderer, path, digest string
	}{
		"two renderers":    {paths: []string{"crds", "app"}, objects: []string{"ConfigMap/a crds/a.yaml:1", "ConfigMap/b app/b.yaml:1"}, renderer: "plain, kustomize", path: "crds, app"},
		"one":              {paths: []string{"crds"}, objects: []string{"ConfigMap/a crds/a.yaml:1"}, renderer: "plain", path: "crds"},
		"an object twice":  {paths: []string{"crds", "again"}, objects: []string{"ConfigMap/a crds/a.yaml:1", "ConfigMap/a again/a.yaml:2"}, found: []string{"duplicate-object again/a.yaml:2"}, renderer: "plain", path: "crds, again"},
		"one without any":  {paths: []string{"crds", "empty"}, objects: []string{"ConfigMap/a crds/a.yaml:1"}, found: []string{"render-empty empty"}, renderer: "plain", path: "crds, empty", skips: []string{"empty/x.txt"}},
		"its own file":     {paths: []string{"."}, objects: []string{"ConfigMap/a again/a.yaml:2", "ConfigMap/b app/b.yaml:1", "ConfigMap/a crds/a.yaml:1", "ConfigMap/other sub/rebuild-check.yaml:1"}, renderer: "plain", path: ".", found: []string{"duplicate-object crds/a.yaml:1"}, skips: []string{"app/kustomization.yaml", "empty/x.txt", "rebuild-check.yaml"}},
		"a fault in one":   {paths: []string{"nope", "crds"}},
		"and in the other": {paths: []string{"crds", "nope"}},
		"in another order": {paths: []string{"app", "crds"}, objects: []string{"ConfigMap/a crds/a.yaml:1", "ConfigMap/b app/b.yaml:1"}, renderer: "kustomize, plain", path: "app, crds"},
	} {
		t.Run(name, func(t *testing.T) {
			var list []Options
			for _, p := range test.paths {
				list = append(list, Options{Path: p})
			}
			set, findings, err := All(t.Context(), tree, list)
			if slices.Contains(test.paths, "nope") {
				if err == nil || set != nil {
					t.Fatalf("a missing path: %v, %v", set, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ids(set)
			slices.Sort(got)
			slices.Sort(test.objects)
			var skips []string
			for _, s := range set.Skipped {
				skips = append(skips, s.File)
			}
			slices.Sort(skips)
			if !slices.Equal(got, test.objects) || !slices.Equal(codes(findings), test.found) || set.Renderer != test.renderer || set.Path != test.path || !slices.Equal(skips, test.skips) {
				t.Errorf("%q by %s of %s, findings %q, skipped %q; want %+v", got, set.Renderer, set.Path, codes(findings), skips, test)
			}
			if !strings.HasPrefix(set.Digest, "sha256:") {
				t.Errorf("digest %q", set.Digest)
			}
		})
	}
	both, _, _ := All(t.Context(), tree, []Options{{Path: "crds"}, {Path: "app"}})
	other, _, _ := All(t.Context(), tree, []Options{{Path: "app"}, {Path: "crds"}})
	one, _, _ := All(t.Context(), tree, []Options{{Path: "app"}})
	if both.Digest != other.Digest || both.Digest == one.Digest {
		t.Errorf("digests %s, %s, %s", both.Digest, other.Digest, one.Digest)
	}
}
