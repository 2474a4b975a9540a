package source

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rebuild-check.dev/rebuild-check/verifier/evidence"
)

// rule is one line of a .gitattributes file; see gitattributes(5).
type rule struct {
	at evidence.Origin
	// match tells whether the rule is for a path from the folder of its file; base says that it looks
	// at the last name only.
	match func(name string) bool
	base  bool
	set   []assignment
}

// assignment gives an attribute a state: "+" set, "-" unset, "" unspecified, or "=" and a value.
type assignment struct{ name, state string }

// given is the state of an attribute and the line that it comes from.
type given struct {
	state string
	at    evidence.Origin
}

// change is an attribute, as text, with the line that gives it.
type change struct {
	attribute string
	at        evidence.Origin
}

const (
	maxRules    = 2000 // lines of one .gitattributes file
	maxRuleLine = 2048 // bytes of a line, as in Git
	maxNamed    = 3    // files that one finding names
)

// attributes notes which attribute would make Git write other bytes than data to the disk, for the
// file at the end of a path.
func (t *Tree) attributes(at []found, data []byte) error {
	file := at[len(at)-1]
	state := map[string]given{}
	for i, dir := range at[:len(at)-1] {
		if dir.in != file.in {
			continue // of the repository around a submodule
		}
		rules, err := t.rulesOf(dir)
		if err != nil {
			return err
		}
		if len(rules) == 0 {
			continue
		}
		var names []string
		for _, f := range at[i+1:] {
			names = append(names, f.name)
		}
		whole := strings.Join(names, "/")
		for _, r := range rules {
			name := whole
			if r.base {
				name = file.name
			}
			if !r.match(name) {
				continue
			}
			for _, a := range r.set {
				state[a.name] = given{a.state, r.at}
			}
		}
	}
	if len(state) == 0 {
		return nil
	}
	for name, g := range changing(state, data) {
		t.note(change{name + strings.TrimPrefix(g.state, "+"), g.at}, file.path)
	}
	return nil
}

// note adds a file to those that an attribute changes.
func (t *Tree) note(c change, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed[c] == nil {
		t.changed[c] = map[string]bool{}
	}
	t.changed[c][file] = true
}

// Findings tells which attributes would have made a checkout by Git write other bytes than those
// that were read so far, one finding for each attribute and line, sorted.
func (t *Tree) Findings() []evidence.Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []evidence.Finding
	for c, set := range t.changed {
		files := slices.Sorted(maps.Keys(set))
		named := strings.Join(files[:min(maxNamed, len(files))], ", ")
		if more := len(files) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, evidence.Finding{
			Code: "gitattributes-ignored", Severity: evidence.Warn, Object: files[0], Field: c.attribute, Origin: c.at,
			Message: fmt.Sprintf("git checkout would write other bytes than Git has for %s, by %s; the render has Git's", named, c.attribute),
			Do:      "commit the bytes that are meant, and take the attribute from these files",
		})
	}
	slices.SortFunc(all, func(a, b evidence.Finding) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(a.Origin.File, b.Origin.File), cmp.Compare(a.Origin.Line, b.Origin.Line), strings.Compare(a.Field, b.Field))
	})
	return all
}

var (
	keyword = regexp.MustCompile(`\$Id(:[^$\n]?[^ $\n]* ?)?\$`)
	// ascii are encodings in which ASCII is ASCII.
	ascii = regexp.MustCompile(`(?i)^(US-)?ASCII$|^ISO-?8859|^LATIN|^(WINDOWS-|CP)125|^KOI8|^EUC|^GB|^BIG5`)
	utf8  = regexp.MustCompile(`(?i)^UTF-?8$`)
)

// changing are the attributes that change data when Git writes it to a Linux disk with its default
// settings, as in git's convert.c, and filters that may. LFS is not among them: it replaces pointers,
// which are a finding of their own.
func changing(state map[string]given, data []byte) map[string]given {
	found := map[string]given{}
	text := state["text"].state
	if !slices.Contains([]string{"+", "-", "=auto", "=input"}, text) {
		text = state["crlf"].state // the older name
	}
	if eol := state["eol"]; eol.state == "=crlf" && text != "-" && becomesCRLF(data, text == "=auto") {
		found["eol"] = eol
	}
	if ident := state["ident"]; ident.state == "+" && keyword.Match(data) {
		found["ident"] = ident
	}
	if filter := state["filter"]; strings.HasPrefix(filter.state, "=") && filter.state != "=lfs" {
		found["filter"] = filter
	}
	if e := state["working-tree-encoding"]; len(e.state) > 1 && e.state[0] == '=' && !utf8.MatchString(e.state[1:]) {
		foreign := bytes.ContainsFunc(data, func(r rune) bool { return r > 0x7e })
		if len(data) > 0 && (foreign || !ascii.MatchString(e.state[1:])) {
			found["working-tree-encoding"] = e
		}
	}
	return found
}

// becomesCRLF tells whether Git puts a CR before a LF of data. With text=auto it leaves alone what
// has a CR already and what looks binary.
func becomesCRLF(data []byte, auto bool) bool {
	lf, crlf, cr := bytes.Count(data, []byte("\n")), bytes.Count(data, []byte("\r\n")), bytes.Count(data, []byte("\r"))
	if lf == crlf {
		return false
	}
	if !auto {
		return true
	}
	odd := 0
	for i, b := range data {
		switch {
		case b == 0:
			return false
		case b == '\n' || b == '\r' || b == '\b' || b == '\t' || b == 0x1b || b == '\f':
		case b == 0x1a && i == len(data)-1:
		case b < 0x20 || b == 0x7f:
			odd++
		}
	}
	return cr == 0 && odd <= (len(data)-lf-odd)/128
}

// rulesOf reads the .gitattributes of a folder.
func (t *Tree) rulesOf(dir found) ([]rule, error) {
	t.mu.Lock()
	rules, ok := t.rules[dir.path]
	t.mu.Unlock()
	if ok {
		return rules, nil
	}
	data, err := t.own(dir.in, dir.id, ".gitattributes")
	if err != nil {
		return nil, err
	}
	rules = parseAttributes(path.Join(dir.path, ".gitattributes"), string(data), dir.path == dir.in.path)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules[dir.path] = rules
	return rules, nil
}

// parseAttributes reads a .gitattributes file; only that of the root may define macros.
func parseAttributes(file, text string, root bool) []rule {
	macros := map[string][]assignment{"binary": {{"diff", "-"}, {"merge", "-"}, {"text", "-"}}}
	var rules []rule
	for n, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" || line[0] == '#' || len(line) > maxRuleLine || n >= maxRules {
			continue
		}
		pattern, rest := firstWord(line)
		var set []assignment
		for word := range strings.FieldsSeq(rest) {
			a := assignment{word, "+"}
			switch name, value, valued := strings.Cut(word, "="); {
			case word[0] == '-':
				a = assignment{word[1:], "-"}
			case word[0] == '!':
				a = assignment{word[1:], ""}
			case valued:
				a = assignment{name, "=" + value}
			}
			if a.state == "+" {
				set = append(set, macros[a.name]...)
			}
			set = append(set, a)
		}
		if name, ok := strings.CutPrefix(pattern, "[attr]"); ok {
			if root {
				macros[name] = set
			}
			continue
		}
		if match, base := wildmatch(pattern); match != nil {
			rules = append(rules, rule{evidence.Origin{File: file, Line: n + 1}, match, base, set})
		}
	}
	return rules
}

// firstWord cuts the pattern off a line; one that begins with a quote is quoted as in C.
func firstWord(line string) (word, rest string) {
	if line[0] == '"' {
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			word, _ = strconv.Unquote(quoted)
			return word, line[len(quoted):]
		}
	}
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}
