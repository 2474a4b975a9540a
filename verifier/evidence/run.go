package evidence

// SchemaVersion names the form of the facts. Within v1alpha1 fields are only added.
const SchemaVersion = "rebuild-check.dev/v1alpha1"

// Experiment is what was declared: the four keys of a seed ConfigMap.
type Experiment struct {
	// Name is namespace/name of the ConfigMap, or "default" when the set declares none.
	Name    string   `json:"name"`
	Origin  Origin   `json:"origin,omitzero"`
	Change  string   `json:"change"`
	Fixed   []string `json:"fixed"`
	Metrics []string `json:"metrics"`
	Repeats int      `json:"repeats"`
}

// Request is what the user asked for; URLs carry no credentials.
type Request struct {
	Rev       string   `json:"rev"`
	Path      string   `json:"path"`
	Namespace string   `json:"namespace"`
	Nodes     int      `json:"nodes"`
	Isolation string   `json:"isolation"`
	Mirrors   []string `json:"mirrors,omitempty"`
	Timeout   float64  `json:"timeout"`
	// Charts are the paths for which values or a name of the release were given.
	Charts []Chart `json:"charts,omitempty"`
}

// Chart is what a Helm chart was given: files of the revision, and KEY=VALUE with a keyed hash for the
// value.
type Chart struct {
	Path    string   `json:"path"`
	Release string   `json:"release,omitempty"`
	Values  []string `json:"values,omitempty"`
	Set     []string `json:"set,omitempty"`
}

// Outcome is the answer to the question whether the revision can be rebuilt from the repository alone.
type Outcome string

// Outcomes; docs/trust.md says what each tells and does not tell.
const (
	Reproduced    Outcome = "reproduced"
	NotReproduced Outcome = "not-reproduced"
	Undecided     Outcome = "inconclusive"
)

// Run is all facts of a run. Everything but Findings, Outcome and ExitCode is recorded by a stage;
// those three are computed from the rest, and anyone can compute them again (package verdict).
type Run struct {
	SchemaVersion string       `json:"schemaVersion"`
	Tool          string       `json:"tool"`
	ID            string       `json:"id"`
	Started       Clock        `json:"started"`
	Request       Request      `json:"request"`
	Revision      *Revision    `json:"revision,omitempty"`
	Set           *Set         `json:"set,omitempty"`
	Experiments   []Experiment `json:"experiments,omitempty"`
	Images        []Image      `json:"images"`
	// ImagesAsked is true when the registries were asked about every reference of the set.
	ImagesAsked bool      `json:"imagesAsked"`
	Clusters    []Cluster `json:"clusters"`
	Repeats     []Repeat  `json:"repeats"`
	Stages      []Stage   `json:"stages"`
	// Found are the findings of the stages before the first repeat and after the last.
	Found []Finding `json:"found"`
	// Stubs are what the run made in the place of what is not in the repository.
	Stubs []Stub `json:"stubs,omitempty"`
	// Explain is true when the run was to go on past what is missing (--explain-all).
	Explain bool `json:"explain,omitempty"`
	// Signal is INT or TERM when one ended the run.
	Signal string `json:"signal,omitempty"`
	// Leftovers are what could not be removed, each with the command that removes it.
	Leftovers  []string `json:"leftovers,omitempty"`
	NotCovered []string `json:"notCovered"`

	Findings []Finding `json:"findings"`
	Outcome  Outcome   `json:"outcome"`
	ExitCode int       `json:"exitCode"`
}
