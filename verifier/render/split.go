package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is one YAML or JSON document of a file; its text starts at line Line, counted from 1.
type document struct {
	line int
	text []byte
}

// maxDocuments bounds what one file holds: each takes time to read, also where it is nothing.
const maxDocuments = 50000

// splitError is a separator that is none, or that of one document too many.
type splitError struct {
	line int
	text string
	many bool
}

func (e *splitError) Error() string {
	if e.many {
		return fmt.Sprintf("the file has more than the limit of %d documents", maxDocuments)
	}
	return fmt.Sprintf("line %d: %q is no document separator: only a comment may follow ---", e.line, e.text)
}

var bom = []byte("\ufeff")

// split cuts a file into documents as kubectl does: a file that begins with { is a stream of JSON
// objects if it can be read as one, else documents end at a line that begins with ---. Line ends of
// CR LF become LF. A byte order mark at the start of the file is dropped.
func split(data []byte) ([]document, error) {
	data = bytes.TrimPrefix(data, bom)
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		if docs, ok := splitJSON(data); ok {
			if len(docs) > maxDocuments {
				return nil, &splitError{line: docs[maxDocuments].line, many: true}
			}
			return docs, nil
		}
	}
	var docs []document
	current := document{line: 1}
	number := 0
	end := func() bool {
		if len(bytes.TrimSpace(current.text)) > 0 {
			docs = append(docs, current)
		}
		return len(docs) > maxDocuments
	}
	for len(data) > 0 {
		number++
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		data = rest
		if ended {
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		if after, ok := bytes.CutPrefix(line, []byte("---")); ok {
			if after = bytes.TrimSpace(after); len(after) > 0 && after[0] != '#' {
				return nil, &splitError{line: number, text: strings.ToValidUTF8(string(line[:min(len(line), 80)]), "?")}
			}
			if end() {
				return nil, &splitError{line: number, many: true}
			}
			current = document{line: number + 1}
			continue
		}
		current.text = append(append(current.text, line...), '\n')
	}
	if end() {
		return nil, &splitError{line: number, many: true}
	}
	return docs, nil
}

func splitJSON(data []byte) ([]document, bool) {
	var docs []document
	decoder := json.NewDecoder(bytes.NewReader(data))
	line, at := 1, 0
	for decoder.More() {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return nil, false
		}
		start := int(decoder.InputOffset()) - len(raw)
		line += bytes.Count(data[at:start], []byte("\n"))
		at = start
		if docs = append(docs, document{line, raw}); len(docs) > maxDocuments {
			return docs, true // the caller sees that they are too many
		}
	}
	return docs, len(bytes.TrimSpace(data[decoder.InputOffset():])) == 0
}
