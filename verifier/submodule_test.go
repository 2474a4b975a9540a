package verifier_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// TestSubmoduleToSet: a submodule that is there is rendered at its recorded commit; one that is not is
// named with its commit and by whom it is named.
func TestSubmoduleToSet(t *testing.T) {
	lib := committed(t, files{"base/kustomization.yaml": "resources: [cm.yaml]\n", "base/cm.yaml": configMap("base", "recorded")})
	recorded := gitIn(t, lib, "rev-parse", "HEAD")
	files{"base/cm.yaml": configMap("base", "tip")}.write(t, lib)
	gitIn(t, lib, "commit", "-q", "-a", "-m", "tip")
	dir := committed(t, files{"deploy/kustomization.yaml": "namespace: x\nresources:\n- ../vendor/base\n", "plain/own.yaml": configMap("own", "v"), "whole/own.yaml": configMap("own", "v"),
		"chart/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "chart/templates/own.yaml": configMap("own", "v")})
	for _, path := range []string{"vendor", "whole/lib", "chart/files"} {
		gitIn(t, dir, "submodule", "--quiet", "add", lib, path)
		gitIn(t, filepath.Join(dir, path), "checkout", "-q", recorded)
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", "submodules")
	gitIn(t, filepath.Join(dir, "vendor"), "checkout", "-q", "main")
	without := dir + "-clone"
	gitIn(t, dir, "clone", "-q", dir, without)
	for _, test := range []struct {
		name, dir, path string
		objects         int
		missing, origin string
	}{
		{"named by a kustomization", dir, "deploy", 1, "", ""},
		{"itself the path", dir, "vendor/base", 1, "", ""},
		{"the path is its root", dir, "vendor", 1, "", ""},
		{"below a plain folder", dir, "whole", 2, "", ""},
		{"in a chart", dir, "chart", 1, "", ""},
		{"not there, in a chart", without, "chart", 0, "chart/files", "chart/files"},
		{"not there, named by a kustomization", without, "deploy", 0, "vendor", "deploy/kustomization.yaml:3"},
		{"not there, itself the path", without, "vendor/base", 0, "vendor", "vendor/base"},
		{"not there, the path is its root", without, "vendor", 0, "vendor", "vendor"},
		{"not there, below a plain folder", without, "whole", 0, "whole/lib", "whole/lib"},
		{"twin: not there, not needed", without, "plain", 1, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			set, found, err := verifier.Render(t.Context(), verifier.Options{Repo: test.dir, Path: test.path, Timeout: time.Minute, Progress: func(evidence.Stage) {}})
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Objects) != test.objects {
				t.Errorf("%d objects, want %d: %+v", len(set.Objects), test.objects, found)
			}
			for _, o := range set.Objects {
				if value := o.Content["data"].(map[string]any)["k"]; o.Name == "base" && value != "recorded" {
					t.Errorf("the submodule was read at another commit: %v", value)
				}
			}
			i := slices.IndexFunc(found, func(f evidence.Finding) bool { return f.Code == "missing-submodule" })
			switch {
			case test.missing == "" && len(found) != 0:
				t.Errorf("findings %+v", found)
			case test.missing != "" && i < 0:
				t.Errorf("no missing-submodule in %+v", found)
			case test.missing != "":
				if f := found[i]; f.Severity != evidence.Fail || f.Object != test.missing || f.Got != recorded || f.Origin.String() != test.origin || !strings.Contains(f.Message, ".gitmodules:") {
					t.Errorf("finding %+v, want %s at %s", f, test.missing, test.origin)
				}
			}
		})
	}
}
