package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// MaxFileSize is the size in bytes of the largest object that is read.
const MaxFileSize = 128 << 20

// cacheSize bounds the cache of delta bases. Deltas of neighbouring files share bases, so a small
// cache catches nearly all.
const cacheSize = 32 << 20

// objects reads and verifies objects of a repository and of those that it borrows from.
type objects struct {
	// mu guards the layers: go-git moves one file offset per pack.
	mu     sync.Mutex
	layers []*filesystem.Storage
}

func openObjects(p place) (*objects, error) {
	own := filepath.Join(p.common, "objects")
	borrowed, err := alternates(own, 5)
	if err != nil {
		return nil, err
	}
	shared := cache.NewObjectLRU(cacheSize)
	// KeepDescriptors: one open file per used pack, not one open per object.
	options := filesystem.Options{KeepDescriptors: true}
	layer := func(fs billy.Filesystem) *filesystem.Storage {
		return filesystem.NewStorageWithOptions(fs, shared, options)
	}
	o := &objects{layers: []*filesystem.Storage{layer(repository{dotgit.NewRepositoryFilesystem(osfs.New(p.git), osfs.New(p.common))})}}
	for _, dir := range borrowed {
		o.layers = append(o.layers, layer(repository{bare{osfs.New(dir)}}))
	}
	return o, nil
}

// repository hides objects/info/alternates from go-git, which would open every pack of a borrowed
// repository anew for each object.
type repository struct{ billy.Filesystem }

func (r repository) Open(name string) (billy.File, error) {
	if name == filepath.Join("objects", "info", "alternates") {
		return nil, os.ErrNotExist
	}
	return r.Filesystem.Open(name)
}

// bare shows an object folder, whatever its name, as the objects folder of a repository.
type bare struct{ billy.Filesystem }

func (b bare) inside(name string) string {
	if name == "objects" {
		return "."
	}
	return strings.TrimPrefix(name, "objects"+string(filepath.Separator))
}
func (b bare) Open(name string) (billy.File, error)  { return b.Filesystem.Open(b.inside(name)) }
func (b bare) Stat(name string) (os.FileInfo, error) { return b.Filesystem.Stat(b.inside(name)) }
func (b bare) ReadDir(name string) ([]os.FileInfo, error) {
	return b.Filesystem.ReadDir(b.inside(name))
}

// errNoObject says that no layer has the object.
var errNoObject = errors.New("the object is not in the repository")

// read returns an object whose content was hashed again.
func (o *objects) read(id plumbing.Hash) (kind plumbing.ObjectType, data []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// A forged pack must not end the process, whatever the decoder makes of it.
	defer func() {
		if r := recover(); r != nil {
			err = &IntegrityError{Object: id.String(), Why: fmt.Sprintf("decoding it failed: %v", r)}
		}
	}()
	for _, layer := range o.layers {
		size, err := layer.EncodedObjectSize(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err == nil && size > MaxFileSize {
			return 0, nil, fmt.Errorf("reading object %s: it has %d bytes, the limit is %d", id, size, MaxFileSize)
		}
		if err == nil {
			kind, data, err = readAll(layer, id)
		}
		if err != nil {
			return 0, nil, &IntegrityError{Object: id.String(), Why: err.Error()}
		}
		if got := plumbing.ComputeHash(kind, data); got != id {
			return 0, nil, &IntegrityError{Object: id.String(), Why: "its content hashes to " + got.String()}
		}
		return kind, data, nil
	}
	return 0, nil, fmt.Errorf("reading object %s: %w", id, errNoObject)
}

func readAll(layer *filesystem.Storage, id plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	object, err := layer.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return 0, nil, err
	}
	r, err := object.Reader()
	if err != nil {
		return 0, nil, err
	}
	data := make([]byte, 0, min(object.Size(), MaxFileSize)+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return object.Type(), data, r.Close()
		}
		if err != nil {
			return 0, nil, errors.Join(err, r.Close())
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 1)
		}
	}
}

// size returns an object's size in bytes as the repository states it.
func (o *objects) size(id plumbing.Hash) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, layer := range o.layers {
		size, err := layer.EncodedObjectSize(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return 0, &IntegrityError{Object: id.String(), Why: err.Error()}
		}
		return size, nil
	}
	return 0, fmt.Errorf("reading object %s: %w", id, errNoObject)
}

// withPrefix lists the ids that begin with a prefix of hexadecimal digits, of any length from four.
func (o *objects) withPrefix(prefix string) ([]plumbing.Hash, error) {
	whole := plumbing.NewHash(prefix[:len(prefix)/2*2] + strings.Repeat("0", 40-len(prefix)/2*2))
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []plumbing.Hash
	for _, layer := range o.layers {
		ids, err := layer.HashesWithPrefix(whole[:len(prefix)/2])
		if err != nil {
			return nil, fmt.Errorf("listing objects: %w", err)
		}
		for _, id := range ids {
			if strings.HasPrefix(id.String(), prefix) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	return found, nil
}

func (o *objects) close() error {
	var errs []error
	for _, layer := range o.layers {
		errs = append(errs, layer.Close())
	}
	return errors.Join(errs...)
}
