package evidence

// StubMark is the label of every object that stands in for one which is not in the repository, and the
// annotation with the reason.
const StubMark = "rebuild-check.dev/stub"

// Stub is a Secret or ConfigMap that the run made in the place of one that is not in the repository, or
// keys that it added to one that is.
type Stub struct {
	Object ID     `json:"object"`
	Reason string `json:"reason"`
	// Origin is where it is declared as an input.
	Origin Origin `json:"origin,omitzero"`
	// Explain is true when --explain-all made it, and no declared input: such a run is no pass.
	Explain bool `json:"explain,omitempty"`
	// Texts are the placeholders by key, as rebuild-check.yaml or this program has them; no secrets.
	Texts map[string]string `json:"texts,omitempty"`
}
