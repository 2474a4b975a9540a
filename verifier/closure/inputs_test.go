package closure

import (
	"reflect"
	"strings"
	"testing"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// TestInputs holds a set with its declared inputs a row, and every finding and stub that it must give.
func TestInputs(t *testing.T) {
	needs := container("env: [{name: A, valueFrom: {secretKeyRef: {name: sec, key: token}}}]")
	secret := object("v1", "Secret", "sec", "data: {other: eA==}")
	const at = " < Pod/app/p @ spec.containers[0].env[0].valueFrom.secretKeyRef."
	vault := func(provider string) string {
		return strings.Join([]string{needs, crd(externalGroup, "ExternalSecret", "Namespaced"), crd(externalGroup, "SecretStore", "Namespaced"),
			object(externalGroup+"/v1", "SecretStore", "store", "spec: {provider: {"+provider+": {}}}"),
			object(externalGroup+"/v1", "ExternalSecret", "e", "spec: {secretStoreRef: {name: store}, target: {name: sec}}")}, "\n---\n")
	}
	input := func(change func(*scenario.Input)) []scenario.Input {
		i := scenario.Input{Kind: "Secret", Name: "sec", Reason: "issued elsewhere", Origin: evidence.Origin{File: "rebuild-check.yaml", Line: 4}}
		change(&i)
		return []scenario.Input{i}
	}
	stubbed := input(func(i *scenario.Input) { i.Stubbed = true })
	missing := "missing-secret Secret/app/sec key token" + at + "name"
	lacks := "missing-key Secret/app/sec key token" + at + "key"
	cases := []struct {
		name, set string
		inputs    []scenario.Input
		explain   bool
		findings  []string
		stubs     []string
		covered   int
	}{
		{"not declared", needs, nil, false, []string{missing}, nil, 0},
		{"declared, no stub", needs, input(func(*scenario.Input) {}), false, []string{missing}, nil, 0},
		{"declared, stub", needs, stubbed, false, nil, []string{"Secret/app/sec token"}, 0},
		{"declared in another namespace", needs, input(func(i *scenario.Input) { i.Stubbed, i.Namespace = true, "else" }), false, []string{missing, "input-unused Secret/else/sec @ "}, nil, 0},
		{"stub without the key", needs, input(func(i *scenario.Input) { i.Stubbed, i.Stub = true, map[string]string{"other": "x"} }), false, []string{lacks}, []string{"Secret/app/sec other"}, 0},
		{"declared and in the set", needs + "\n---\n" + secret, stubbed, false, []string{lacks, "input-unused Secret/app/sec @ "}, nil, 0},
		{"unused", object("v1", "ConfigMap", "cm", ""), stubbed, false, []string{"input-unused Secret/app/sec @ "}, nil, 0},
		{"fetched, not declared", vault("vault"), nil, false, []string{"input-undeclared Secret/app/sec < ExternalSecret.external-secrets.io/app/e @ spec.secretStoreRef.name"}, nil, 0},
		{"fetched, declared", vault("vault"), stubbed, false, nil, []string{"Secret/app/sec token"}, 0},
		{"made in the cluster", vault("fake"), nil, false, nil, nil, 0},
		{"explain: a Secret", needs, nil, true, []string{missing}, []string{"Secret/app/sec token explain"}, 1},
		{"explain: a key", needs + "\n---\n" + secret, nil, true, []string{lacks}, []string{"Secret/app/sec token explain"}, 1},
		{"explain: declared, no stub", needs, input(func(*scenario.Input) {}), true, []string{missing}, []string{"Secret/app/sec token explain"}, 1},
		{"explain: declared, stub", needs, stubbed, true, nil, []string{"Secret/app/sec token"}, 0},
		{"explain: another kind", pod("serviceAccountName: robot"), nil, true, []string{"missing-serviceaccount ServiceAccount/app/robot < Pod/app/p @ spec.serviceAccountName"}, nil, 0},
		{"explain: optional", pod("volumes: [{name: v, secret: {secretName: sec, optional: true}}]"), nil, true, nil, nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := setOf(t, c.set)
			opts := Options{Created: options.Created, Target: options.Target, Inputs: c.inputs}
			graph := Graph(set, opts)
			if got := lines(append(Findings(set, graph), Inputs(set, graph, opts)...)); !reflect.DeepEqual(got, c.findings) {
				t.Errorf("findings %q, want %q", got, c.findings)
			}
			stubs, covered := Stubs(graph, opts, c.explain)
			var got []string
			for _, s := range stubs {
				text := s.Object.String()
				for key := range s.Texts {
					text += " " + key
				}
				if s.Explain {
					text += " explain"
				}
				got = append(got, text)
			}
			if !reflect.DeepEqual(got, c.stubs) || len(covered) != c.covered {
				t.Errorf("stubs %q, covered %q, want %q", got, lines(covered), c.stubs)
			}
		})
	}
}
