package evidence

import (
	"cmp"
	"slices"
)

// ReferenceState says where a thing that is needed comes from.
type ReferenceState string

// States of a reference.
const (
	// InSet is a thing of the set itself.
	InSet ReferenceState = "set"
	// Made is what a controller makes from an object of the set.
	Made ReferenceState = "made"
	// Given is what every throwaway cluster has, or what the run creates.
	Given ReferenceState = "given"
	// Input is what the revision declares as coming from outside the repository.
	Input ReferenceState = "input"
	// Missing is none of these.
	Missing ReferenceState = "missing"
)

// Reference is something that an object of the set needs by name.
type Reference struct {
	// Object is what is needed, Key a key inside it when not the whole is.
	Object ID     `json:"object"`
	Key    string `json:"key,omitempty"`
	// NeededBy is the object that needs it, Field the path of the name inside it.
	NeededBy ID     `json:"neededBy"`
	Field    string `json:"field"`
	Origin   Origin `json:"origin,omitzero"`
	// Optional is true when the object does without.
	Optional bool           `json:"optional,omitempty"`
	State    ReferenceState `json:"state"`
	// By is who makes, gives or declares it: an object of the set, or a reason in words.
	By string `json:"by,omitempty"`
	// Finding is what the reference counts for when the thing, or its key, is not there; nil otherwise.
	Finding *Finding `json:"finding,omitempty"`
}

// SortReferences orders references by the object that needs, the field, and what is needed; equal ones
// keep their order.
func SortReferences(references []Reference) {
	slices.SortStableFunc(references, func(a, b Reference) int {
		return cmp.Or(a.NeededBy.Compare(b.NeededBy), cmp.Compare(a.Field, b.Field), a.Object.Compare(b.Object), cmp.Compare(a.Key, b.Key))
	})
}

// Closure is what the command closure writes as JSON: what the objects of a revision need by name, and
// what is wrong with the set.
type Closure struct {
	SchemaVersion string    `json:"schemaVersion"`
	Revision      *Revision `json:"revision,omitempty"`
	// Path is what was rendered, Namespace where objects go that name none.
	Path      string `json:"path"`
	Namespace string `json:"namespace"`
	// Objects is how many the set has.
	Objects    int         `json:"objects"`
	References []Reference `json:"references"`
	Findings   []Finding   `json:"findings"`
}
