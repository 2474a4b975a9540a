package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a docker command first on PATH. It logs its arguments and standard input, and answers as
// the script of the same name in its folder does; a command without a script succeeds in silence.
type fake struct {
	t      *testing.T
	folder string
}

const fakeDocker = `#!/bin/sh
cd "${0%/*}" || exit 1
echo "$*" >>log
[ -f "$1.sh" ] && . "./$1.sh"
exit 0
`

func newFake(t *testing.T, scripts map[string]string) *fake {
	t.Helper()
	f := &fake{t, t.TempDir()}
	for name, text := range scripts {
		f.answer(name, text)
	}
	if err := os.WriteFile(filepath.Join(f.folder, "docker"), []byte(fakeDocker), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", f.folder+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	return f
}

func (f *fake) answer(name, script string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name+".sh"), []byte(script), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// read is a file in the fake's folder, "" where there is none.
func (f *fake) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	return string(text)
}

// calls are the logged calls that begin with prefix.
func (f *fake) calls(prefix string) []string {
	f.t.Helper()
	var list []string
	for line := range strings.Lines(f.read("log")) {
		if strings.HasPrefix(line, prefix) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// wantTrouble wants a *Trouble of that code, with each of the texts in its message or way out.
func wantTrouble(t *testing.T, err error, code string, texts ...string) {
	t.Helper()
	var trouble *Trouble
	if !errors.As(err, &trouble) {
		t.Fatalf("error %v, want a *Trouble", err)
	}
	if trouble.Code != code {
		t.Errorf("code %s, want %s", trouble.Code, code)
	}
	for _, text := range texts {
		if !strings.Contains(trouble.Error()+"\n"+trouble.Do, text) {
			t.Errorf("%q, do %q: neither has %q", trouble.Error(), trouble.Do, text)
		}
	}
}

// wantEmptyTemp wants nothing left in TMPDIR.
func wantEmptyTemp(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}
