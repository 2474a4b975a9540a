package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	sigsyaml "sigs.k8s.io/yaml"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// mount is where the tree lies in the child's memory. It is not "/", so that a path that climbs out
// of the repository finds nothing, as it would on a disk.
const mount = "/.tree"

const originAnnotation = "config.kubernetes.io/origin"

// renderKustomize builds a kustomization as kubectl kustomize does.
func renderKustomize(req request) (result answer) {
	files := newMemory(req.Files, req.Links)
	top, asked := topFile(req), true
	if req.Lines {
		data, already := withOrigins(req.Files[top])
		if asked = already; data != nil {
			noted := maps.Clone(req.Files)
			noted[top] = data
			files = newMemory(noted, req.Links)
		}
	}
	options := krusty.MakeDefaultOptions() // no plugins, files at or below each kustomization only
	options.Reorder = krusty.ReorderOptionUnspecified
	set, err := krusty.MakeKustomizer(options).Run(files, path.Join(mount, req.Root))
	if err != nil {
		return failed(req, err.Error())
	}
	if req.YAML {
		if result.YAML, err = set.AsYaml(); err != nil {
			return failed(req, err.Error())
		}
	}
	objects, err := resources(set)
	if err != nil {
		return failed(req, err.Error())
	}
	find := finder{req: req, docs: map[string][]decoded{}}
	for _, content := range objects {
		o := object{Origin: evidence.Origin{File: top, Line: 1}}
		if req.Lines {
			o.Origin, o.Lines = find.origin(content, top)
			if !asked {
				strip(content)
			}
		}
		for _, i := range flatten(content, nil, "") {
			if why := malformed(i.content); why != "" {
				return failed(req, i.where+" "+why)
			}
			o.JSON = canonical(i.content)
			result.Objects = append(result.Objects, o)
		}
	}
	return result
}

// resources converts kustomize's result as kubectl would read its output.
func resources(set resmap.ResMap) ([]map[string]any, error) {
	var all []map[string]any
	for _, r := range set.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		data, err := sigsyaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		content, ok := numbers(data).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", r.CurId())
		}
		all = append(all, content)
	}
	return all, nil
}

// topFile is the kustomization file of the folder to render.
func topFile(req request) string {
	for _, base := range kustomizationNames {
		if name := path.Join(req.Root, base); req.Files[name] != nil {
			return name
		}
	}
	return path.Join(req.Root, kustomizationNames[0])
}

// withOrigins asks kustomize to note each object's origin; already says that the file itself does,
// and no data that the file cannot be read.
func withOrigins(kustomization []byte) (data []byte, already bool) {
	asJSON, err := sigsyaml.YAMLToJSON(kustomization)
	content, ok := numbers(asJSON).(map[string]any)
	if err != nil || !ok {
		return nil, false
	}
	key, list := "buildMetadata", []any(nil)
	for k, v := range content {
		if strings.EqualFold(k, key) { // kustomize reads keys in any case
			key = k
			list, _ = v.([]any)
		}
	}
	if slices.Contains(list, any("originAnnotations")) {
		return nil, true
	}
	content[key] = append(list, "originAnnotations")
	return canonical(content), false
}

// strip removes the origin that only this package asked for.
func strip(content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	if delete(annotations, originAnnotation); len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// failed is kustomize's own error as a finding, at the file and line that its text names.
func failed(req request, text string) answer {
	text = strings.ReplaceAll(strings.ReplaceAll(text, mount+"/", ""), mount, ".")
	f := evidence.Finding{Code: "render-failed", Severity: evidence.Fail, Object: req.Root, Origin: evidence.Origin{File: topFile(req)}, Message: text}
	best := ""
	for name := range req.Files {
		local := strings.TrimPrefix(name, req.Root+"/")
		if strings.Contains(text, name) || strings.Contains(text, "'"+local+"'") {
			if len(name) > len(best) || len(name) == len(best) && name < best {
				best = name
			}
		}
	}
	if best != "" {
		f.Origin.File = best
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			f.Origin.Line, _ = strconv.Atoi(m[1])
		}
	}
	return answer{Findings: []evidence.Finding{f}}
}
