package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// renderPlain reads every file as manifests.
func renderPlain(req request) answer {
	var result answer
	for _, file := range slices.Sorted(maps.Keys(req.Files)) {
		p := plainFile{name: file, lines: req.Lines}
		p.read(req.Files[file])
		if len(p.objects) == 0 && len(p.findings) == 0 {
			result.Skipped = append(result.Skipped, evidence.Skipped{File: file, Reason: p.reason})
		}
		result.Objects = append(result.Objects, p.objects...)
		result.Findings = append(result.Findings, p.findings...)
	}
	return result
}

type plainFile struct {
	name     string
	lines    bool
	reason   string // why the file gives no object
	objects  []object
	findings []evidence.Finding
}

func (p *plainFile) fail(line int, message, do string) {
	p.findings = append(p.findings, evidence.Finding{Code: "render-failed", Severity: evidence.Fail, Object: p.name,
		Origin: evidence.Origin{File: p.name, Line: line}, Message: message, Do: do})
}

func (p *plainFile) read(data []byte) {
	if !utf8.Valid(data) {
		p.fail(0, "the file is not UTF-8 text", "save it as UTF-8")
		return
	}
	docs, err := split(data)
	if err != nil {
		var bad *splitError
		errors.As(err, &bad)
		p.fail(bad.line, bad.Error(), "")
		return
	}
	p.reason = "it holds no documents"
	foreign := 0 // line of the first document that is no manifest
	for _, doc := range docs {
		d, err := decode(doc)
		if err != nil {
			p.fail(errorLine(err, doc.line), "the document cannot be read: "+err.Error(), "")
			continue
		}
		if bytes.Equal(d.json, []byte("null")) {
			continue
		}
		content, _ := numbers(d.json).(map[string]any)
		if content["apiVersion"] == nil && content["kind"] == nil {
			p.reason = "none of its documents has apiVersion and kind"
			if foreign == 0 {
				foreign = d.at(d.node)
			}
			continue
		}
		if api, _ := content["apiVersion"].(string); content["kind"] == "Kustomization" && (api == "" || kustomizeAPI.MatchString(api)) {
			p.reason = "it is a kustomization; render its folder as the path to use it"
			continue
		}
		p.findings = append(p.findings, d.repeated(p.name)...)
		for _, i := range flatten(content, d.node, "") {
			p.add(d, i)
		}
	}
	if foreign != 0 && len(p.objects) > 0 {
		p.fail(foreign, "the document has neither apiVersion nor kind, beside others that do", "complete it, or move it to a file of its own")
	}
}

func (p *plainFile) add(d decoded, i item) {
	line := d.at(i.node)
	if why := malformed(i.content); why != "" {
		if i.where != "" {
			why = i.where + ": " + why
		}
		p.fail(line, why, "every object needs apiVersion, kind and metadata.name")
		return
	}
	o := object{JSON: canonical(i.content), Origin: evidence.Origin{File: p.name, Line: line}}
	if p.lines {
		o.Lines = d.fields(i.node)
	}
	p.objects = append(p.objects, o)
}

var (
	kustomizeAPI = regexp.MustCompile(`^kustomize\.config\.k8s\.io/`)
	apiVersion   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z]([a-z0-9-]*[a-z0-9])?$`)
	kindName     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// malformed says what keeps a document from being an object, or "".
func malformed(content map[string]any) string {
	if content == nil {
		return "it is not an object"
	}
	api, isText := content["apiVersion"].(string)
	kind, isKind := content["kind"].(string)
	switch {
	case content["apiVersion"] == nil && content["kind"] == nil:
		return "it has neither apiVersion nor kind"
	case content["apiVersion"] == nil:
		return fmt.Sprintf("kind %v has no apiVersion", content["kind"])
	case content["kind"] == nil:
		return fmt.Sprintf("apiVersion %v has no kind", content["apiVersion"])
	case !isText || !apiVersion.MatchString(api):
		return fmt.Sprintf("%v is no apiVersion: want GROUP/VERSION, or v1", strconv.Quote(fmt.Sprint(content["apiVersion"])))
	case !isKind || !kindName.MatchString(kind):
		return fmt.Sprintf("%v is no kind", strconv.Quote(fmt.Sprint(content["kind"])))
	}
	return ""
}

// errorLine is the line that an error's text names, or otherwise line.
func errorLine(err error, line int) int {
	for _, m := range yamlLine.FindAllStringSubmatch(err.Error(), -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	return line
}

// numbers decodes JSON with its numbers as they are written.
func numbers(data []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// canonical writes content with its keys sorted.
func canonical(content map[string]any) []byte {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	return data
}
