package render

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// fileSet is files by their path. Git's paths are bytes, and need not be UTF-8.
type fileSet map[string][]byte

// What goes between the processes is a line of JSON and the contents behind it, as they are: contents
// inside JSON would be copied and encoded several times.

type sentFile struct {
	Path []byte
	Size int
}

type sentRequest struct {
	Request request
	Files   []sentFile
}

// send is the request as the child reads it.
func (req request) send() (io.Reader, error) {
	head := sentRequest{Request: req}
	var contents []io.Reader
	for _, name := range slices.Sorted(maps.Keys(req.Files)) {
		data := req.Files[name]
		head.Files = append(head.Files, sentFile{[]byte(name), len(data)})
		contents = append(contents, bytes.NewReader(data))
	}
	line, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encoding the render request: %w", err)
	}
	return io.MultiReader(append([]io.Reader{bytes.NewReader(append(line, '\n'))}, contents...)...), nil
}

func receive(r io.Reader) (request, error) {
	var head sentRequest
	in := bufio.NewReader(r)
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &head)
	}
	if err != nil {
		return request{}, fmt.Errorf("reading the request: %w", err)
	}
	req := head.Request
	req.Files = fileSet{}
	for _, f := range head.Files {
		data := make([]byte, f.Size)
		if _, err := io.ReadFull(in, data); err != nil {
			return request{}, fmt.Errorf("reading the request's files: %w", err)
		}
		req.Files[string(f.Path)] = data
	}
	return req, nil
}

// seal completes the objects: what they are, and a hash by which two renders are compared. The run
// that finds the origins need not send the objects themselves.
func (a *answer) seal(req request) {
	for i := range a.Objects {
		o := &a.Objects[i]
		content := contents(o.JSON)
		o.ID = identify(content)
		data := o.JSON
		if strip(content) { // no annotations and empty annotations are the same
			data = canonical(content)
		}
		sum := sha256.Sum256(data)
		o.Hash = hex.EncodeToString(sum[:])
		if o.Size = len(o.JSON); req.Lines && req.Renderer != Helm {
			o.JSON, o.Size = nil, 0
		}
	}
	a.YAMLSize = len(a.YAML)
}

func (a answer) send(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if err := json.NewEncoder(out).Encode(a); err != nil { // ends with a new line
		return err
	}
	for _, o := range a.Objects {
		if _, err := out.Write(o.JSON); err != nil {
			return err
		}
	}
	if _, err := out.Write(a.YAML); err != nil {
		return err
	}
	return out.Flush()
}

// readAnswer reads what send wrote. The contents stay in data.
func readAnswer(data []byte) (answer, error) {
	var a answer
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, err
	}
	take := func(size int) []byte {
		if size < 0 || size > len(rest) {
			rest = nil
			return nil
		}
		part := rest[:size:size]
		rest = rest[size:]
		return part
	}
	total := a.YAMLSize
	for i := range a.Objects {
		total += a.Objects[i].Size
	}
	if total != len(rest) {
		return answer{}, errors.New("it is cut")
	}
	for i := range a.Objects {
		if o := &a.Objects[i]; o.Size > 0 {
			o.JSON = take(o.Size)
		}
	}
	a.YAML = take(a.YAMLSize)
	return a, nil
}
