package verifier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "rebuild-check.dev/rebuild-check/"
	stages = module + "verifier/"
)

// shared are the two packages that every stage may import.
var shared = []string{stages + "evidence", stages + "scenario"}

// pure are the packages that reach no network, no process and no cluster.
var pure = []string{"closure", "diagnose", "drift", "verdict", "evidence", "scenario"}

// impure are what gives a package one of the three.
var impure = []string{"net/http", "os/exec", "k8s.io/client-go"}

// homes names the one package that may import a big library.
var homes = map[string]string{
	"github.com/go-git/go-git/v5":            "verifier/source",
	"sigs.k8s.io/kustomize":                  "verifier/render",
	"helm.sh/helm/v4":                        "verifier/render",
	"github.com/google/go-containerregistry": "verifier/images",
	"sigs.k8s.io/kind":                       "verifier/cluster",
	"k8s.io/client-go":                       "verifier/apply",
	"github.com/fluxcd/cli-utils":            "verifier/experiment",
	"github.com/spf13/cobra":                 "cmd/rebuild-check",
	"sigs.k8s.io/structured-merge-diff/v6":   "verifier/drift",
}

// listed is what go list tells of a package. Deps and imports of test files are apart.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
	Standard                           bool
}

// packages are those of this module and all that they reach, by import path.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	// go test keeps a result until a file that the test itself opened changes; what go list opens
	// does not count.
	for _, root := range []string{"../go.mod", "../cmd", "../verifier", "../fixtures"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && (path == root || filepath.Ext(path) == ".go") {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,TestImports,XTestImports,Deps,Standard", "./...")
	cmd.Dir, cmd.Stderr = "..", &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the packages: %v: %s", err, stderr.String())
	}
	all := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// TestStagesDoNotKnowEachOther: a stage imports evidence, scenario and no other package of this
// module. Every package below verifier is a stage, a new one too.
func TestStagesDoNotKnowEachOther(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		name, ok := strings.CutPrefix(p.ImportPath, stages)
		if !ok {
			continue
		}
		seen++
		own := stages + strings.Split(name, "/")[0]
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(imported, module) && !under(imported, own) && !slices.Contains(shared, imported) {
				t.Errorf("%s imports %s: stages meet in package verifier only", p.ImportPath, imported)
			}
		}
	}
	if seen < len(pure) {
		t.Errorf("only %d packages below %s were looked at", seen, stages)
	}
}

// TestPurePackagesReachNothing: neither by themselves nor through what they import.
func TestPurePackagesReachNothing(t *testing.T) {
	all := packages(t)
	for _, name := range pure {
		p, ok := all[stages+name]
		if !ok {
			t.Errorf("there is no package %s", stages+name)
		}
		for _, dep := range p.Deps {
			if slices.ContainsFunc(impure, func(forbidden string) bool { return under(dep, forbidden) }) {
				t.Errorf("%s is pure, and reaches %s", p.ImportPath, dep)
			}
		}
	}
	for _, dep := range all[stages+"evidence"].Deps {
		if !all[dep].Standard {
			t.Errorf("evidence imports the standard library only, and reaches %s", dep)
		}
	}
}

// TestBigLibrariesLiveInOnePackage looks at what the program is built from; fixtures and tests may
// use any of them.
func TestBigLibrariesLiveInOnePackage(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		name, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok || under(name, "fixtures") {
			continue
		}
		for _, imported := range p.Imports {
			for library, home := range homes {
				if !under(imported, library) {
					continue
				}
				used[library] = true
				if name != home {
					t.Errorf("%s imports %s, which belongs to %q", p.ImportPath, imported, home)
				}
			}
		}
	}
	for library, home := range homes {
		if !used[library] {
			t.Errorf("nothing imports %s: %s should, or this list is out of date", library, home)
		}
	}
}

// under tells whether a path is parent or lies below it.
func under(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }
