package render

import (
	"context"
	"fmt"
	"io"
	"log"
	"regexp"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// helmRender is one render of a chart, in the child.
type helmRender struct {
	req       request
	sources   map[*byte]string // files of the repository by the first byte of what was loaded
	templates map[string]*template
	answer    answer
}

// renderHelm renders a chart as an install of Helm would, without a cluster and without a network.
func renderHelm(req request) answer {
	log.SetOutput(io.Discard) // Helm's own warnings
	time.Local = time.UTC     // dates in templates do not depend on the machine
	h := &helmRender{req: req, sources: map[*byte]string{}, templates: map[string]*template{}}
	c, err := h.load()
	if err == nil {
		err = h.install(c)
	}
	if err != nil && err != errTold {
		h.failed(err)
	}
	if h.fails() {
		h.answer.Objects, h.answer.YAML = nil, nil
	}
	evidence.SortFindings(h.answer.Findings)
	return h.answer
}

func (h *helmRender) install(c *chart.Chart) error {
	if c.Metadata.Type == "library" {
		h.refuse("render-failed", h.chartFile(c, chartFile), 0, "a library chart is only for other charts and has no objects", "render the chart that uses it")
		return errTold
	}
	values, err := h.values(c)
	if err != nil {
		return err
	}
	vendored := h.dependencies(c)
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return err
	}
	vendored()
	caps, err := h.capabilities(c)
	if err != nil {
		return err
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		file := h.chartFile(c, chartFile)
		h.refuse("render-failed", file, lineOf(h.req.Files[file], "kubeVersion"),
			fmt.Sprintf("the chart asks for Kubernetes %s, and the cluster is %s", want, caps.KubeVersion.Version), "")
	}
	options := common.ReleaseOptions{Name: h.req.Release.Name, Namespace: h.req.Release.Namespace, Revision: 1, IsInstall: true}
	if options.Name == "" {
		options.Name = c.Name()
	}
	if err := chartutil.ValidateReleaseName(options.Name); err != nil {
		return fmt.Errorf("release name %q: %w", options.Name, err)
	}
	top, err := util.ToRenderValuesWithSchemaValidation(c, values, options, caps, true)
	if err != nil {
		return err
	}
	coalesced, err := top.Table("Values")
	if err != nil {
		return err
	}
	h.validate(c, coalesced)
	h.index(c)
	if h.fails() {
		return errTold
	}
	rendered, err := engine.Engine{}.RenderWithContext(context.Background(), c, top)
	if err != nil {
		return err
	}
	for name := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(rendered, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	h.collect(c, rendered, hooks, manifests)
	return nil
}

func (h *helmRender) fails() bool {
	for _, f := range h.answer.Findings {
		if f.Severity == evidence.Fail {
			return true
		}
	}
	return false
}

// values merges the files and settings of the caller; the chart's own come under them later.
func (h *helmRender) values(c *chart.Chart) (map[string]any, error) {
	h.repeatedKeys(c)
	values := map[string]any{}
	for _, f := range h.req.Release.Values {
		h.repeated(f.Name, f.Data)
		one, err := loader.LoadValues(strings.NewReader(string(f.Data)))
		if err != nil {
			h.refuse("render-failed", f.Name, errorLine(err, 0), "the values cannot be read: "+err.Error(), "")
			return nil, errTold
		}
		values = loader.MergeMaps(values, one)
	}
	for _, text := range h.req.Release.Set {
		if err := strvals.ParseInto(text, values); err != nil {
			return nil, fmt.Errorf("setting %q: %w", text, err)
		}
	}
	return values, nil
}

// repeatedKeys warns of keys that stand twice in the values of a chart and of those below it.
func (h *helmRender) repeatedKeys(c *chart.Chart) {
	for _, f := range c.Raw {
		if file := h.source(f.Data); f.Name == "values.yaml" && !archived(file) {
			h.repeated(file, f.Data)
		}
	}
	for _, sub := range c.Dependencies() {
		h.repeatedKeys(sub)
	}
}

func (h *helmRender) repeated(file string, data []byte) {
	docs, _ := split(data)
	for _, doc := range docs {
		d, err := decode(doc)
		if err != nil {
			continue // Helm tells it
		}
		for _, f := range d.repeated(file) {
			f.Severity, f.Object = evidence.Warn, file
			h.answer.Findings = append(h.answer.Findings, f)
		}
	}
}

func (h *helmRender) capabilities(c *chart.Chart) (*common.Capabilities, error) {
	kube, err := common.ParseKubeVersion(h.req.Release.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the Kubernetes version %q: %w", h.req.Release.KubeVersion, err)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion, caps.APIVersions = *kube, apiVersions(c, h.req.Release.APIVersions)
	if linked := version(helmModule); linked != "unknown" {
		caps.HelmVersion.Version = linked
	}
	return caps, nil
}

func (h *helmRender) refuse(code, file string, line int, message, do string) {
	h.reportAs(evidence.Fail, code, file, line, message, do)
}

func (h *helmRender) reportAs(severity evidence.Severity, code, file string, line int, message, do string) {
	if archived(file) {
		line = 0
	}
	h.answer.Findings = append(h.answer.Findings, evidence.Finding{Code: code, Severity: severity, Object: file,
		Origin: evidence.Origin{File: file, Line: line}, Message: message, Do: do})
}

// place matches a template and a line in Helm's errors.
var place = regexp.MustCompile(`([^\s()"'<>:]+):(\d+)`)

// failed records Helm's own error, at the template and line that its text names.
func (h *helmRender) failed(err error) {
	text := err.Error()
	file, line := h.path(chartFile), 0
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		if t := h.templates[m[1]]; t != nil {
			file = t.file
			line, _ = strconv.Atoi(m[2])
			break
		}
	}
	for name, t := range h.templates { // YAML errors name the template alone
		if line == 0 && strings.Contains(text, " "+name+":") {
			file = t.file
		}
	}
	code, do := "render-failed", ""
	if strings.Contains(text, "larger than the maximum size") {
		code, do = "render-refused", "vendor smaller charts"
	}
	if len(text) > 2*maxText { // errors of templates in templates repeat their way
		text = strings.ToValidUTF8(text[:maxText]+" … "+text[len(text)-maxText:], "")
	}
	h.refuse(code, file, line, text, do)
}

// maxText is how many bytes of the start and of the end of Helm's error are kept.
const maxText = 400
