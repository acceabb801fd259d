package manifest

import (
	"slices"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"
)

// lines knows the lines of an object's fields. It parses the text when the first line is
// queried, because most readers never do.
type lines struct {
	root func() *yaml.Node
	// before is how many lines of the file precede the text.
	before int
	path   []string
}

func newLines(d document) lines {
	return lines{before: d.line - 1, root: sync.OnceValue(func() *yaml.Node {
		var root yaml.Node
		if yaml.Unmarshal(d.text, &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})}
}

// item knows the lines of an item of a list.
func (l lines) item(index int) lines {
	l.path = []string{"items", strconv.Itoa(index)}
	return l
}

// LineOf is the line of a field, or of the innermost field of the path that exists in the file;
// the line of the object when none does. Behind an alias it is the line at the anchor, where a
// user corrects it.
func (o Object) LineOf(path ...string) int {
	node, line := o.lines.root(), 0
	for _, field := range slices.Concat(o.lines.path, path) {
		key, value := child(node, field)
		if key == nil {
			break
		}
		node, line = value, key.Line
	}
	if line == 0 {
		return o.Line
	}
	return o.lines.before + line
}

// child finds a field of a mapping, or an item of a sequence, and the node at whose line it
// begins.
func child(node *yaml.Node, field string) (key, value *yaml.Node) {
	node = anchored(node)
	if node == nil {
		return nil, nil
	}
	if index, err := strconv.Atoi(field); err == nil && node.Kind == yaml.SequenceNode && index < len(node.Content) {
		return node.Content[index], node.Content[index]
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == field {
			return node.Content[i], node.Content[i+1]
		}
	}
	return merged(node, field)
}

// merged finds a field that a mapping inherits by "<<".
func merged(node *yaml.Node, field string) (key, value *yaml.Node) {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if !isMerge(node.Content[i]) {
			continue
		}
		from := []*yaml.Node{node.Content[i+1]}
		if from[0].Kind == yaml.SequenceNode {
			from = from[0].Content
		}
		for _, mapping := range from {
			if key, value = child(mapping, field); key != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

func isMerge(key *yaml.Node) bool { return key.Tag == "!!merge" }

// anchored is the node that an alias refers to; any other node is returned unchanged.
func anchored(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// node is the object's own part of the text.
func (o Object) node() *yaml.Node {
	node := o.lines.root()
	for _, field := range o.lines.path {
		_, node = child(node, field)
	}
	return node
}

// Duplicate is a repeated key of a mapping.
type Duplicate struct {
	Key string
	// Line is the repeated key's line, First the first one's.
	Line, First int
}

// Duplicates are the keys that occur twice in one mapping of the object, in text order. YAML
// parsers silently use one of them, usually the last.
func (o Object) Duplicates() []Duplicate {
	var all []Duplicate
	eachMapping(o.node(), func(mapping *yaml.Node) {
		first := map[string]int{}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			key := mapping.Content[i]
			line := o.lines.before + key.Line
			if before, again := first[key.Value]; again && key.Kind == yaml.ScalarNode {
				all = append(all, Duplicate{Key: key.Value, Line: line, First: before})
				continue
			}
			first[key.Value] = line
		}
	})
	return all
}

func eachMapping(node *yaml.Node, visit func(*yaml.Node)) {
	if node == nil {
		return
	}
	if node.Kind == yaml.MappingNode {
		visit(node)
	}
	for _, below := range node.Content {
		eachMapping(below, visit)
	}
}

// LineWhere is the line of the first matching value, by the fields that lead to it; the line of
// the object when there is none. It treats aliases like LineOf.
func (o Object) LineWhere(isIt func(path []string, value string) bool) int {
	if line := find(o.node(), nil, isIt); line > 0 {
		return o.lines.before + line
	}
	return o.Line
}

// find searches a node in text order. fields is the path to it.
func find(node *yaml.Node, fields []string, isIt func([]string, string) bool) int {
	node = anchored(node)
	switch {
	case node == nil:
		return 0
	case node.Kind == yaml.ScalarNode && isIt(fields, node.Value):
		return node.Line
	}
	for i, next := range node.Content {
		below := fields
		if node.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			if key := node.Content[i-1]; !isMerge(key) {
				below = slices.Concat(fields, []string{key.Value})
			}
		}
		if line := find(next, below, isIt); line > 0 {
			return line
		}
	}
	return 0
}
