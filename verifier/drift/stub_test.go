package drift

import (
	"slices"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// TestStubs: what the run applied beside the set is no extra object, and one of the same name in
// another namespace is.
func TestStubs(t *testing.T) {
	stub := evidence.ID{Kind: "Secret", Namespace: "app", Name: "sec"}
	other := evidence.ID{Kind: "Secret", Namespace: "default", Name: "sec"}
	got := Compare(Input{
		Set: &evidence.Set{}, Stubs: []evidence.ID{stub},
		Now: evidence.Inventory{Objects: []evidence.Listed{{ID: stub, UID: "1"}, {ID: other, UID: "2"}}},
	})
	if len(got.Differences) != 1 || got.Differences[0].Object != other {
		t.Errorf("differences %+v", got.Differences)
	}
	if !slices.ContainsFunc(got.Rules, func(r evidence.Rule) bool { return r.Name == "stub-of-the-run" && r.Count == 1 }) {
		t.Errorf("rules %+v", got.Rules)
	}
}
