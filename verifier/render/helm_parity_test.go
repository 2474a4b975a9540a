package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
)

// direct is what Helm makes of a chart on a disk, by its own loader, values, schema check, engine and
// order, printed as helm template --include-crds prints it.
func direct(t *testing.T, dir string, opts Options) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := loader.LoadDir(filepath.Join(dir, opts.Path))
	must(err)
	sortCharts(c)
	values := map[string]any{}
	for _, name := range opts.ValuesFiles {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(err)
		one, err := loader.LoadValues(bytes.NewReader(data))
		must(err)
		values = loader.MergeMaps(values, one)
	}
	for _, text := range opts.Set {
		must(strvals.ParseInto(text, values))
	}
	must(chartutil.ProcessDependencies(c, values))
	caps := common.DefaultCapabilities.Copy()
	kube, err := common.ParseKubeVersion(DefaultKubeVersion)
	must(err)
	caps.KubeVersion, caps.APIVersions = *kube, apiVersions(c, opts.APIVersions)
	release := common.ReleaseOptions{Name: opts.ReleaseName, Namespace: opts.Namespace, Revision: 1, IsInstall: true}
	if release.Name == "" {
		release.Name = c.Name()
	}
	if release.Namespace == "" {
		release.Namespace = "default"
	}
	top, err := util.ToRenderValues(c, values, release, caps)
	must(err)
	rendered, err := engine.Render(c, top)
	must(err)
	for name := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(rendered, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	must(err)
	var out strings.Builder
	write := func(name, text string) { fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, text) }
	for _, crd := range c.CRDObjects() {
		write(crd.Filename, string(crd.File.Data))
	}
	for _, m := range manifests {
		write(m.Name, m.Content)
	}
	text := strings.TrimSpace(out.String()) // the command does so, before it adds the hooks
	out.Reset()
	out.WriteString(text + "\n")
	for _, h := range hooks {
		write(h.Path, h.Manifest)
	}
	return out.String()
}

// onDisk writes a tree to a folder.
func onDisk(t *testing.T, tree files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tree {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fromDisk reads a folder as a tree.
func fromDisk(t *testing.T, dir string) files {
	t.Helper()
	tree := files{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		tree[strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestHelmPublicCharts compares with Helm on real charts, which lie in modules of the Go proxy: each
// line of the list is MODULE VERSION PATH, and then KEY=VALUE settings that the chart asks for.
func TestHelmPublicCharts(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory is over the child's limit: make unit runs this test without it too")
	}
	list, err := os.ReadFile("../../fixtures/layouts/charts.txt")
	if err != nil {
		t.Fatal(err)
	}
	charts := 0
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		charts++
		t.Run(fields[0]+"/"+fields[2], func(t *testing.T) {
			dir := download(t, fields[0]+"@"+fields[1])
			opts := Options{Namespace: "target", Set: fields[3:]}
			chart := filepath.Join(dir, filepath.FromSlash(fields[2]))
			want := direct(t, chart, opts)
			var got []byte
			opts.Raw = &got
			set, findings := render(t, fromDisk(t, chart), opts)
			if got := chance.ReplaceAll(got, []byte("$1")); string(got) != chance.ReplaceAllString(want, "$1") {
				t.Errorf("%d bytes, want %d; first at %s; findings %v", len(got), len(want), firstDifference(string(got), want), findings)
			}
			for _, f := range findings {
				t.Log(f.Severity, f.Code, f.Origin, f.Message)
			}
			located := 0
			for _, o := range set.Objects {
				if o.Origin.Line > 1 {
					located++
				}
			}
			t.Logf("%d objects, %d with a line of their own, %d bytes", len(set.Objects), located, len(got))
		})
	}
	if charts < 9 {
		t.Errorf("the list has only %d charts", charts)
	}
}

// chance is the random end of the names of podinfo's test hooks, which are no part of a set.
var chance = regexp.MustCompile(`(-test-)[a-z0-9]{5}\b`)

// download is the folder of a module. Where the proxy cannot be reached, the test is skipped, save
// where CI is set.
func download(t *testing.T, module string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if json.Unmarshal(out, &answer); err != nil || answer.Dir == "" {
		message := fmt.Sprintf("downloading %s: %v %s %s", module, err, answer.Error, stderr.String())
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return answer.Dir
}

func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("byte %d: %q, want %q", i, a[i:min(i+80, len(a))], b[i:min(i+80, len(b))])
		}
	}
	return "the end"
}
