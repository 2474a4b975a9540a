// Package evidence is the vocabulary of rebuild-check: plain facts, one file a stage. It holds no
// client, no local path, no credential and no clock reading that is not named as one, and it
// imports the standard library only.
package evidence

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says what a finding does to the outcome.
type Severity string

// Severities, worst first: Fail is the repository's fault, Inconclusive the surroundings'; Warn and
// Info leave the outcome as it is.
const (
	Fail         Severity = "fail"
	Inconclusive Severity = "inconclusive"
	Warn         Severity = "warn"
	Info         Severity = "info"
)

var severityRank = map[Severity]int{Fail: 0, Inconclusive: 1, Warn: 2, Info: 3}

// Origin is a place in the revision: a slash-separated path from the repository's root and a line
// counted from 1. Line 0 means that only the file is known, an empty File that nothing is.
type Origin struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String is file:line, or file, or "".
func (o Origin) String() string {
	if o.File == "" || o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Finding is a fact that counts. Code is one of the stable codes of docs/evidence.md.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Object is the thing the finding is about, as Kind/namespace/name or a free identifier (an
	// image reference, a file).
	Object string `json:"object,omitempty"`
	// Field is the path inside Object, or inside NeededBy where that is set.
	Field string `json:"field,omitempty"`
	// NeededBy is the object that needs Object, where Object is missing.
	NeededBy string `json:"neededBy,omitempty"`
	Origin   Origin `json:"origin,omitzero"`
	// Repeat is the repeat in which it was seen, counted from 1; 0 when it belongs to none.
	Repeat int    `json:"repeat,omitempty"`
	Want   string `json:"want,omitempty"`
	Got    string `json:"got,omitempty"`
	// Message says what is wrong in one line; Do says what to do about it.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// SortFindings orders findings by severity, repeat, code, object and field; equal ones keep their
// order.
func SortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(severityRank[a.Severity], severityRank[b.Severity]),
			cmp.Compare(a.Repeat, b.Repeat),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Field, b.Field),
		)
	})
}
