package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// Metrics are the names of the collectors, in the order in which reports show them.
var Metrics = []string{"diff", "apply", "rollout", "artifact digest"}

// Roles are what an experiment can hold fixed.
var Roles = []string{"image", "model", "input"}

// maxRepeats bounds a run; each repeat is a whole rebuild.
const maxRepeats = 100

// Default is the experiment of a set that declares none. A set that asks for no Pod has no image to
// hold fixed and no artifact to see.
func Default(set *evidence.Set) evidence.Experiment {
	experiment := evidence.Experiment{Name: "default", Change: "rebuild from the revision", Fixed: []string{}, Metrics: []string{"diff", "apply", "rollout"}, Repeats: 3}
	if set.ExpectsPods() {
		experiment.Fixed, experiment.Metrics = []string{"image"}, slices.Clone(Metrics)
	}
	return experiment
}

// Experiments finds every experiment in the set: a ConfigMap whose data has the keys change, fixed,
// metrics and repeats. A set that holds none gets the default one. All mistakes are reported at
// once, each with its file and line.
func Experiments(set *evidence.Set) ([]evidence.Experiment, error) {
	var list []evidence.Experiment
	var mistakes []error
	places := map[string]evidence.Origin{}
	for i := range set.Objects {
		object := &set.Objects[i]
		data, _ := object.Content["data"].(map[string]any)
		if object.Kind != "ConfigMap" || object.Group != "" || !hasKeys(data) {
			continue
		}
		if first, taken := places[object.Name]; taken {
			mistakes = append(mistakes, fmt.Errorf("%s: experiment %s is declared twice; the other is at %s: rename one", object.Origin, object.Name, first))
		} else {
			places[object.Name] = object.Origin
		}
		experiment, err := parse(object, data)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		list = append(list, experiment)
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	if list == nil {
		list = []evidence.Experiment{Default(set)}
	}
	return list, nil
}

func hasKeys(data map[string]any) bool {
	for _, key := range []string{"change", "fixed", "metrics", "repeats"} {
		if _, ok := data[key]; !ok {
			return false
		}
	}
	return true
}

func parse(object *evidence.Object, data map[string]any) (evidence.Experiment, error) {
	var mistakes []error
	wrong := func(key, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("%s: experiment %s, %s: "+format, append([]any{object.At("data", key), object.Name, key}, args...)...))
	}
	text := func(key string) string {
		s, ok := data[key].(string)
		if !ok {
			wrong(key, "want a string, as ConfigMaps hold; put it in quotes")
		}
		return s
	}
	experiment := evidence.Experiment{Name: object.Name, Origin: object.Origin, Change: text("change")}
	if object.Namespace != "" {
		experiment.Name = object.Namespace + "/" + object.Name
	}
	experiment.Fixed = words(text("fixed"), Roles, func(word string) {
		wrong("fixed", "nothing is known of %q, so that it could not be checked; known are: %s", word, strings.Join(Roles, ", "))
	})
	before := len(mistakes)
	experiment.Metrics = words(text("metrics"), Metrics, func(word string) {
		wrong("metrics", "there is no metric %q; known are: %s", word, strings.Join(Metrics, ", "))
	})
	if len(experiment.Metrics) == 0 && len(mistakes) == before {
		wrong("metrics", "it names none; known are: %s", strings.Join(Metrics, ", "))
	}
	if repeats := text("repeats"); repeats != "" || data["repeats"] == "" {
		n, err := strconv.Atoi(strings.TrimSpace(repeats))
		if err != nil || n < 1 || n > maxRepeats {
			wrong("repeats", "want a whole number from 1 to %d, not %q", maxRepeats, repeats)
		}
		experiment.Repeats = n
	}
	return experiment, errors.Join(mistakes...)
}

// words splits a comma-separated list and reports each unknown word.
func words(list string, known []string, unknown func(string)) []string {
	var result []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "" || slices.Contains(result, word):
		case slices.Contains(known, word):
			result = append(result, word)
		default:
			unknown(word)
		}
	}
	return result
}

// Repeats is how many times the set is rebuilt: the most that any experiment asks for.
func Repeats(experiments []evidence.Experiment) int {
	most := 0
	for _, e := range experiments {
		most = max(most, e.Repeats)
	}
	return most
}
