package evidence

// Use is a place in the set that names an image.
type Use struct {
	Object ID     `json:"object"`
	Field  string `json:"field"`
	Origin Origin `json:"origin"`
}

// Image is one image reference of the set and what the registry proved about it.
type Image struct {
	// Reference is the text in Git; Pinned is true when it holds a digest.
	Reference string `json:"reference"`
	Pinned    bool   `json:"pinned"`
	Uses      []Use  `json:"uses"`
	// Endpoint is the registry that answered, as scheme://host; empty when none did.
	Endpoint string `json:"endpoint,omitempty"`
	// Index is the digest of the image index, empty when the reference names a single manifest.
	Index string `json:"index,omitempty"`
	// Manifest is the digest of the manifest for Platform (os/arch[/variant]), Config that of its config.
	Manifest string `json:"manifest,omitempty"`
	Config   string `json:"config,omitempty"`
	Platform string `json:"platform,omitempty"`
	// Size is the sum of the compressed layers and the config in bytes.
	Size int64 `json:"size,omitempty"`
	// After is the digest that Reference resolves to when the run is over, empty when it was not asked again.
	After string `json:"after,omitempty"`
}

// Resolved tells whether the chain from the reference to the config was proven.
func (i Image) Resolved() bool { return i.Manifest != "" && i.Config != "" }

// Top is the digest that the reference itself names: the index if there is one, else the manifest.
func (i Image) Top() string {
	if i.Index != "" {
		return i.Index
	}
	return i.Manifest
}
