// Package manifest knows the files that people apply: where the objects in them begin, and
// what an object would be once a file was applied.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Stdin is the name that stands for the standard input.
const Stdin = "-"

// Object is an object of a file.
type Object struct {
	*unstructured.Unstructured

	// File and Line are where it begins.
	File string
	Line int
}

// Error is a file that is no manifest, with the place.
type Error struct {
	File string
	Line int // zero when the whole file is meant
	Err  error
}

// Error begins with the place, as compilers write it.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Read reads the objects of files and directories in the order in which kubectl would apply
// them. Of a directory the files count that end in .yaml, .yml or .json. Every error is an
// *Error.
func Read(names []string, stdin io.Reader) ([]Object, error) {
	var all []Object
	for _, name := range names {
		files, err := expand(name)
		if err != nil {
			return nil, &Error{File: name, Err: withoutName(err)}
		}
		for _, file := range files {
			found, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// expand lists the manifests of a directory; a file stands for itself.
func expand(name string) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no file in it ends in .yaml, .yml or .json")
	}
	return files, nil
}

func readFile(name string, stdin io.Reader) ([]Object, error) {
	var text []byte
	var err error
	if name == Stdin {
		name = "standard input"
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(name) //nolint:gosec // the person names the file
	}
	if err != nil {
		return nil, &Error{File: name, Err: withoutName(err)}
	}
	return parse(name, text)
}

// withoutName drops the name of the file, which comes first anyway.
func withoutName(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// document is a part of a file that holds one object, or a list of them.
type document struct {
	text []byte
	line int // of its first line that says something
}

func parse(file string, text []byte) ([]Object, error) {
	var all []Object
	for _, d := range split(text) {
		found, err := d.objects(file)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// split parts a file into documents: at lines "---", or where one JSON object ends and the
// next begins.
func split(text []byte) []document {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if documents, err := splitJSON(text); err == nil {
			return documents
		}
		// YAML in the flow style begins so too, and its errors have a line.
	}
	var all []document
	current := document{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if isSeparator(line) {
			all, current = append(all, current), document{}
			continue
		}
		says := bytes.TrimSpace(line)
		if current.line == 0 && len(says) > 0 && says[0] != '#' {
			current.line = number
		}
		if current.line > 0 {
			current.text = append(current.text, line...)
		}
	}
	return append(all, current)
}

// isSeparator reports whether a line parts two documents; a comment may follow.
func isSeparator(line []byte) bool {
	rest, begins := bytes.CutPrefix(line, []byte("---"))
	says := bytes.TrimSpace(rest)
	return begins && (len(says) == 0 || says[0] == '#' && (rest[0] == ' ' || rest[0] == '\t'))
}

func splitJSON(text []byte) ([]document, error) {
	var all []document
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		begins := int(decoder.InputOffset())
		begins += len(text[begins:]) - len(bytes.TrimLeft(text[begins:], " \t\r\n"))
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, document{text: raw, line: 1 + bytes.Count(text[:begins], []byte("\n"))})
	}
}

// objects reads the objects of a document. One that says nothing has none.
func (d document) objects(file string) ([]Object, error) {
	if d.line == 0 {
		return nil, nil
	}
	text, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		line, cause := d.place(err)
		return nil, &Error{File: file, Line: line, Err: cause}
	}
	if string(text) == "null" {
		return nil, nil
	}
	wrong := func(format string, args ...any) error {
		return &Error{File: file, Line: d.line, Err: fmt.Errorf("no manifest: "+format, args...)}
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, wrong("it is no object with apiVersion and kind")
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _ := fields[field].(string); value == "" {
			return nil, wrong("it has no %s", field)
		}
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		// The cause would quote the content.
		return nil, wrong("an object in it has no apiVersion and kind")
	}
	if o.IsList() {
		return d.items(file, o)
	}
	if o.GetName() == "" {
		return nil, wrong("the %s has no metadata.name", o.GetKind())
	}
	return []Object{{o, file, d.line}}, nil
}

// items are the objects of a list, each at the line of the list.
func (d document) items(file string, list *unstructured.Unstructured) ([]Object, error) {
	var all []Object
	err := list.EachListItem(func(item runtime.Object) error {
		o, ok := item.(*unstructured.Unstructured)
		if !ok || o.GetKind() == "" || o.GetName() == "" {
			return errNoItem
		}
		all = append(all, Object{o, file, d.line})
		return nil
	})
	if err != nil {
		return nil, &Error{File: file, Line: d.line, Err: errNoItem}
	}
	return all, nil
}

// errNoItem says no more: what is wrong with the item would quote it.
var errNoItem = errors.New("no manifest: an item of the list is no object with kind and metadata.name")

// place finds the line in an error of the YAML library, which counts within the document.
func (d document) place(err error) (int, error) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	found := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text)
	if found == nil {
		return d.line, errors.New("no manifest: " + text)
	}
	line, _ := strconv.Atoi(found[1])
	return d.line + line - 1, errors.New("no manifest: " + found[2])
}
