package verifier_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rebuild-check.dev/rebuild-check/verifier"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/render"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == render.ChildArgument {
		render.ChildMain()
	}
	os.Exit(m.Run())
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// files are a work tree by path; "-> x" is a link.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func committed(t *testing.T, f files) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	gitIn(t, "/", "init", "-q", "-b", "main", dir)
	f.write(t, dir)
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", "x")
	return dir
}

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {k: " + value + "}\n"
}

// rendered renders a path; findings are CODE OBJECT ORIGIN.
func rendered(t *testing.T, dir, path string) (set *evidence.Set, findings []string, all string) {
	t.Helper()
	set, found, err := verifier.Render(t.Context(), verifier.Options{Repo: dir, Path: path, Timeout: time.Minute, Progress: func(evidence.Stage) {}})
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	for _, f := range found {
		findings = append(findings, strings.TrimSpace(f.Code+" "+f.Object+" "+f.Origin.String()))
	}
	text, err := json.Marshal([]any{set, found})
	if err != nil {
		t.Fatal(err)
	}
	return set, findings, string(text)
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// TestRevisionToSet is what becomes of Git's odd content on its way through source and render.
func TestRevisionToSet(t *testing.T) {
	chart := "apiVersion: v2\nname: app\nversion: 1.0.0\n"
	for name, test := range map[string]struct {
		files    files
		path     string
		findings []string
		objects  []string
	}{
		"LFS pointer in a generator": {files{"kustomization.yaml": "configMapGenerator:\n- name: c\n  files: [config.json]\n", "config.json": pointer}, "", []string{"missing-lfs-object config.json config.json:1"}, nil},
		"LFS pointer as a manifest":  {files{"a.yaml": pointer}, "", []string{"missing-lfs-object a.yaml a.yaml:1"}, nil},
		"LFS pointer as a subchart":  {files{"Chart.yaml": chart, "templates/a.yaml": configMap("a", "v"), "charts/x.tgz": pointer}, "", []string{"missing-lfs-object charts/x.tgz charts/x.tgz:1"}, nil},
		"twin: LFS video elsewhere": {files{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap("a", "v"), "docs/video.mp4": pointer, "b.yaml": pointer, ".gitattributes": "*.mp4 filter=lfs diff=lfs merge=lfs -text\n"},
			"", nil, []string{"ConfigMap/a"}},
		"twin: LFS video beside manifests": {files{"a.yaml": configMap("a", "v"), "video.mp4": pointer}, "", nil, []string{"ConfigMap/a"}},

		"attribute on a manifest":                    {files{".gitattributes": "*.yaml eol=crlf\n", "d/a.yaml": configMap("a", "v")}, "d", []string{"gitattributes-ignored d/a.yaml .gitattributes:1"}, []string{"ConfigMap/a"}},
		"attribute on a generator's file":            {files{".gitattributes": "# x\n*.txt filter=x\n", "kustomization.yaml": "configMapGenerator:\n- name: c\n  files: [f.txt]\n  options: {disableNameSuffixHash: true}\n", "f.txt": "x\n"}, "", []string{"gitattributes-ignored f.txt .gitattributes:2"}, []string{"ConfigMap/c"}},
		"twin: attribute on files that play no part": {files{".gitattributes": "b.yaml eol=crlf\n*.txt filter=x\n", "kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap("a", "v"), "b.yaml": "x\n", "f.txt": "x\n"}, "", nil, []string{"ConfigMap/a"}},
		"twin: attribute that changes nothing":       {files{".gitattributes": "* text=auto\n*.yaml text eol=lf\n", "a.yaml": configMap("a", "v")}, "", nil, []string{"ConfigMap/a"}},

		"relative link":              {files{"base/cm.yaml": configMap("base", "v"), "overlays/prod/kustomization.yaml": "resources: [cm.yaml]\n", "overlays/prod/cm.yaml": "-> ../../base/cm.yaml"}, "overlays/prod", nil, []string{"ConfigMap/base"}},
		"relative link, plain":       {files{"base/cm.yaml": configMap("base", "v"), "prod/cm.yaml": "-> ../base/cm.yaml"}, "prod", nil, []string{"ConfigMap/base"}},
		"linked folder":              {files{"base/kustomization.yaml": "resources: [cm.yaml]\n", "base/cm.yaml": configMap("base", "v"), "prod/kustomization.yaml": "resources: [../linked]\n", "linked": "-> base"}, "prod", nil, []string{"ConfigMap/base"}},
		"link to a file of the host": {files{"a.yaml": configMap("a", "v"), "secret.yaml": "-> /etc/passwd"}, "", []string{"render-refused secret.yaml secret.yaml"}, nil},
		"link up to the host":        {files{"a.yaml": configMap("a", "v"), "secret.yaml": "-> ../../../../../../../../etc/passwd"}, "", []string{"render-refused secret.yaml secret.yaml"}, nil},
		"link in a loop":             {files{"a.yaml": configMap("a", "v"), "b.yaml": "-> c.yaml", "c.yaml": "-> b.yaml"}, "", []string{"render-refused b.yaml b.yaml", "render-refused c.yaml c.yaml"}, nil},
		"twin: bad links elsewhere":  {files{"d/a.yaml": configMap("a", "v"), "x": "-> /etc/passwd", "y": "-> z", "z": "-> y", "w": "-> nowhere"}, "d", nil, []string{"ConfigMap/a"}},
		"twin: bad links, kustomize": {files{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap("a", "v"), "x.yaml": "-> /etc/passwd", "y": "-> z", "z": "-> y", "w.yaml": "-> nowhere"}, "", nil, []string{"ConfigMap/a"}},
		"names that differ in case":  {files{"CM.yaml": configMap("upper", "v"), "cm.yaml": configMap("lower", "v"), "A": "x", "a/x.yaml": configMap("folder", "v")}, "", nil, []string{"ConfigMap/folder", "ConfigMap/lower", "ConfigMap/upper"}},
		"names in case, kustomize":   {files{"kustomization.yaml": "resources: [CM.yaml, cm.yaml, a]\nconfigMapGenerator:\n- name: c\n  files: [A]\n  options: {disableNameSuffixHash: true}\n", "CM.yaml": configMap("upper", "v"), "cm.yaml": configMap("lower", "v"), "A": "x", "a/kustomization.yaml": "resources: [x.yaml]\n", "a/x.yaml": configMap("folder", "v")}, "", nil, []string{"ConfigMap/c", "ConfigMap/folder", "ConfigMap/lower", "ConfigMap/upper"}},
		"odd names":                  {files{"con.yaml": configMap("a", "v"), "aux.yaml": configMap("b", "v"), "with space.yaml": configMap("c", "v"), "new\nline.yaml": configMap("d", "v"), "NUL/x.yaml": configMap("e", "v"), "end./x.yaml": configMap("f", "v"), "a:b.yaml": configMap("g", "v"), `back\slash.yaml`: configMap("h", "v")}, "", nil, []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "ConfigMap/d", "ConfigMap/e", "ConfigMap/f", "ConfigMap/g", "ConfigMap/h"}},
		"names that are not UTF-8":   {files{"\xff.yaml": configMap("a", "v"), "\xfe.yaml": configMap("b", "v")}, "", nil, []string{"ConfigMap/a", "ConfigMap/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, findings, all := rendered(t, committed(t, test.files), test.path)
			if !slices.Equal(findings, test.findings) {
				t.Errorf("findings %q, want %q\n%s", findings, test.findings, all)
			}
			var objects []string
			if set != nil {
				for _, o := range set.Objects {
					objects = append(objects, o.ID.String())
				}
			}
			if !slices.Equal(objects, test.objects) {
				t.Errorf("objects %q, want %q", objects, test.objects)
			}
			if strings.Contains(all, "root:") {
				t.Errorf("a file of the host was read: %s", all)
			}
		})
	}
}

// TestLFSObjectOnDisk: the object beside the repository does not count, as it is not in Git.
func TestLFSObjectOnDisk(t *testing.T) {
	dir := committed(t, files{"a.yaml": pointer})
	files{".git/lfs/objects/4d/7a/4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393": configMap("a", "v")}.write(t, dir)
	if _, findings, _ := rendered(t, dir, ""); !slices.Equal(findings, []string{"missing-lfs-object a.yaml a.yaml:1"}) {
		t.Errorf("findings %q", findings)
	}
}

// TestWorkTreePlaysNoPart: changed, new and ignored files are not rendered.
func TestWorkTreePlaysNoPart(t *testing.T) {
	dir := committed(t, files{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap("a", "committed"), ".gitignore": "ignored.yaml\n"})
	files{"a.yaml": configMap("a", "edited"), "kustomization.yaml": "resources: [a.yaml, ignored.yaml, new.yaml]\n", "ignored.yaml": configMap("b", "v"), "new.yaml": configMap("c", "v")}.write(t, dir)
	gitIn(t, dir, "add", "a.yaml")
	set, findings, _ := rendered(t, dir, "")
	if len(findings) != 0 || len(set.Objects) != 1 || set.Objects[0].Content["data"].(map[string]any)["k"] != "committed" {
		t.Errorf("%q %+v", findings, set.Objects)
	}
	// An ignored file that the commit names is missing, however present it is here.
	dir = committed(t, files{"kustomization.yaml": "resources: [ignored.yaml]\n", ".gitignore": "ignored.yaml\n"})
	files{"ignored.yaml": configMap("b", "v")}.write(t, dir)
	if set, findings, _ := rendered(t, dir, ""); len(set.Objects) != 0 || len(findings) != 1 || !strings.HasPrefix(findings[0], "render-failed") {
		t.Errorf("%q %+v", findings, set.Objects)
	}
}

// TestForgedObject: an object that is not what its id says is no fault of the repository's content.
func TestForgedObject(t *testing.T) {
	dir := committed(t, files{"a.yaml": configMap("a", "v")})
	if _, findings, _ := rendered(t, dir, ""); len(findings) != 0 {
		t.Errorf("the twin: %q", findings)
	}
	id := gitIn(t, dir, "rev-parse", "HEAD:a.yaml")
	other := gitIn(t, dir, "hash-object", "-w", "--stdin") // of nothing, validly packed
	objects := filepath.Join(dir, ".git/objects")
	if err := os.Rename(filepath.Join(objects, other[:2], other[2:]), filepath.Join(objects, id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	set, found, err := verifier.Render(t.Context(), verifier.Options{Repo: dir, Timeout: time.Minute, Progress: func(evidence.Stage) {}})
	if err != nil || set != nil || len(found) != 1 || found[0].Code != "object-integrity" || found[0].Severity != evidence.Inconclusive || !strings.Contains(found[0].Message, id) {
		t.Errorf("%v, %v, %+v", set, err, found)
	}
}

// TestNoCredentialsInEvidence: neither the answer nor what is told on the way holds those of a URL.
func TestNoCredentialsInEvidence(t *testing.T) {
	dir := committed(t, files{"a.yaml": configMap("a", "v")})
	backend := filepath.Join(gitIn(t, dir, "--exec-path"), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Stderr: io.Discard, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1"}})
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"answers": server.URL + "/repo/.git", "has it not": server.URL + "/other", "does not answer": gone.URL + "/repo"} {
		var told []evidence.Stage
		options := verifier.Options{Repo: strings.Replace(url, "://", "://me:hunter2@", 1), Rev: "main", Timeout: time.Minute, Progress: func(s evidence.Stage) { told = append(told, s) }}
		set, found, err := verifier.Render(t.Context(), options)
		if (name == "answers") != (set != nil && len(set.Objects) == 1) {
			t.Errorf("%s: %v %+v", name, err, found)
		}
		text, failed := json.Marshal([]any{set, found, told, fmt.Sprint(err)})
		if failed != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "revision") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestTreeBomb: a folder that holds the same folder twice, and so on, has more paths than can be listed.
func TestTreeBomb(t *testing.T) {
	for name, levels := range map[string]int{"bomb": 60, "twin": 10} {
		dir := committed(t, files{"a.yaml": configMap("a", "v"), "b/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "b/templates/a.yaml": configMap("a", "v")})
		tree := gitIn(t, dir, "rev-parse", "HEAD^{tree}:b/templates")
		blob := gitIn(t, dir, "rev-parse", "HEAD:b/Chart.yaml")
		in := func(text string) string {
			cmd := exec.CommandContext(t.Context(), "git", "mktree")
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(out))
		}
		templates, folder := tree, in("100644 blob "+blob+"\tx.txt\n")
		for range levels {
			folder = in("040000 tree " + folder + "\ta\n040000 tree " + folder + "\tb\n")
		}
		chart := in("100644 blob " + blob + "\tChart.yaml\n040000 tree " + folder + "\tfiles\n040000 tree " + templates + "\ttemplates\n")
		plain := in("040000 tree " + folder + "\tfiles\n040000 tree " + templates + "\ttemplates\n")
		gitIn(t, dir, "update-ref", "HEAD", gitIn(t, dir, "commit-tree", "-m", "x", in("040000 tree "+chart+"\tchart\n040000 tree "+plain+"\tplain\n")))
		for _, path := range []string{"plain", "chart"} {
			set, findings, _ := rendered(t, dir, path)
			if bomb := len(findings) == 1 && strings.HasPrefix(findings[0], "render-refused"); bomb != (name == "bomb") || len(set.Objects) != map[string]int{"twin": 1}[name] {
				t.Errorf("%s, %s: findings %q, %d objects", name, path, findings, len(set.Objects))
			}
		}
	}
}
