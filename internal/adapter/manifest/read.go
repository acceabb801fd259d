// Package manifest knows the files that users apply: where the objects in them begin, and the
// state of an object after a file is applied.
package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// Stdin is the name for the standard input.
const Stdin = "-"

// Object is an object of a file.
type Object struct {
	*unstructured.Unstructured

	// File and Line are where it begins.
	File string
	Line int

	lines lines
}

// Called is the object's name beside its namespace: "deployment/web". One without a name has the
// prefix of its generated names.
func (o Object) Called() string {
	return objectname.Short(o.GroupVersionKind().GroupKind(), cmp.Or(o.GetName(), o.GetGenerateName()))
}

// Error is a file that isn't a manifest, with the place.
type Error struct {
	File string
	Line int // zero for the whole file
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
// them. In a directory it reads the files that end in .yaml, .yml or .json. Every error is an
// *Error.
func Read(names []string, stdin io.Reader) ([]Object, error) {
	found, err := Reader{Stdin: stdin}.Read(names)
	return found.Objects, err
}

// Reader configures what is read.
type Reader struct {
	Stdin io.Reader
	// Recursive reads subdirectories too.
	Recursive bool
	// SkipOthers counts documents that aren't objects, such as the values of a chart, instead of
	// refusing them.
	SkipOthers bool
	// Generated accepts objects with a generateName instead of a name, which "kubectl apply"
	// refuses and "kubectl create" accepts.
	Generated bool
	// GoOn continues after documents that aren't manifests, and lists the errors beside the
	// objects.
	GoOn bool
}

// Found is the result of reading.
type Found struct {
	Objects []Object
	// Wrong are the errors after which the reader continued.
	Wrong []error
	// Files is the number of files, Others the number of documents that aren't objects.
	Files, Others int
}

// Read is like the function of this name.
func (r Reader) Read(names []string) (Found, error) {
	var all Found
	for _, name := range names {
		files, err := r.expand(name)
		if err != nil && !r.goesOn(&all, &Error{File: name, Err: withoutName(err)}) {
			return Found{}, all.Wrong[0]
		}
		for _, file := range files {
			if !r.addFile(&all, file) {
				return Found{}, all.Wrong[0]
			}
			all.Files++
		}
	}
	return all, nil
}

// goesOn records an error, and reports whether the reader continues.
func (r Reader) goesOn(all *Found, err error) bool {
	all.Wrong = append(all.Wrong, err)
	return r.GoOn
}

// expand lists the manifests of a directory; a file is returned as it is.
func (r Reader) expand(name string) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	root := name + string(filepath.Separator) // follows a link to a directory
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && !r.Recursive:
			return filepath.SkipDir
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no file in it ends in .yaml, .yml or .json")
	}
	return files, err
}

// addFile adds the objects of a file. It is false when the reader stops at an error.
func (r Reader) addFile(all *Found, name string) bool {
	var text []byte
	var err error
	if name == Stdin {
		name = "standard input"
		text, err = io.ReadAll(r.Stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return r.goesOn(all, &Error{File: name, Err: withoutName(err)})
	}
	for _, d := range split(text) {
		found, err := r.objects(d, name)
		if _, other := errors.AsType[noObjectError](err); other && r.SkipOthers {
			all.Others++
			continue
		}
		if err != nil && !r.goesOn(all, err) {
			return false
		}
		all.Objects = append(all.Objects, found...)
	}
	return true
}

// noObjectError is a readable document that isn't an object with a name: the values of a chart,
// a patch, a kustomization.
type noObjectError struct{ error }

// withoutName drops the file name, which the message already begins with.
func withoutName(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// document is a part of a file that contains one object, or a list of them.
type document struct {
	text []byte
	line int // of its first line with content
}

// split splits a file into documents: at lines "---", or where one JSON object ends and the next
// begins.
func split(text []byte) []document {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if documents, err := splitJSON(text); err == nil {
			return documents
		}
		// YAML in flow style begins like JSON too, and its errors have a line.
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

// isSeparator reports whether a line separates two documents; a comment may follow.
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

// objects reads the objects of a document. An empty document has none.
func (r Reader) objects(d document, file string) ([]Object, error) {
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
		return &Error{File: file, Line: d.line, Err: fmt.Errorf("not a manifest: "+format, args...)}
	}
	other := func(format string, args ...any) error {
		return &Error{File: file, Line: d.line, Err: noObjectError{fmt.Errorf("not a manifest: "+format, args...)}}
	}
	if text[0] == '[' { // as in a Kustomize patch
		return nil, other("it isn't an object with apiVersion and kind")
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, wrong("it isn't an object with apiVersion and kind")
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _ := fields[field].(string); value == "" {
			return nil, other("%s is missing", field)
		}
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		// The cause would quote the content.
		return nil, wrong("apiVersion and kind of an object in it are missing")
	}
	if o.IsList() {
		return r.items(d, file, o)
	}
	if name, set, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "name"); set && name != nil && o.GetName() == "" && name != "" {
		return nil, wrong("metadata.name of the %s isn't a string: quote it", o.GetKind())
	}
	if !r.isNamed(o) {
		return nil, other("the %s doesn't have a metadata.name", o.GetKind())
	}
	return []Object{{o, file, d.line, newLines(d)}}, nil
}

func (r Reader) isNamed(o *unstructured.Unstructured) bool {
	return o.GetName() != "" || r.Generated && o.GetGenerateName() != ""
}

// items are the objects of a list, each at the line of the list. Items of a list with its own
// kind, such as a DeploymentList, may omit their kind.
func (r Reader) items(d document, file string, list *unstructured.Unstructured) ([]Object, error) {
	var all []Object
	where := newLines(d)
	err := list.EachListItem(func(item runtime.Object) error {
		o, ok := item.(*unstructured.Unstructured)
		if !ok {
			return errNoItem
		}
		inherit(o, list)
		if o.GetKind() == "" || !r.isNamed(o) {
			return errNoItem
		}
		all = append(all, Object{o, file, d.line, where.item(len(all))})
		return nil
	})
	if err != nil {
		return nil, &Error{File: file, Line: d.line, Err: errNoItem}
	}
	return all, nil
}

// inherit sets a missing kind and version of an item, if its list has its own kind.
func inherit(item, list *unstructured.Unstructured) {
	kind, ok := strings.CutSuffix(list.GetKind(), "List")
	if !ok || kind == "" {
		return
	}
	if item.GetKind() == "" || item.GetKind() == kind {
		item.SetKind(kind)
		item.SetAPIVersion(cmp.Or(item.GetAPIVersion(), list.GetAPIVersion()))
	}
}

// errNoItem doesn't include the cause, which would quote the item.
var errNoItem = errors.New("not a manifest: an item of the list isn't an object with kind and metadata.name")
