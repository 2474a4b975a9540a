package evidence_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeText = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	codeRow  = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")
	// givers are the functions that take a finding's code as an argument.
	givers = map[string]bool{"report": true, "reportAs": true, "refuse": true}
)

// TestEveryCodeIsDocumented: a code that the program can give has a row in docs/evidence.md, and
// every row is of one that it can give.
func TestEveryCodeIsDocumented(t *testing.T) {
	page, err := os.ReadFile(evidencePage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Finding codes")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]bool{}
	for _, row := range codeRow.FindAllStringSubmatch(table, -1) {
		if documented[row[1]] {
			t.Errorf("%s has two rows", row[1])
		}
		documented[row[1]] = true
	}
	given, literals := map[string]token.Position{}, map[string]bool{}
	sources := parse(t, "..")
	for _, file := range sources.byPath {
		ast.Inspect(file, func(n ast.Node) bool {
			if text := literal(n); text != "" {
				literals[text] = true
				if strings.HasPrefix(text, "missing-") {
					given[text] = sources.set.Position(n.Pos())
				}
			}
			for _, e := range codes(n) {
				if text := literal(e); codeText.MatchString(text) {
					given[text] = sources.set.Position(e.Pos())
				}
			}
			return true
		})
	}
	for _, code := range slices.Sorted(maps.Keys(given)) {
		if !documented[code] && code != "missing-" {
			t.Errorf("%s: %s has no row in docs/evidence.md", given[code], code)
		}
	}
	for code := range documented {
		if !literals[code] {
			t.Errorf("docs/evidence.md has a row for %s, which the program cannot give", code)
		}
	}
	if len(given) < 20 {
		t.Errorf("only %d codes were found in the sources", len(given))
	}
}

// codes are the expressions of a node that stand where a finding's code is given.
func codes(n ast.Node) []ast.Expr {
	isCode := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return strings.EqualFold(e.Name, "code")
		case *ast.SelectorExpr:
			return strings.EqualFold(e.Sel.Name, "code")
		}
		return false
	}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if isCode(n.Key) {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		var list []ast.Expr
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) && isCode(left) {
				list = append(list, n.Rhs[i])
			}
		}
		return list
	case *ast.CallExpr:
		name, _ := n.Fun.(*ast.Ident)
		if selector, ok := n.Fun.(*ast.SelectorExpr); ok {
			name = selector.Sel
		}
		if name != nil && givers[name.Name] {
			return n.Args[:min(2, len(n.Args))]
		}
	}
	return nil
}
