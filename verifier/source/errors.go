package source

import (
	"fmt"
	"io/fs"
)

// UsageError says that what was asked for is not there or not clear: an unknown or ambiguous
// revision, a folder without a repository, a repository format that cannot be read, or a path that
// is not in the revision. Nothing is wrong with the surroundings; the caller has to ask differently.
type UsageError struct {
	// Asked is what the user gave, with its flavour: `revision "mian"`.
	Asked string
	// Problem says what is wrong with it, Do the way out; Do may be empty.
	Problem, Do string
	// Cause is the sentinel that errors.Is finds: fs.ErrNotExist for a missing path, or nil.
	Cause error
}

func (e *UsageError) Error() string {
	if e.Do == "" {
		return e.Asked + ": " + e.Problem
	}
	return e.Asked + ": " + e.Problem + "; " + e.Do
}

func (e *UsageError) Unwrap() error { return e.Cause }

// IntegrityError says that an object in the repository is not what its id says, or cannot be
// decoded. The repository is damaged or forged, so nothing can be said about the revision.
type IntegrityError struct {
	// Object is the id that was asked for; Why says what was found.
	Object, Why string
}

func (e *IntegrityError) Error() string {
	return fmt.Sprintf("reading object %s: %s", e.Object, e.Why)
}

// SubmoduleError says that a path is, or lies in, a submodule whose recorded commit cannot be read.
type SubmoduleError struct {
	// Path is the submodule's own path, Commit the commit that the revision records for it.
	Path, Commit string
	// Declared is the file:line of .gitmodules that declares it, empty if none does.
	Declared string
	// Why says what kept its files from being read.
	Why string
}

func (e *SubmoduleError) Error() string {
	declared := ", which .gitmodules does not declare"
	if e.Declared != "" {
		declared = ", declared at " + e.Declared
	}
	return fmt.Sprintf("%s is a submodule at commit %s%s: %s", e.Path, e.Commit, declared, e.Why)
}

// Submodule returns the path and the recorded commit, for callers that know the error by this method.
func (e *SubmoduleError) Submodule() (path, commit string) { return e.Path, e.Commit }

// LinkError says that a symbolic link leads out of the tree or never ends. errors.Is finds
// fs.ErrInvalid in it. The target is text of the revision; nothing outside the tree was looked at.
type LinkError struct {
	Path, Target, Why string
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link to %q: %s", e.Path, e.Target, e.Why)
}

func (e *LinkError) Unwrap() error { return fs.ErrInvalid }
