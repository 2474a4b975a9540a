package source

import (
	"regexp"
	"strings"
)

// wildmatch compiles a pattern of gitattributes(5). base says that it is for the last name of a path;
// match is nil if the pattern is for no file: it ends with a slash, or is negative.
func wildmatch(pattern string) (match func(string) bool, base bool) {
	if pattern == "" || pattern[0] == '!' || strings.HasSuffix(pattern, "/") {
		return nil, false
	}
	base = !strings.Contains(pattern, "/")
	pattern = strings.TrimPrefix(pattern, "/")
	if !strings.ContainsAny(pattern, `*?[\`) {
		return func(name string) bool { return name == pattern }, base
	}
	var re strings.Builder
	re.WriteString(`(?s)^`)
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		stars := len(rest) - len(strings.TrimLeft(rest, "*"))
		whole := stars > 1 && (i == 0 || pattern[i-1] == '/')
		switch {
		case whole && strings.HasPrefix(rest[stars:], "/"):
			re.WriteString(`(?:.*/)?`)
			i += stars + 1
		case whole && rest[stars:] == "":
			re.WriteString(`.+`)
			i += stars
		case stars > 0:
			re.WriteString(`[^/]*`)
			i += stars
		case rest[0] == '?':
			re.WriteString(`[^/]`)
			i++
		case rest[0] == '[':
			class, n := bracket(rest)
			if n == 0 {
				return func(string) bool { return false }, base
			}
			re.WriteString(class)
			i += n
		case rest[0] == '\\' && len(rest) > 1:
			re.WriteString(regexp.QuoteMeta(bytewise(rest[1:2])))
			i += 2
		default:
			re.WriteString(regexp.QuoteMeta(bytewise(rest[:1])))
			i++
		}
	}
	compiled, err := regexp.Compile(re.String() + `$`)
	if err != nil { // a range that is none
		return func(string) bool { return false }, base
	}
	return func(name string) bool { return compiled.MatchString(bytewise(name)) }, base
}

// bytewise makes a character of each byte, since Git matches bytes.
func bytewise(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}

// bracket translates the bracket expression that a text begins with and tells its length, 0 if it
// does not end.
func bracket(text string) (class string, length int) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		b.WriteString(`^/`)
		i++
	}
	for first := true; i < len(text); first = false {
		switch c := text[i]; {
		case c == ']' && !first:
			return b.String() + "]", i + 1
		case c == '[' && strings.HasPrefix(text[i:], "[:"):
			end := strings.Index(text[i:], ":]")
			if end < 0 {
				return "", 0
			}
			b.WriteString(text[i : i+end+2])
			i += end + 2
		case c == '\\' && i+1 < len(text):
			literal(&b, text[i+1])
			i += 2
		case c == '-':
			b.WriteByte('-')
			i++
		default:
			literal(&b, c)
			i++
		}
	}
	return "", 0
}

// literal writes a character of a bracket expression that means itself.
func literal(b *strings.Builder, c byte) {
	if strings.IndexByte(`[]\^-&~`, c) >= 0 {
		b.WriteByte('\\')
	}
	b.WriteRune(rune(c))
}
