package source

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// place is where the parts of a repository are on disk.
type place struct {
	// git is the repository's own folder, common the one that holds objects and refs; they differ in
	// a linked worktree. work is the work tree, empty for a bare repository.
	git, common, work string
}

// discover finds the repository that dir is in, and checks that its format can be read.
func discover(repo, dir string) (place, error) {
	asked := fmt.Sprintf("repository %q", repo)
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("finding the repository: %w", err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return place{}, &UsageError{Asked: asked, Problem: "no such folder", Do: "give the folder of a Git repository or its URL"}
	}
	for at := abs; ; at = filepath.Dir(at) {
		p, err := placeAt(at)
		if err == nil {
			return p, checkFormat(asked, p)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return place{}, &UsageError{Asked: asked, Problem: err.Error()}
		}
		if at == filepath.Dir(at) {
			return place{}, &UsageError{Asked: asked, Problem: "neither it nor a folder above it is a Git repository", Do: "give --repo the folder of one, or its URL"}
		}
	}
}

// placeAt reads the repository that starts at dir itself; fs.ErrNotExist says that none does.
func placeAt(dir string) (place, error) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err == nil && info.IsDir():
		return commonDir(place{git: dot, work: dir})
	case err == nil:
		text, err := os.ReadFile(dot)
		if err != nil {
			return place{}, err
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return place{}, fmt.Errorf("%s is a file that names no Git folder", dot)
		}
		return commonDir(place{git: join(dir, target), work: dir})
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return place{}, fs.ErrNotExist
		}
	}
	return commonDir(place{git: dir})
}

func commonDir(p place) (place, error) {
	p.common = p.git
	text, err := os.ReadFile(filepath.Join(p.git, "commondir"))
	if err == nil {
		p.common = join(p.git, strings.TrimSpace(string(text)))
	}
	if _, err := os.Stat(filepath.Join(p.common, "objects")); err != nil {
		return place{}, fmt.Errorf("the Git folder %s holds no objects", p.common)
	}
	return p, nil
}

func join(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// readable are the repository extensions that do not change how objects and refs are read; see
// gitrepository-layout(5) and git's Documentation/technical/repository-version.
var readable = map[string]bool{
	"noop": true, "noop-v1": true, "partialclone": true, "preciousobjects": true, "worktreeconfig": true, "relativeworktrees": true,
	"objectformat=sha1": true, "refstorage=files": true,
}

// checkFormat refuses repositories whose objects or refs are stored in another way than SHA-1 and files.
func checkFormat(asked string, p place) error {
	file, err := os.Open(filepath.Join(p.common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the repository's config: %w", err)
	}
	defer file.Close()
	section := ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.ToLower(strings.TrimSpace(lines.Text()))
		if head, rest, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(head, "[") {
			section, line = strings.TrimSpace(head[1:]), strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"`)
		refuse := func(what string) error {
			return &UsageError{Asked: asked, Problem: what, Do: "use a clone in the default format: SHA-1 objects, refs as files"}
		}
		switch {
		case key == "" || key[0] == '#' || key[0] == ';':
		case section == "core" && key == "repositoryformatversion" && value != "0" && value != "1":
			return refuse("the repository format version " + value + " cannot be read")
		case section == "extensions" && key == "objectformat" && value != "sha1":
			return refuse("its objects are named by " + strings.ToUpper(value) + ", which cannot be read")
		case section == "extensions" && key == "refstorage" && value != "files":
			return refuse("its refs are stored as " + value + ", which cannot be read")
		case section == "extensions" && !readable[key] && !readable[key+"="+value]:
			return refuse("it uses the format extension " + key + ", which cannot be read")
		}
	}
	return lines.Err()
}

// alternates lists the object folders that the one in common borrows from, and those that they
// borrow from, down to git's own limit of five.
func alternates(objectDir string, depth int) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(objectDir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) || depth == 0 {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading alternates: %w", err)
	}
	var found []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimRight(line, "\r"); line == "" || line[0] == '#' {
			continue
		}
		dir := join(objectDir, line)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("the repository borrows objects from %s (objects/info/alternates), which is not there", dir)
		}
		more, err := alternates(dir, depth-1)
		if err != nil {
			return nil, err
		}
		found = append(append(found, dir), more...)
	}
	return found, nil
}
