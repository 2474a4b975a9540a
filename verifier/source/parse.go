package source

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// parseTree decodes a tree object and refuses names that Git itself refuses to check out because
// they would change the meaning of a path.
func parseTree(data []byte) (*folder, error) {
	f := &folder{byName: map[string]int{}}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < 20 {
			return nil, errors.New("the tree is cut off")
		}
		bits, err := strconv.ParseUint(mode, 8, 32)
		switch bits {
		case 0o40000, 0o120000, 0o160000, 0o100644, 0o100664, 0o100755:
		default:
			return nil, fmt.Errorf("entry %q has the unknown mode %q (%v)", name, mode, err)
		}
		_, repeated := f.byName[name]
		if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.Contains(name, "/") || repeated {
			return nil, fmt.Errorf("the tree holds the impossible or repeated name %q", name)
		}
		f.byName[name] = len(f.list)
		f.list = append(f.list, treeEntry{name: name, mode: uint32(bits), id: plumbing.Hash(rest[:20])})
		data = rest[20:]
	}
	return f, nil
}
