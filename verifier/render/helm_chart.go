package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// packed matches a packed chart among the files of a chart.
var packed = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^/._][^/]*\.tgz$`)

func archived(file string) bool { return strings.HasSuffix(file, ".tgz") }

// path is that of a chart's file in the repository.
func (h *helmRender) path(name string) string { return path.Join(h.req.Root, name) }

// source is the file of the repository that data was loaded from.
func (h *helmRender) source(data []byte) string {
	if len(data) > 0 {
		if file := h.sources[&data[0]]; file != "" {
			return file
		}
	}
	return h.path(chartFile)
}

// chartFile is the file of the repository that holds a file of a chart or of one below it.
func (h *helmRender) chartFile(c *chart.Chart, name string) string {
	for _, f := range c.Raw {
		if f.Name == name {
			return h.source(f.Data)
		}
	}
	return h.path(name)
}

// load loads the chart from the files of the request.
func (h *helmRender) load() (*chart.Chart, error) {
	var files []*archive.BufferedFile
	left := int64(MaxBytes)
	for _, name := range slices.Sorted(maps.Keys(h.req.Files)) {
		one := &archive.BufferedFile{Name: within(h.req.Root, name), Data: bytes.TrimPrefix(h.req.Files[name], bom)}
		unpacked, err := h.unpack(one, name, &left, 0)
		if err != nil {
			h.archiveError(name, err)
			return nil, errTold
		}
		files = append(files, unpacked...)
	}
	c, err := loader.LoadFiles(files)
	if err == nil {
		sortCharts(c)
	}
	return c, err
}

// sortCharts puts the charts below a chart in an order; Helm's loader leaves that to chance.
func sortCharts(c *chart.Chart) {
	below := c.Dependencies()
	slices.SortFunc(below, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	for _, sub := range below {
		sortCharts(sub)
	}
}

// errTold ends a render whose finding is already recorded.
var errTold = errors.New("the chart cannot be rendered")

// unpack replaces a packed chart by its files, in a folder of the same name, so that all of them
// together are bounded and are known to come from it.
func (h *helmRender) unpack(f *archive.BufferedFile, source string, left *int64, depth int) ([]*archive.BufferedFile, error) {
	if len(f.Data) > 0 {
		h.sources[&f.Data[0]] = source
	}
	if !packed.MatchString(f.Name) {
		return []*archive.BufferedFile{f}, nil
	}
	if depth > 8 {
		return nil, errors.New("charts are packed in charts deeper than the limit of 8")
	}
	archive.MaxDecompressedChartSize = *left // of this process, which renders once
	inner, err := archive.LoadArchiveFiles(bytes.NewReader(f.Data))
	if err != nil {
		return nil, err
	}
	var all []*archive.BufferedFile
	for _, one := range inner {
		*left -= int64(len(one.Data))
		one.Name = f.Name + "~/" + one.Name
		unpacked, err := h.unpack(one, source, left, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, unpacked...)
	}
	return all, nil
}

func (h *helmRender) archiveError(file string, err error) {
	if strings.Contains(err.Error(), "larger than the maximum size") {
		h.refuse("render-refused", file, 0, fmt.Sprintf("the packed charts unpack to more than the limit of %d bytes", MaxBytes), "vendor smaller charts")
		return
	}
	h.refuse("render-failed", file, 0, "the packed chart cannot be read: "+err.Error(), "pack it again, with helm dependency build")
}

// dependencies compares what Chart.yaml and Chart.lock ask for with what lies in charts/. It looks
// before Helm works on the chart, and the function that it returns tells the findings after that, when
// it is known what is switched off.
func (h *helmRender) dependencies(c *chart.Chart) func() {
	asked := slices.Clone(c.Metadata.Dependencies)
	names := make([]chart.Dependency, len(asked)) // Helm renames those with an alias
	for i, d := range asked {
		names[i] = *d
	}
	versions := map[string][]string{}
	for _, sub := range c.Dependencies() {
		versions[sub.Name()] = append(versions[sub.Name()], sub.Metadata.Version)
	}
	file, lines := h.declared(c)
	return func() {
		for i, d := range names {
			off := ""
			if !slices.Contains(c.Metadata.Dependencies, asked[i]) {
				off = "; it is switched off by its condition or tags, and Helm wants it there all the same"
			}
			h.dependency(file, lines(i), d, versions[d.Name], c.Lock, off)
		}
		h.nested(c)
	}
}

func (h *helmRender) dependency(file string, line int, d chart.Dependency, have []string, lock *chart.Lock, off string) {
	asks := strings.TrimSpace(d.Name + " " + d.Version)
	satisfies := func(constraint string) bool {
		return slices.ContainsFunc(have, func(v string) bool { return chartutil.IsCompatibleRange(constraint, v) })
	}
	const build = "run helm dependency build, and commit charts/"
	if len(have) == 0 {
		h.refuse("missing-chart-dependency", file, line, fmt.Sprintf("the chart depends on %s, which is not in charts/ and would be fetched%s", asks, off), build)
		h.answer.Findings[len(h.answer.Findings)-1].Object = d.Name
		return
	}
	wrong := func(format string, args ...any) {
		h.refuse("chart-dependency-version", file, line, fmt.Sprintf(format, args...)+off, build)
		h.answer.Findings[len(h.answer.Findings)-1].Object = d.Name
	}
	if d.Version != "" && !satisfies(d.Version) {
		wrong("the chart depends on %s, and charts/ holds %s", asks, strings.Join(have, ", "))
		return
	}
	if lock == nil {
		return
	}
	var locked []string
	for _, l := range lock.Dependencies {
		if l == nil || l.Name != d.Name {
			continue
		}
		if satisfies(l.Version) && (d.Version == "" || l.Version == d.Version || chartutil.IsCompatibleRange(d.Version, l.Version)) {
			return
		}
		locked = append(locked, l.Version)
	}
	if len(locked) == 0 {
		wrong("the chart depends on %s, which the lock file does not have", asks)
		return
	}
	wrong("the chart depends on %s, charts/ holds %s, and the lock file says %s", asks, strings.Join(have, ", "), strings.Join(locked, ", "))
}

// nested warns of dependencies of the charts below, which Helm itself does not miss.
func (h *helmRender) nested(c *chart.Chart) {
	for _, sub := range c.Dependencies() {
		file, lines := h.declared(sub)
		for i, d := range sub.Metadata.Dependencies { // those that are switched on
			if !slices.ContainsFunc(sub.Dependencies(), func(have *chart.Chart) bool { return have.Name() == d.Name }) {
				h.reportAs(evidence.Warn, "missing-chart-dependency", file, lines(i), fmt.Sprintf("chart %s depends on %s, which is not in its charts/; Helm leaves it out", sub.ChartFullPath(), d.Name), "")
			}
		}
		h.nested(sub)
	}
}

// declared is the file that declares a chart's dependencies, and the line of each.
func (h *helmRender) declared(c *chart.Chart) (file string, line func(i int) int) {
	for _, name := range []string{"requirements.yaml", chartFile} {
		for _, f := range c.Raw {
			var doc yaml.Node
			if f.Name != name || yaml.Unmarshal(f.Data, &doc) != nil || len(doc.Content) == 0 {
				continue
			}
			if list := child(doc.Content[0], "dependencies"); list != nil {
				return h.source(f.Data), func(i int) int {
					if i < len(list.Content) {
						return list.Content[i].Line
					}
					return list.Line
				}
			}
		}
	}
	return h.chartFile(c, chartFile), func(int) int { return 0 }
}
