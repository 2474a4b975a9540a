package evidence

// Listed is one object as a listing of its kind shows it.
type Listed struct {
	ID
	UID string `json:"uid"`
	// Owners are the UIDs in its ownerReferences.
	Owners []string `json:"owners,omitempty"`
	// Generation counts changes of the object's spec; 0 for kinds that keep none.
	Generation int64 `json:"generation,omitempty"`
	// Version is the resourceVersion of ConfigMaps and Secrets, which keep no generation and which only
	// a writer of their content changes; empty for other kinds.
	Version string `json:"version,omitempty"`
}

// Inventory is every object that the API server lists, of every kind.
type Inventory struct {
	Objects []Listed `json:"objects"`
	// Kinds counts the kinds that were listed, Unread names those that could not be, with the reason.
	Kinds  int      `json:"kinds"`
	Unread []string `json:"unread,omitempty"`
}

// Live is one object of the set as the API server has it.
type Live struct {
	Object ID `json:"object"`
	// Content is nil when the server says that there is no such object (Missing) or when it could not
	// be read (Error).
	Content map[string]any `json:"content,omitempty"`
	Missing bool           `json:"missing,omitempty"`
	Error   string         `json:"error,omitempty"`
	// Again is what the server would make of Content if Git's text were applied to it once more: a
	// server-side dry-run with the same field manager that takes its fields back.
	Again map[string]any `json:"-"`
	// Fresh is what the server makes of Git's text for an object of a new name: all its defaults and
	// nobody's later writes. FreshError says why there is none.
	Fresh      map[string]any `json:"-"`
	FreshError string         `json:"freshError,omitempty"`
}

// FreshName is the name that Fresh is asked for.
const FreshName = "rbc-fresh"

// Change is one state of one object as a watch delivered it.
type Change struct {
	// Content is the object; Gone is true when this was its last state.
	Content map[string]any
	Gone    bool
	// Gap is set, and Content nil, when a watch broke and had to list again.
	Gap string
}
