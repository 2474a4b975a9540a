package render

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// schemaURL is what Helm calls the schema of a chart's values.
const schemaURL = "file:///values.schema.json"

// validate checks values against the schemas of a chart and of those below it, by the library and the
// rules of Helm. Helm's own validation would follow references to files and servers.
func (h *helmRender) validate(c *chart.Chart, values map[string]any) {
	if c.Schema != nil {
		if err := validateOne(c.Schema, values); err != nil {
			h.schemaFinding(c, err)
		}
	}
	for _, sub := range c.Dependencies() {
		switch below := values[sub.Name()].(type) {
		case nil:
		case map[string]any:
			h.validate(sub, below)
		default:
			h.refuse("render-failed", h.chartFile(sub, "values.yaml"), 0, fmt.Sprintf("the values for chart %s are a %T and not a mapping", sub.Name(), below), "")
		}
	}
}

func validateOne(schema []byte, values map[string]any) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refusal{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return err
	}
	return compiled.Validate(values)
}

var errOutside = errors.New("it is outside the document")

// refusal loads nothing but what Helm takes for true without loading it: a urn.
type refusal struct{}

func (refusal) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errOutside
}

func (h *helmRender) schemaFinding(c *chart.Chart, err error) {
	file := h.source(c.Schema)
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		h.refuse("render-refused", file, lineOf(c.Schema, path.Base(load.URL)),
			fmt.Sprintf("the schema of the values refers to %s, which is outside the document and would be read or fetched", load.URL), "copy it into the schema, under $defs")
		return
	}
	text := strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaURL+"#'\n")
	h.refuse("render-failed", file, 0, "the values do not meet the schema: "+text, "mend the values, or the schema")
}

// lineOf is the first line that contains a text, 0 when none does.
func lineOf(data []byte, text string) int {
	before, _, found := bytes.Cut(data, []byte(text))
	if !found {
		return 0
	}
	return bytes.Count(before, []byte("\n")) + 1
}
