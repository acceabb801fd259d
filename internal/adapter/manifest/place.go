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

// parserError is what the YAML library says of tokens in an order that makes no sense. It
// counts their lines from zero, and those of all other mistakes from one.
var parserError = regexp.MustCompile(`^did not find expected (node content|key|',' or|'-' indicator|<)`)

// place finds the line of an error of the YAML library, which counts within the document.
func (d document) place(err error) (int, error) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	found := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text)
	if found == nil {
		return d.line + d.unnamedLine() - 1, errors.New("no manifest: " + withoutValues(text))
	}
	line, _ := strconv.Atoi(found[1])
	if parserError.MatchString(found[2]) {
		line++
	}
	// What is missing at the end is missing in the last line.
	line = min(line, 1+bytes.Count(bytes.TrimSpace(d.text), []byte("\n")))
	return d.line + line - 1, errors.New("no manifest: " + withoutValues(found[2]))
}

// withoutValues words the mistakes anew of which the library quotes the value: it may be the
// content of a Secret.
func withoutValues(text string) string {
	for begins, says := range map[string]string{
		"unknown anchor":   "an alias has no anchor; quote a value that begins with *",
		"cannot decode":    "a value is not what its tag (!!) says",
		"cannot unmarshal": "a value is not what its tag (!!) says",
		"invalid map key":  "a map stands where a key belongs; quote {{ }}, or render the template first",
	} {
		if strings.HasPrefix(text, begins) {
			return says
		}
	}
	return text
}

// unnamedLine finds the line of an error for which the library names none, and returns the first
// line when it cannot tell.
func (d document) unnamedLine() int {
	var root yaml.Node
	if yaml.Unmarshal(d.text, &root) != nil {
		return d.unknownAnchor()
	}
	return max(1, undecodable(&root))
}

// unknownAnchor is the line of an alias for which there is no anchor. The library refuses it as
// soon as it comes to it, so it is the last line of the shortest beginning that is refused.
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

// undecodable is the line of the first value that has no meaning by itself, such as binary data
// that is no base64; zero when there is none. A *yaml.TypeError has lines of its own, and may be
// about keys that are there twice, which are accepted here.
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
