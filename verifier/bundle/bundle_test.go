package bundle

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// facts is a run with something in every part, findings included.
func facts() evidence.Run {
	id := evidence.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}
	pod := evidence.ID{Kind: "Pod", Namespace: "ns", Name: "web-1"}
	origin := evidence.Origin{File: "web.yaml", Line: 3}
	finding := evidence.Finding{
		Code: "crash-loop", Severity: evidence.Fail, Object: id.String(), Field: "containers[c]", NeededBy: "x", Origin: origin, Repeat: 1, Want: "a", Got: "b", Message: "<it> & ended", Do: "see its log",
	}
	return evidence.Run{
		SchemaVersion: evidence.SchemaVersion, Tool: "rebuild-check test", ID: "rbc-1", Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Request:  evidence.Request{Rev: "main", Path: "deploy", Namespace: "ns", Nodes: 1, Isolation: "namespace", Mirrors: []string{"docker.io=http://m"}, Timeout: 900},
		Revision: &evidence.Revision{Name: "main", Commit: "c", Tree: "t", Dirty: []string{"x"}},
		Set: &evidence.Set{Renderer: "plain", Path: "deploy", Digest: "sha256:d", Skipped: []evidence.Skipped{{File: "README.md", Reason: "no YAML"}}, Objects: []evidence.Object{{
			ID: id, APIVersion: "apps/v1", Origin: origin, Content: map[string]any{
				"spec":  map[string]any{"replicas": int64(0), "huge": int64(9007199254740993), "half": 0.5, "big": 1e300, "list": []any{int64(1), "two", nil, map[string]any{"n": int64(3)}}},
				"text":  "80",
				"truth": true,
			},
		}}},
		Experiments: []evidence.Experiment{{Name: "ns/e", Origin: origin, Change: "一 <thing>", Fixed: []string{"image"}, Metrics: []string{"diff"}, Repeats: 1}},
		Images:      []evidence.Image{{Reference: "r/app:1", Uses: []evidence.Use{{Object: id, Field: "spec", Origin: origin}}, Index: "i", Manifest: "m", Config: "c", Size: 1 << 60, After: "i"}},
		ImagesAsked: true, Clusters: []evidence.Cluster{{Name: "rbc-1", Nodes: []evidence.Node{{Name: "n"}}}},
		Repeats: []evidence.Repeat{{
			Number: 1, Cluster: "rbc-1", Namespaces: []string{"ns"}, Applied: []evidence.Applied{{Object: id, Error: "no", Reason: "Invalid"}},
			Settled: &evidence.Settled{Cause: "failed", Window: 10, Pods: 1, Expected: true, Gaps: 1, Pending: []evidence.Pending{{Object: pod, Status: "NotReady", Why: "x"}}},
			Pods:    []evidence.Pod{{Pod: pod, Workload: id}}, Containers: []evidence.Container{{Pod: pod, Workload: id, Name: "c", Restarts: 3, Log: []string{"a", "b"}}},
			Artifacts:  []evidence.Artifact{{Role: "model", Name: "m", Git: "1", Live: "2", MountedBy: []string{"web"}}},
			Comparison: &evidence.Comparison{Compared: 1, Listed: 2, Unread: []string{"u"}, Differences: []evidence.Difference{{Question: "declared", Object: id, Change: "changed", Git: "1", Live: "2"}}, Rules: []evidence.Rule{{Name: "r", Reason: "s", Count: 1}}},
			Cleaning:   &evidence.Cleaning{Left: []evidence.ID{pod}, Lost: []evidence.ID{id}, Unread: []string{"u"}, Listed: 3, NewCluster: true},
			Metrics:    []evidence.Metric{{Name: "diff", Unit: "differences", Why: "w"}}, Findings: []evidence.Finding{finding}, Seconds: map[string]float64{"apply": 0.25}, Ended: true,
		}},
		Stages: []evidence.Stage{{Name: "render", Start: 1, Seconds: 2, Note: "n"}}, Found: []evidence.Finding{finding}, Signal: "INT", Leftovers: []string{"docker rm x"}, NotCovered: []string{"GPUs"},
		Findings: []evidence.Finding{finding}, Outcome: evidence.NotReproduced, ExitCode: 130,
	}
}

func TestWriteThenRead(t *testing.T) {
	cases := []struct {
		name string
		run  evidence.Run
	}{
		{"everything", facts()},
		{"nothing", evidence.Run{SchemaVersion: evidence.SchemaVersion}},
		{"a set without objects", evidence.Run{SchemaVersion: evidence.SchemaVersion, Set: &evidence.Set{}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "new")
			if err := Write(folder, c.run, nil); err != nil {
				t.Fatal(err)
			}
			got, err := Read(folder)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.run, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// files are the contents of the folder by name.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilesOfARepeat(t *testing.T) {
	folder := t.TempDir()
	raws := []Raw{{
		Number: 2, Live: []evidence.Live{{Content: map[string]any{"live": "yes"}}}, Inventory: evidence.Inventory{Kinds: 61}, Timeline: []evidence.Event{{Reason: "Restarted"}},
	}}
	if err := Write(folder, facts(), raws); err != nil {
		t.Fatal(err)
	}
	all := files(t, folder)
	for name, part := range map[string]string{
		"repeat-2/live.json": `"live": "yes"`, "repeat-2/inventory.json": `"kinds": 61`, "repeat-2/timeline.json": `"reason": "Restarted"`, File: `"change": "一 <thing>"`,
	} {
		if !strings.Contains(all[name], part) {
			t.Errorf("%s lacks %s:\n%s", name, part, all[name])
		}
	}
	if len(all) != 4 {
		t.Errorf("it holds %d files", len(all))
	}
}

// TestNoSecretOnDisk looks for a secret in all three places of a Secret, as it is and in base64.
func TestNoSecretOnDisk(t *testing.T) {
	const canary = "canary-5up3r-s3cr3t"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := func() map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": encoded}, "stringData": map[string]any{"b": canary, "c": "user:" + canary},
			"metadata": map[string]any{"name": "s", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"b":"` + canary + `"},"data":{"a":"` + encoded + `"}}`}},
		}
	}
	mask := func(string) string { return "masked" }
	set := &evidence.Set{Objects: []evidence.Object{{ID: evidence.ID{Kind: "Secret", Name: "s"}, Content: secret(), Lines: map[string]int{"data.a": 1}}}}
	leaks := func(set *evidence.Set, live map[string]any) (found []string) {
		folder := t.TempDir()
		run := facts()
		run.Set = set
		raw := Raw{Number: 1, Live: []evidence.Live{{Content: live, Again: secret(), Fresh: secret()}}}
		if err := Write(folder, run, []Raw{raw}); err != nil {
			t.Fatal(err)
		}
		for name, text := range files(t, folder) {
			if strings.Contains(text, canary) || strings.Contains(text, encoded) {
				found = append(found, name)
			}
		}
		return found
	}
	if found := leaks(set.Redacted(mask), evidence.Redacted(secret(), mask)); len(found) != 0 {
		t.Errorf("the secret is in %v", found)
	}
	if found := leaks(set, secret()); len(found) != 2 {
		t.Errorf("the test itself does not see a secret that was not masked: %v", found)
	}
}

func TestPrepare(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, root string) string
		want string // a part of the error
	}{
		{"new", func(_ *testing.T, root string) string { return filepath.Join(root, "a", "b") }, ""},
		{"empty", func(_ *testing.T, root string) string { return root }, ""},
		{"not empty", func(t *testing.T, root string) string {
			return filepath.Dir(touch(t, filepath.Join(root, ".hidden")))
		}, "it is not empty"},
		{"evidence of an earlier run", func(t *testing.T, root string) string { return filepath.Dir(touch(t, filepath.Join(root, File))) }, "it is not empty"},
		{"file", func(t *testing.T, root string) string { return touch(t, filepath.Join(root, "f")) }, "it is no folder"},
		{"below a file", func(t *testing.T, root string) string {
			return filepath.Join(touch(t, filepath.Join(root, "f")), "sub")
		}, "not a directory"},
		{"symlink to an empty folder", func(t *testing.T, root string) string { return link(t, t.TempDir(), filepath.Join(root, "l")) }, "it is no folder"},
		{"symlink with a slash", func(t *testing.T, root string) string { return link(t, t.TempDir(), filepath.Join(root, "l")) + "/" }, "it is no folder"},
		{"symlink to nothing", func(t *testing.T, root string) string {
			return link(t, filepath.Join(root, "gone"), filepath.Join(root, "l"))
		}, "it is no folder"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := c.make(t, t.TempDir())
			err := Prepare(folder)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if left := files(t, folder); len(left) != 0 {
				t.Errorf("it left %v", left)
			}
			info, err := os.Stat(folder)
			if err != nil || !info.IsDir() {
				t.Errorf("there is no folder: %v", err)
			}
			if c.name == "new" && info.Mode().Perm() != 0o700 {
				t.Errorf("others may look: %v", info.Mode())
			}
		})
	}
}

func touch(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadRefuses(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"another version", `{"schemaVersion": "rebuild-check.dev/v2"}`, `schemaVersion "rebuild-check.dev/v2"`},
		{"no version", `{}`, `schemaVersion ""`},
		{"no JSON", `outcome: reproduced`, "reading "},
		{"half a file", `{"schemaVersion": "` + evidence.SchemaVersion + `"`, "reading "},
		{"two documents", `{"schemaVersion": "` + evidence.SchemaVersion + `"}{"outcome": "reproduced"}`, "reading "},
		{"a field of another kind", `{"schemaVersion": "` + evidence.SchemaVersion + `", "repeats": 3}`, "reading "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, File), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder was read")
	}
}

// TestWriteFails: a file that cannot be written whole is not there at all, and the facts are last.
func TestWriteFails(t *testing.T) {
	unfit := []evidence.Live{{Content: map[string]any{"no JSON": func() {}}}}
	folder := t.TempDir()
	if err := Write(folder, facts(), []Raw{{Number: 1, Live: unfit}}); err == nil {
		t.Fatal("no error")
	}
	for name := range files(t, folder) {
		if name == File || strings.Contains(name, "live.json") || strings.Contains(name, ".writing-") {
			t.Errorf("%s is there", name)
		}
	}
	if err := Write(filepath.Join(touch(t, filepath.Join(t.TempDir(), "f")), "sub"), facts(), nil); err == nil {
		t.Error("it was written below a file")
	}
}
