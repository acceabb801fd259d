package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parserError matches the YAML library's errors about tokens in a wrong order. It counts their
// lines from zero, and those of all other errors from one.
var parserError = regexp.MustCompile(`^did not find expected (node content|key|',' or|'-' indicator|<)`)

// place finds the line of a YAML library error, which counts within the document.
func (d document) place(err error) (int, error) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	found := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text)
	if found == nil {
		return d.line + d.unnamedLine() - 1, errors.New("not a manifest: " + withoutValues(text))
	}
	line, _ := strconv.Atoi(found[1])
	if parserError.MatchString(found[2]) {
		line++
	}
	// A missing end is reported in the last line.
	line = min(line, 1+bytes.Count(bytes.TrimSpace(d.text), []byte("\n")))
	return d.line + line - 1, errors.New("not a manifest: " + withoutValues(found[2]))
}

// withoutValues rewords the errors in which the library quotes the value: it may be the content
// of a Secret.
func withoutValues(text string) string {
	for begins, says := range map[string]string{
		"unknown anchor":   "an alias doesn't have an anchor; quote a value that begins with *",
		"cannot decode":    "a value does not match its tag (!!)",
		"cannot unmarshal": "a value does not match its tag (!!)",
		"invalid map key":  "a map is used as a key; quote {{ }}, or render the template first",
	} {
		if strings.HasPrefix(text, begins) {
			return says
		}
	}
	return text
}

// unnamedLine finds the line of an error for which the library doesn't report one, or returns
// the first line.
func (d document) unnamedLine() int {
	var root yaml.Node
	if yaml.Unmarshal(d.text, &root) != nil {
		return d.unknownAnchor()
	}
	return max(1, undecodable(&root))
}

// unknownAnchor is the line of an alias without an anchor. The library refuses it as soon as it
// reads it, so it is the last line of the shortest refused beginning.
func (d document) unknownAnchor() int {
	lines := bytes.SplitAfter(d.text, []byte("\n"))
	before := sort.Search(len(lines), func(n int) bool {
		var root yaml.Node
		err := yaml.Unmarshal(bytes.Join(lines[:n+1], nil), &root)
		return err != nil && strings.HasPrefix(err.Error(), "yaml: unknown anchor")
	})
	if before == len(lines) {
		return 1
	}
	return before + 1
}

// undecodable is the line of the first value that cannot be decoded, such as invalid base64 in
// binary data; zero without one. A *yaml.TypeError has its own lines, and may be about duplicate
// keys, which are accepted here.
func undecodable(node *yaml.Node) int {
	for _, below := range node.Content {
		if line := undecodable(below); line > 0 {
			return line
		}
	}
	var value any
	err := node.Decode(&value)
	if _, hasLines := errors.AsType[*yaml.TypeError](err); err == nil || hasLines {
		return 0
	}
	return node.Line
}
