package evidence_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated tables of docs/ anew")

const (
	evidencePage = "../../docs/evidence.md"
	trustPage    = "../../docs/trust.md"
)

// TestFieldTables: docs/evidence.md has every field of every file of an evidence folder, and of what the
// command closure writes, as the Go sources of this package say it.
func TestFieldTables(t *testing.T) {
	files := parse(t, ".")
	pkg, err := doc.NewFromFiles(files.set, slices.Collect(maps.Values(files.byPath)), "evidence", doc.AllDecls)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*doc.Type{}
	for _, typ := range pkg.Types {
		types[typ.Name] = typ
	}
	var text strings.Builder
	for _, name := range reachable(types, "Run", "Live", "Inventory", "Event", "Closure") {
		fmt.Fprintf(&text, "### %s\n\n%s\n\n", name, oneLine(types[name].Doc))
		fmt.Fprint(&text, fields(types, types[name]))
	}
	section(t, evidencePage, "fields", text.String())
}

// TestRuleTable: docs/trust.md lists every named rule of package drift, with its reason.
func TestRuleTable(t *testing.T) {
	text := "| rule | reason |\n|---|---|\n"
	rules := 0
	for _, path := range slices.Sorted(maps.Keys(parse(t, "../drift").byPath)) {
		ast.Inspect(parse(t, "../drift").byPath[path], func(n ast.Node) bool {
			if name, reason := keyed(n, "Name"), keyed(n, "Reason"); name != "" && reason != "" {
				rules++
				text += fmt.Sprintf("| `%s` | %s |\n", name, reason)
			}
			return true
		})
	}
	if rules == 0 {
		t.Fatal("package drift names no rule")
	}
	section(t, trustPage, "rules", text+"\n")
}

// literal is the text of a string literal, or "".
func literal(n ast.Node) string {
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// keyed is the string literal that a composite literal has under a key, or "".
func keyed(n ast.Node, key string) string {
	composite, ok := n.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, element := range composite.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok && name.Name == key {
				return literal(pair.Value)
			}
		}
	}
	return ""
}

type sources struct {
	set    *token.FileSet
	byPath map[string]*ast.File
}

// parse reads the Go files of a folder and below it, less the tests.
func parse(t *testing.T, root string) sources {
	t.Helper()
	s := sources{token.NewFileSet(), map[string]*ast.File{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		s.byPath[path], err = parser.ParseFile(s.set, path, nil, parser.ParseComments)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// structOf is the struct of a type, nil for other types.
func structOf(typ *doc.Type) *ast.StructType {
	for _, spec := range typ.Decl.Specs {
		if spec := spec.(*ast.TypeSpec); spec.Name.Name == typ.Name {
			s, _ := spec.Type.(*ast.StructType)
			return s
		}
	}
	return nil
}

// reachable are the structs that the facts are made of, each once, in the order in which they are met.
func reachable(types map[string]*doc.Type, queue ...string) []string {
	var found []string
	for ; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if types[name] == nil || structOf(types[name]) == nil || slices.Contains(found, name) {
			continue
		}
		found = append(found, name)
		for _, field := range structOf(types[name]).Fields.List {
			if jsonName(field) == "-" {
				continue
			}
			ast.Inspect(field.Type, func(n ast.Node) bool {
				if ident, ok := n.(*ast.Ident); ok {
					queue = append(queue, ident.Name)
				}
				return true
			})
		}
	}
	return found
}

// jsonName is the name in the field's JSON tag; embedded structs have none.
func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
	return name
}

// fields is the table of one struct. A comment that speaks of several fields stands at the first.
func fields(types map[string]*doc.Type, typ *doc.Type) string {
	text, above, aboveName := "| field | type | meaning |\n|---|---|---|\n", "", ""
	for _, field := range structOf(typ).Fields.List {
		name, meaning := jsonName(field), oneLine(field.Doc.Text()+" "+field.Comment.Text())
		switch {
		case name == "-":
			continue
		case len(field.Names) == 0:
			text += fmt.Sprintf("| | | the fields of %s |\n", typeText(types, field.Type))
			continue
		case meaning != "":
			above, aboveName = meaning, name
		case regexp.MustCompile(`\b` + field.Names[0].Name + `\b`).MatchString(above):
			meaning = "see `" + aboveName + "`"
		}
		kind := typeText(types, field.Type)
		if strings.Contains(field.Tag.Value, ",omit") {
			kind += ", optional"
		}
		text += fmt.Sprintf("| `%s` | %s | %s |\n", name, kind, meaning)
	}
	return text + "\n"
}

// typeText is a Go type in the words of JSON.
func typeText(types map[string]*doc.Type, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeText(types, e.X)
	case *ast.ArrayType:
		return "list of " + typeText(types, e.Elt)
	case *ast.MapType:
		return "map to " + typeText(types, e.Value)
	case *ast.Ident:
		plain := map[string]string{"string": "string", "bool": "boolean", "int": "integer", "int64": "integer", "float64": "number", "any": "any", "Clock": "time"}
		typ := types[e.Name]
		switch {
		case plain[e.Name] != "":
			return plain[e.Name]
		case structOf(typ) != nil:
			return fmt.Sprintf("[%s](#%s)", e.Name, strings.ToLower(e.Name))
		}
		var values []string
		for _, group := range typ.Consts {
			for _, spec := range group.Decl.Specs {
				values = append(values, "`"+literal(spec.(*ast.ValueSpec).Values[0])+"`")
			}
		}
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%T", e)
}

// oneLine makes a comment fit for a cell of a table.
func oneLine(comment string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", "\\|")
}

// section compares the part of a page between its two markers with want, or writes it there.
func section(t *testing.T, page, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": go test ./verifier/evidence -update -->\n\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, ended := strings.Cut(rest, end)
	switch {
	case !ok || !ended:
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	case have == want:
	case *update:
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the sources say about %s: go test ./verifier/evidence -update", page, name)
	}
}
