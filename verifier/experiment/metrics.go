package experiment

import "rebuild-check.dev/rebuild-check/verifier/evidence"

// collectors are the metrics by name: what each reads from a repeat's facts. A metric whose facts
// are not there is unobserved, with the reason, and never zero.
var collectors = map[string]func(evidence.Repeat) evidence.Metric{
	"diff": func(r evidence.Repeat) evidence.Metric {
		m := evidence.Metric{Unit: "differences"}
		switch {
		case r.Comparison == nil:
			m.Why = "live was not compared with Git"
		case len(r.Comparison.Unread) > 0:
			m.Why = "part of the cluster could not be read"
		default:
			m.Observed, m.Value = true, float64(len(r.Comparison.Differences))
		}
		return m
	},
	"apply": func(r evidence.Repeat) evidence.Metric {
		return seconds(r, "apply", "the set was not applied")
	},
	"rollout": func(r evidence.Repeat) evidence.Metric {
		if r.Settled == nil || !r.Settled.Ready {
			return evidence.Metric{Unit: "s", Why: "the set did not settle"}
		}
		return evidence.Metric{Unit: "s", Observed: true, Value: r.Settled.Seconds}
	},
	"artifact digest": func(r evidence.Repeat) evidence.Metric {
		m := evidence.Metric{Unit: "sha256"}
		for _, a := range r.Artifacts {
			if a.Live == "" {
				m.Why = "no digest of " + a.Name + " was seen"
				return m
			}
		}
		if len(r.Artifacts) == 0 {
			m.Why = "no container ran and no artifact was mounted"
			return m
		}
		m.Observed, m.Text = true, ArtifactDigest(r.Artifacts)
		return m
	},
}

func seconds(r evidence.Repeat, phase, why string) evidence.Metric {
	value, ok := r.Seconds[phase]
	if !ok {
		return evidence.Metric{Unit: "s", Why: why}
	}
	return evidence.Metric{Unit: "s", Observed: true, Value: value}
}

// Measure reads the named metrics from a repeat's facts, in the order of names.
func Measure(names []string, r evidence.Repeat) []evidence.Metric {
	metrics := []evidence.Metric{}
	for _, name := range names {
		m := evidence.Metric{Why: "there is no such metric"}
		if collect, ok := collectors[name]; ok {
			m = collect(r)
		}
		m.Name = name
		metrics = append(metrics, m)
	}
	return metrics
}
