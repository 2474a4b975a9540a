package evidence

import "time"

// Cluster is the place in which the repeats ran.
type Cluster struct {
	Name    string `json:"name"`
	Engine  string `json:"engine"`
	Cgroup  string `json:"cgroup"`
	Version string `json:"version"`
	// NodeImage is the reference as given; NodeImageID is what the engine resolved it to.
	NodeImage   string   `json:"nodeImage"`
	NodeImageID string   `json:"nodeImageID"`
	Nodes       []Node   `json:"nodes"`
	Patches     []string `json:"patches,omitempty"`
}

// Node is one node as the API server describes it.
type Node struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Kernel   string `json:"kernel"`
	Runtime  string `json:"runtime"`
	Kubelet  string `json:"kubelet"`
}

// Applied is what the API server answered to one object.
type Applied struct {
	Object ID `json:"object"`
	// Error is the server's refusal, empty when it took the object.
	Error string `json:"error,omitempty"`
	// Reason is the server's own word for Error (Invalid, Conflict, Forbidden, …), or ReasonTrouble.
	Reason string `json:"reason,omitempty"`
}

// ReasonTrouble marks an object that the server did not judge: it could not be spoken to.
const ReasonTrouble = "Trouble"

// Event is one entry of a repeat's timeline.
type Event struct {
	// Seconds since the repeat's apply began, by a monotonic clock.
	Seconds float64 `json:"seconds"`
	// Kind is pod, container, event, gap or step.
	Kind   string `json:"kind"`
	Object ID     `json:"object"`
	// Reason is one word (Scheduled, Ready, Restarted, FailedMount); Message is the rest.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Pod is one Pod at the end of a repeat, and the object of the set that it belongs to.
type Pod struct {
	Pod      ID     `json:"pod"`
	Workload ID     `json:"workload"`
	Node     string `json:"node,omitempty"`
}

// Container is one container that ran in a repeat.
type Container struct {
	Pod ID `json:"pod"`
	// Workload is the object of the set that the Pod belongs to, or else its owner.
	Workload  ID     `json:"workload"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Reference string `json:"reference"`
	// ImageID is the container runtime's own text; Digest is the sha256:… in it, empty when there is none.
	ImageID  string `json:"imageID"`
	Digest   string `json:"digest,omitempty"`
	Ready    bool   `json:"ready"`
	Restarts int    `json:"restarts"`
	State    string `json:"state"`
	// Why is the reason of a waiting or of the last terminated state, Log the end of the log of the
	// container that failed last, at most 20 lines.
	Why string   `json:"why,omitempty"`
	Log []string `json:"log,omitempty"`
}

// Artifact is a piece of content that the experiment holds fixed.
type Artifact struct {
	// Role is image, model or input.
	Role string `json:"role"`
	Name string `json:"name"`
	// Git is the digest of the content in the set, Live that of the content in the cluster. For
	// images Git is the locked manifest and Live what ran.
	Git  string `json:"git,omitempty"`
	Live string `json:"live,omitempty"`
	// MountedBy names the running Pods that mount it.
	MountedBy []string `json:"mountedBy,omitempty"`
}

// Difference is one field in which live and Git differ. Values of Secrets are keyed hashes.
type Difference struct {
	// Question is declared, foreign, object or bits: the four questions of docs/architecture.md.
	Question string `json:"question"`
	Object   ID     `json:"object"`
	Field    string `json:"field,omitempty"`
	Origin   Origin `json:"origin,omitzero"`
	// Change is changed, removed, added, undeclared, missing or extra, seen from Git. Undeclared fields
	// have the server's default in Git.
	Change string `json:"change"`
	Git    string `json:"git,omitempty"`
	Live   string `json:"live,omitempty"`
	// Manager owns the field in live, and wrote it at Time.
	Manager string `json:"manager,omitempty"`
	Time    string `json:"time,omitempty"`
}

// Rule is a named normalisation that applied, and how often.
type Rule struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Comparison answers the four questions for one repeat.
type Comparison struct {
	// Compared counts objects of the set that were read from the cluster and compared field by field.
	Compared int `json:"compared"`
	// Listed counts the resource kinds that were listed to look for extra objects; Unread names those
	// that could not be.
	Listed      int          `json:"listed"`
	Unread      []string     `json:"unread,omitempty"`
	Differences []Difference `json:"differences"`
	Rules       []Rule       `json:"rules,omitempty"`
}

// Cleaning is the proof that a repeat left nothing behind.
type Cleaning struct {
	// Skipped says why there was none: after the last repeat the cluster itself is deleted.
	Skipped string `json:"skipped,omitempty"`
	// Left lists objects that are there and were not before the first repeat, Lost those that were
	// and are not.
	Left   []ID     `json:"left,omitempty"`
	Lost   []ID     `json:"lost,omitempty"`
	Unread []string `json:"unread,omitempty"`
	Listed int      `json:"listed"`
	// NewCluster is true when the next repeat got a new cluster: because this one was not clean, or
	// because every repeat does.
	NewCluster bool `json:"newCluster,omitempty"`
}

// Metric is one metric's value in one repeat.
type Metric struct {
	Name string `json:"name"`
	// Unit is s, differences or sha256; Value is set for numbers, Text for digests.
	Unit     string  `json:"unit"`
	Value    float64 `json:"value"`
	Text     string  `json:"text,omitempty"`
	Observed bool    `json:"observed"`
	// Why says what kept it from being observed.
	Why string `json:"why,omitempty"`
}

// Repeat is one rebuild from clean. Stages that were not reached are nil.
type Repeat struct {
	Number     int       `json:"number"`
	Cluster    string    `json:"cluster"`
	Namespaces []string  `json:"namespaces"`
	Applied    []Applied `json:"applied"`
	Settled    *Settled  `json:"settled,omitempty"`
	Timeline   []Event   `json:"-"`
	// Pods are all Pods that were there at the end, also those that no container of ran.
	Pods       []Pod       `json:"pods"`
	Containers []Container `json:"containers"`
	Artifacts  []Artifact  `json:"artifacts"`
	Comparison *Comparison `json:"comparison,omitempty"`
	Cleaning   *Cleaning   `json:"cleaning,omitempty"`
	Metrics    []Metric    `json:"metrics"`
	// Findings are what the stages of this repeat found and the other fields do not say.
	Findings []Finding `json:"findings,omitempty"`
	// Seconds a phase took: apply, rollout, compare, clean.
	Seconds map[string]float64 `json:"seconds"`
	// Ended is true when the repeat ran to its end.
	Ended bool `json:"ended"`
}

// Settled is how the rollout ended.
type Settled struct {
	// Ready is true when every object was current, every Pod ready, and it held for Window seconds.
	Ready  bool    `json:"ready"`
	Window float64 `json:"window"`
	// Seconds from the end of the apply until all was current and ready; without the rest of the window.
	Seconds float64 `json:"seconds"`
	// Pods counts the Pods that were ready or had succeeded; Expected is true when the set holds a
	// workload that asks for at least one.
	Pods     int  `json:"pods"`
	Expected bool `json:"expected"`
	// Pending says, object by object, what was not current when the wait ended.
	Pending []Pending `json:"pending,omitempty"`
	// Gaps counts interruptions of the watches.
	Gaps int `json:"gaps"`
	// Cause says why the wait ended when Ready is false: failed (an object cannot become ready),
	// timeout or interrupted.
	Cause string `json:"cause,omitempty"`
}

// Pending is an object that was not current.
type Pending struct {
	Object ID     `json:"object"`
	Status string `json:"status"`
	Why    string `json:"why"`
}

// Stage is one step of the run as a person sees it.
type Stage struct {
	Name string `json:"name"`
	// Start and Seconds are measured from the run's start by a monotonic clock.
	Start   float64 `json:"start"`
	Seconds float64 `json:"seconds"`
	Note    string  `json:"note,omitempty"`
}

// Clock is a wall-clock reading, and named as one.
type Clock = time.Time
