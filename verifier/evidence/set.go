package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Revision is what was asked for and what it is.
type Revision struct {
	// Name is the name that the user gave; Commit and Tree are full object ids.
	Name   string `json:"name"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Dirty lists up to ten uncommitted paths of the user's work tree, which played no part. Nil when
	// there is no work tree.
	Dirty []string `json:"dirty,omitempty"`
}

// ID names an object: group, kind, namespace and name. The version is no part of it.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is Kind/name or Kind/namespace/name; kinds outside the core and apps groups carry their
// group as Kind.group, so that equal kinds of two groups stay apart.
func (id ID) String() string {
	kind := id.Kind
	if id.Group != "" && id.Group != "apps" {
		kind += "." + id.Group
	}
	if id.Namespace == "" {
		return kind + "/" + id.Name
	}
	return kind + "/" + id.Namespace + "/" + id.Name
}

// Object is one rendered object and where it comes from.
type Object struct {
	ID
	APIVersion string `json:"apiVersion"`
	Origin     Origin `json:"origin"`
	// Content is the object as Git has it. Numbers are int64 or float64, as Kubernetes decodes them.
	Content map[string]any `json:"content"`
	// Lines maps a field path, as FieldPath writes it, to its line in Origin.File. It is made for
	// findings and may lack fields that no source line declares.
	Lines map[string]int `json:"lines,omitempty"`
}

// At is the origin of a field: the line of the deepest part of path that the source declares.
func (o *Object) At(path ...any) Origin {
	for n := len(path); n > 0; n-- {
		if line, ok := o.Lines[FieldPath(path[:n]...)]; ok {
			return Origin{File: o.Origin.File, Line: line}
		}
	}
	return o.Origin
}

// FieldPath writes a path of map keys (string) and list indexes (int) as in
// spec.containers[0].env[2].name; keys with dots or brackets are quoted: metadata.labels["a.b/c"].
func FieldPath(path ...any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			switch {
			case strings.ContainsAny(step, ".[]\"' "):
				fmt.Fprintf(&b, "[%s]", strconv.Quote(step))
			case b.Len() == 0:
				b.WriteString(step)
			default:
				b.WriteString("." + step)
			}
		default:
			panic(fmt.Sprintf("evidence: a field path step is a %T", step))
		}
	}
	return b.String()
}

// Skipped is a file at the path that was not rendered, and why; or a hook of a chart, and what was done with it.
type Skipped struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Set is the rendered objects, sorted by ID, and how they were made.
type Set struct {
	// Renderer is "plain", "kustomize" or "helm"; Version is that of its library, empty for plain.
	Renderer string `json:"renderer"`
	Version  string `json:"version,omitempty"`
	// Path is the rendered folder, from the repository's root; "." is the root.
	Path    string    `json:"path"`
	Objects []Object  `json:"objects"`
	Skipped []Skipped `json:"skipped,omitempty"`
	// Digest is the SHA-256 of the rendered objects as JSON with sorted keys, as the renderer gave them
	// and without the values of Secrets.
	Digest string `json:"digest"`
}

// SortObjects orders objects by group, kind, namespace and name.
func SortObjects(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int { return a.ID.Compare(b.ID) })
}

// Compare orders by group, kind, namespace and name.
func (id ID) Compare(other ID) int {
	for _, pair := range [][2]string{{id.Group, other.Group}, {id.Kind, other.Kind}, {id.Namespace, other.Namespace}, {id.Name, other.Name}} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}
