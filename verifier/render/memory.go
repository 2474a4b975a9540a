package render

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// memory is the tree's files as kustomize reads them. kustomize's own files in memory, which answer
// what a build does not ask, refuse names that a disk and Git allow, such as those with spaces.
type memory struct {
	filesys.FileSystem
	files map[string][]byte
	dirs  map[string]bool
	links map[string]string
}

func newMemory(files map[string][]byte, links map[string]string) memory {
	m := memory{filesys.MakeFsInMemory(), map[string][]byte{}, map[string]bool{mount: true}, links}
	for name, data := range files {
		name = path.Join(mount, name)
		m.files[name] = data
		for dir := path.Dir(name); !m.dirs[dir]; dir = path.Dir(dir) {
			m.dirs[dir] = true
		}
	}
	return m
}

// real is where a path leads when its linked folders are followed, as on a disk.
func (m memory) real(name string) string {
	name = path.Join("/", name)
	for from, to := range m.links {
		if rest, ok := strings.CutPrefix(name+"/", path.Join(mount, from)+"/"); ok {
			return path.Join(mount, to, rest)
		}
	}
	return name
}

func (m memory) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	real := m.real(name)
	if m.dirs[real] {
		return filesys.ConfirmedDir(real), "", nil
	}
	if _, ok := m.files[real]; ok {
		return filesys.ConfirmedDir(path.Dir(real)), path.Base(real), nil
	}
	return "", "", fmt.Errorf("'%s': %w", name, fs.ErrNotExist)
}

func (m memory) ReadFile(name string) ([]byte, error) {
	data, ok := m.files[m.real(name)]
	if !ok {
		return nil, fmt.Errorf("'%s': %w", name, fs.ErrNotExist)
	}
	return slices.Clone(data), nil
}

func (m memory) IsDir(name string) bool { return m.dirs[m.real(name)] }

func (m memory) Exists(name string) bool {
	_, ok := m.files[m.real(name)]
	return ok || m.IsDir(name)
}
