//go:build !linux

package render

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

// Only Linux has namespaces; elsewhere the child has its empty environment and its own limits.
func isolations(int) []uintptr { return []uintptr{0} }

func isolate(*exec.Cmd, uintptr) {}

func limit(int64, int) error { return nil }
