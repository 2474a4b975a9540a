package render

import (
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// mount is where the tree lies in the child's memory. It is not "/", so that a path that climbs out
// of the repository finds nothing, as it would on a disk.
const mount = "/.tree"

// originMark is the field that notes an object's file, as long as it is built.
const originMark = "rebuild-check-origin"

// renderKustomize builds a kustomization as kubectl kustomize does.
func renderKustomize(req request) (result answer) {
	top := topFile(req)
	var set resmap.ResMap
	var err error
	var probes *prober
	var find *finder
	if req.Lines {
		set, probes, find = marked(req)
	}
	if set == nil {
		set, err = kustomize(req)
	}
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
	for _, content := range objects {
		o := object{Origin: evidence.Origin{File: top, Line: 1}}
		if find != nil {
			o.Origin, o.Lines = find.origin(content, top)
			probes.take(content)
		}
		for _, i := range flatten(content, nil, "") {
			if why := malformed(i.content); why != "" {
				return failed(req, i.where+" "+why)
			}
			o.JSON = canonical(i.content)
			result.Objects = append(result.Objects, o)
		}
	}
	if probes != nil {
		result.Unmatched = probes.unmatched(result.Objects)
	}
	return result
}

// kustomize is the build itself, with kubectl's options.
func kustomize(req request) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions() // no plugins, files at or below each kustomization only
	options.Reorder = krusty.ReorderOptionUnspecified
	return krusty.MakeKustomizer(options).Run(newMemory(req.Files, req.Links), path.Join(mount, req.Root))
}

// marked builds with the file of every object noted in it, and with probes set. What fails with
// probes is built without, and nil is what fails without.
func marked(req request) (set resmap.ResMap, probes *prober, find *finder) {
	probes = newProber(req)
	find = &finder{req: req, all: probes.all, docs: map[string][]decoded{}}
	for _, files := range []map[string][]byte{probes.noted(), maps.Clone(req.Files)} {
		find.mark(files)
		set, err := kustomize(request{Root: req.Root, Files: files, Links: req.Links})
		if err == nil {
			return set, probes, find
		}
	}
	return nil, nil, nil
}

// resources converts kustomize's result as kubectl would read its output.
func resources(set resmap.ResMap) ([]map[string]any, error) {
	var all []map[string]any
	for _, r := range set.Resources() {
		data, err := r.MarshalJSON() // kustomize writes its YAML from this
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

// topFile is the file of the folder to render that says what it is.
func topFile(req request) string {
	if req.Renderer == Helm {
		return path.Join(req.Root, chartFile)
	}
	for _, base := range kustomizationNames {
		if name := path.Join(req.Root, base); req.Files[name] != nil {
			return name
		}
	}
	return path.Join(req.Root, kustomizationNames[0])
}

// strip removes annotations that are none, and tells whether there were such.
func strip(content map[string]any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok && len(annotations) == 0 {
		delete(metadata, "annotations")
		return true
	}
	return false
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
	if req.Renderer == Kustomize {
		blame(req, text, &f)
	}
	return answer{Findings: []evidence.Finding{f}}
}
