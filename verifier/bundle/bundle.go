// Package bundle writes the evidence of a run to disk and reads it back.
package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// File is the name of the facts inside an evidence folder.
const File = "evidence.json"

// Raw is what a repeat read from the cluster, beside the facts drawn from it.
type Raw struct {
	Number    int
	Live      []evidence.Live
	Inventory evidence.Inventory
	Timeline  []evidence.Event
}

// Prepare makes the folder, or takes an empty one. A folder that holds anything, a symlink or a
// file is refused: nothing of an earlier run may be taken for this one's.
func Prepare(folder string) error {
	info, err := os.Lstat(filepath.Clean(folder)) // "link/" would follow the link
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(folder, 0o700)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("evidence folder %s: it is no folder; name another with --evidence-dir", folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("evidence folder %s: it is not empty; name a new one with --evidence-dir", folder)
	}
	probe, err := os.CreateTemp(folder, ".probe-")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Write puts the raw files of each repeat into the folder, and the facts last.
func Write(folder string, run evidence.Run, raws []Raw) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, raw := range raws {
		sub := filepath.Join(folder, fmt.Sprintf("repeat-%d", raw.Number))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return err
		}
		for name, value := range map[string]any{"live.json": raw.Live, "inventory.json": raw.Inventory, "timeline.json": raw.Timeline} {
			if err := writeJSON(filepath.Join(sub, name), value); err != nil {
				return err
			}
		}
	}
	return writeJSON(filepath.Join(folder, File), run)
}

// writeJSON writes a file whole or not at all.
func writeJSON(path string, value any) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".writing-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	encoder := json.NewEncoder(temp)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := errors.Join(encoder.Encode(value), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(temp.Name(), path)
}

// Read gives the facts of an evidence folder.
func Read(folder string) (evidence.Run, error) {
	var run evidence.Run
	text, err := os.ReadFile(filepath.Join(folder, File))
	if err != nil {
		return run, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&run)
	if _, more := decoder.Token(); err == nil && more != io.EOF {
		err = errors.New("something follows the facts")
	}
	if err != nil {
		return run, fmt.Errorf("reading %s: %w", filepath.Join(folder, File), err)
	}
	if run.SchemaVersion != evidence.SchemaVersion {
		return run, fmt.Errorf("%s has schemaVersion %q, and this version reads %q", filepath.Join(folder, File), run.SchemaVersion, evidence.SchemaVersion)
	}
	if run.Set != nil {
		for _, o := range run.Set.Objects {
			numbers(o.Content)
		}
	}
	return run, nil
}

// numbers makes whole numbers int64 and others float64, as evidence.Object says, and gives the value.
func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = numbers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = numbers(item)
		}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		f, _ := value.Float64() // a JSON number that is out of range is infinite
		return f
	}
	return value
}
