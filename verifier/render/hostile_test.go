package render

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestHostileSizes has inputs that grow without end, or are as large as is let in: each is a finding
// or a set, in less than 30 s, and neither this process nor any child takes 1 GiB.
func TestHostileSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	full := strings.Repeat("v", MaxFileBytes)
	large := files{}
	for i := range MaxBytes / MaxFileBytes {
		large[fmt.Sprintf("%d.bin", i)] = "\xff" + full[1:]
		large[fmt.Sprintf("%d.yaml", i)] = "" // taken by the cases that need them
	}
	generator := "configMapGenerator:\n- name: x\n  files: [0.bin, 1.bin, 2.bin]\n"
	many, chain, diamond, wide := files{}, files{}, files{}, files{"s.yaml": service}
	for i := range MaxFiles {
		many[fmt.Sprintf("%05d.yaml", i)] = cm(fmt.Sprintf("c%d", i)) + "  pad: " + strings.Repeat("x", 5000) + "\n"
	}
	for i := range MaxDepth + 10 {
		chain[fmt.Sprintf("%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%d]\n", i+1)
	}
	for i := range 30 {
		for _, side := range []string{"a", "b"} {
			diamond[fmt.Sprintf("%d%s/kustomization.yaml", i, side)] = fmt.Sprintf("namePrefix: %s-\nresources: [../%da, ../%db]\n", side, i+1, i+1)
		}
	}
	diamond["30a/kustomization.yaml"], diamond["30b/kustomization.yaml"] = "resources: [s.yaml]\n", "resources: [s.yaml]\nnamePrefix: c\n"
	diamond["30a/s.yaml"], diamond["30b/s.yaml"] = service, service
	wide["kustomization.yaml"] = "resources: [s.yaml]\npatches:\n" + strings.Repeat("- {target: {kind: X}, patch: '[{\"op\": \"remove\", \"path\": \"/a\"}]'}\n", 7000)
	copies := "resources: [s.yaml]\npatches:\n- target: {kind: Service}\n  patch: |\n" + strings.Repeat("    - {\"op\": \"copy\", \"from\": \"/spec\", \"path\": \"/spec/x\"}\n    - {\"op\": \"copy\", \"from\": \"/spec\", \"path\": \"/spec/y\"}\n", 60)
	for name, test := range map[string]struct {
		files
		path, want string
	}{
		"alias bomb":                  {files: files{"a.yaml": bomb()}, want: "render-failed"},
		"alias bomb, kustomize":       {files: files{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": bomb()}, want: "render-failed"},
		"alias bomb, kustomization":   {files: files{"kustomization.yaml": bomb() + "resources: [a.yaml]\n", "a.yaml": service}, want: "render-"},
		"64 MiB of lists":             {files: files{"a.yaml": object + "a: [" + strings.Repeat("a,", MaxFileBytes/2-100) + "]\n", "b.yaml": object + "a: [" + strings.Repeat("a,", MaxFileBytes/2-100) + "]\n"}, want: "render-failed"},
		"64 MiB of text":              {files: files{"a.yaml": object + "data: {a: " + full[200:] + "}\n", "b.yaml": cm("b") + "  a: " + full[200:], "c.yaml": cm("c") + "  a: " + full[200:]}},
		"48 MiB of bytes":             {files: with(large, "kustomization.yaml", generator)},
		"as many files as there are":  {files: many},
		"deep in brackets":            {files: files{"a.yaml": object + "a: " + strings.Repeat("[", MaxFileBytes-100)}, want: "render-failed"},
		"deep in braces of JSON":      {files: files{"a.json": strings.Repeat(`{"a":`, MaxFileBytes/5-100)}, want: "render-failed"},
		"deep by indent":              {files: files{"a.yaml": object + nested(3000)}, want: ""},
		"one long line":               {files: files{"a.yaml": full}, want: "render-"},
		"only separators":             {files: files{"a.yaml": strings.Repeat("---\n", MaxFileBytes/4)}, want: "render-empty"},
		"a million documents":         {files: files{"a.yaml": strings.Repeat("---\na\n", MaxFileBytes/6)}, want: "render-"},
		"kustomizations in a chain":   {files: chain, path: "0", want: "render-refused"},
		"kustomizations, doubled":     {files: diamond, path: "0a", want: "render-failed"},
		"7000 patches":                {files: wide},
		"a patch that doubles":        {files: files{"s.yaml": service, "kustomization.yaml": copies}, want: "render-failed"},
		"an endless kustomization":    {files: files{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, want: "render-failed"},
		"many keys, repeated":         {files: files{"a.yaml": object + "data:\n" + strings.Repeat("  k: v\n", MaxFileBytes/8)}, want: ""},
		"twin: a large, ordinary set": {files: ordinary(2000)},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			set, findings := render(t, test.files, Options{Path: test.path})
			took := time.Since(start)
			got := strings.Join(codes(findings), ", ")
			if test.want != "" && !strings.Contains(got, test.want) || test.want == "" && len(set.Objects) == 0 && len(findings) == 0 {
				t.Errorf("findings %.300q, want %q", got, test.want)
			}
			if strings.HasPrefix(name, "twin") && len(findings) > 0 {
				t.Errorf("findings %.300q", got)
			}
			if took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			message := ""
			if len(findings) > 0 {
				message = findings[0].Message
			}
			t.Logf("%s, peak %d MiB here and %d MiB in a child, %d objects, %.100q %.100q", took.Round(time.Millisecond), peak(t, syscall.RUSAGE_SELF), peak(t, syscall.RUSAGE_CHILDREN), len(set.Objects), got, message)
		})
	}
	for who, what := range map[int]string{syscall.RUSAGE_SELF: "this process", syscall.RUSAGE_CHILDREN: "a child"} {
		if mib := peak(t, who); mib >= 1024 {
			t.Errorf("%s took %d MiB", what, mib)
		}
	}
}

// peak is the largest resident set of this process, or of any child so far, in MiB.
func peak(t *testing.T, who int) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss >> 10
}

func with(f files, name, text string) files {
	all := files{name: text}
	for name, text := range f {
		if text != "" {
			all[name] = text
		}
	}
	return all
}

func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func ordinary(n int) files {
	f := files{}
	for i := range n {
		f[fmt.Sprintf("d%d.yaml", i)] = strings.ReplaceAll(deployment, "name: api", fmt.Sprintf("name: api-%d", i))
	}
	return f
}

// TestChildIsSafeAlone renders what the scan refuses, with the scan and without: nothing is run, nothing
// is fetched, nothing of the host is read. Programs of the names that kustomize runs are on the
// caller's PATH, and a server listens.
func TestChildIsSafeAlone(t *testing.T) {
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	for _, program := range []string{"git", "helm", "docker", "podman", "sh", "starlark", "touch2"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n: > "+canary+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	plugin := filepath.Join(dir, "kustomize/plugin/someteam/v1/gen")
	if err := os.MkdirAll(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plugin, "Gen"), []byte("#!/bin/sh\n: > "+canary+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret.yaml")
	if err := os.WriteFile(secret, []byte(strings.Replace(cm("host"), "k: v", "k: of-the-host", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("KUSTOMIZE_PLUGIN_HOME", filepath.Join(dir, "kustomize/plugin"))
	t.Setenv("TOKEN", "of-the-host")
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	function := func(spec string) string {
		return "- |\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n    annotations:\n      config.kubernetes.io/function: |\n        " + spec + "\n"
	}
	for name, kustomization := range map[string]string{
		"upload-pack":           "resources: ['file:///x?ref=--upload-pack=touch " + canary + "']\n",
		"upload-pack, as a Git": "resources: ['git::file:///x//y?ref=--upload-pack=touch2']\n",
		"ssh":                   "resources: ['ssh://git@" + host + "/x.git?ref=--upload-pack=touch2']\n",
		"ssh, short":            "resources: ['git@" + host + ":x/y.git']\n",
		"http":                  "resources: ['" + server.URL + "/x.yaml']\n",
		"http base":             "bases: ['" + server.URL + "/x/y']\n",
		"git over http":         "resources: ['" + server.URL + "/x/y.git?ref=main']\n",
		"component":             "components: ['" + server.URL + "/x.git']\nresources: [service.yaml]\n",
		"crds":                  "crds: ['" + server.URL + "/x.json']\nresources: [service.yaml]\n",
		"openapi":               "openapi: {path: '" + server.URL + "/x.json'}\nresources: [service.yaml]\n",
		"configuration":         "configurations: ['" + server.URL + "/x.yaml']\nresources: [service.yaml]\n",
		"patch":                 "patches: [{path: '" + server.URL + "/x'}]\nresources: [service.yaml]\n",
		"patch, strategic":      "patchesStrategicMerge: ['" + server.URL + "/x']\nresources: [service.yaml]\n",
		"patch, JSON":           "patchesJson6902: [{target: {version: v1, kind: Service, name: api}, path: '" + server.URL + "/x'}]\nresources: [service.yaml]\n",
		"replacement":           "replacements: [{path: '" + server.URL + "/x'}]\nresources: [service.yaml]\n",
		"generated file":        "configMapGenerator: [{name: x, files: ['k=" + server.URL + "/x']}]\n",
		"generated environment": "secretGenerator: [{name: x, envs: ['" + server.URL + "/x']}]\n",
		"validator":             "validators: ['" + server.URL + "/x']\nresources: [service.yaml]\n",
		"helm":                  "helmCharts: [{name: x, repo: '" + server.URL + "'}]\n",
		"helm, its home":        "helmGlobals: {configHome: '" + dir + "', chartHome: '" + dir + "'}\nhelmCharts: [{name: x}]\n",
		"helm, old":             "helmChartInflationGenerator: [{chartName: x, chartRepoUrl: '" + server.URL + "', helmBin: " + dir + "/touch2}]\n",
		"helm, a generator":     "generators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: x}\n  name: x\n  repo: " + server.URL + "\n",
		"exec":                  "resources: [service.yaml]\ntransformers:\n" + function("exec: {path: "+filepath.Join(dir, "touch2")+"}"),
		"exec, in the tree":     "resources: [service.yaml]\ntransformers:\n" + function("exec: {path: ./run.sh}"),
		"container":             "generators:\n" + function("container: {image: x, network: true}"),
		"starlark":              "resources: [service.yaml]\nvalidators:\n" + function("starlark: {path: run.star, name: x}"),
		"plugin":                "generators:\n- |\n  apiVersion: someteam/v1\n  kind: Gen\n  metadata: {name: x}\n",
	} {
		t.Run(name, func(t *testing.T) {
			tree := files{"kustomization.yaml": kustomization, "service.yaml": service, "run.sh": "#!/bin/sh\n: > " + canary + "\n", "run.star": "x"}
			for _, off := range []bool{false, true} {
				want := map[bool]string{false: "render-refused", true: "render-failed"}[off]
				set, findings := render(t, tree, Options{noScan: off})
				if len(findings) == 0 || findings[0].Code != want || len(set.Objects) != 0 {
					t.Errorf("without scan %v: %v, %v, want %s", off, findings, ids(set), want)
				}
				if !off && findings[0].Origin.Line == 0 {
					t.Errorf("the refusal has no line: %v", findings[0])
				}
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("a program ran")
			}
			if n := hits.Load(); n != 0 {
				t.Errorf("%d requests reached the server", n)
			}
		})
	}
	// What lies on the host under the name that the revision gives is not read either.
	for name, tree := range map[string]files{
		"absolute resource":       {"kustomization.yaml": "resources: ['" + secret + "']\n"},
		"climbing":                {"kustomization.yaml": "resources: ['" + strings.Repeat("../", 20) + secret[1:] + "']\n"},
		"generated":               {"kustomization.yaml": "configMapGenerator: [{name: x, files: ['" + secret + "']}]\n"},
		"environment":             {"kustomization.yaml": "configMapGenerator: [{name: x, envs: [/proc/self/environ]}]\n"},
		"link":                    {"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": "-> " + secret},
		"linked folder":           {"kustomization.yaml": "resources: [x/secret.yaml]\n", "x": "-> " + dir},
		"chain of links":          {"kustomization.yaml": "configMapGenerator: [{name: x, files: [a]}]\n", "a": "-> b", "b": "-> c/secret.yaml", "c": "-> " + dir},
		"link to the environment": {"kustomization.yaml": "configMapGenerator: [{name: x, envs: [e]}]\n", "e": "-> /proc/self/environ"},
		"plain link":              {"x.yaml": "-> " + secret, "s.yaml": service},
	} {
		t.Run(name, func(t *testing.T) {
			for _, off := range []bool{false, true} {
				set, findings := render(t, tree, Options{noScan: off})
				if len(findings) == 0 || findings[0].Severity != "fail" {
					t.Errorf("without scan %v: %v, %v", off, findings, ids(set))
				}
				if text := fmt.Sprint(findings) + string(canonicalSet(set)); strings.Contains(text, "of-the-host") {
					t.Errorf("the host shows in %s", text)
				}
			}
		})
	}
	// An env file's key without a value would be the caller's, on a disk (case 35).
	set, findings := render(t, files{"kustomization.yaml": "configMapGenerator: [{name: x, envs: [e]}]\n", "e": "TOKEN\n"}, Options{})
	if text := string(canonicalSet(set)); strings.Contains(text, "of-the-host") || len(findings) > 0 || !strings.Contains(text, `"TOKEN":""`) {
		t.Errorf("a key without a value: %s %v", text, findings)
	}
}
