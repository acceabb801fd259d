package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// module is the prefix of this repository's packages.
const module = "github.com/lockstep-dev/lockstep/"

// repository is where they are: "go generate" runs in the directory of this package.
const repository = "../.."

// outputsPage lists the fields of every command's output for programs.
func outputsPage() (string, error) {
	var page strings.Builder
	page.WriteString("# Output of commands\n\n`-o json` and `-o yaml` write the same fields. New versions may add fields, and don't remove them ([what is stable](../start/upgrade.md#what-is-stable)).\n\n- `[]` marks a list, and `{}` a map by name.\n- Optional fields may be missing.\n" +
		"- Times are in RFC 3339.\n- `-o name` lists only names, one per line. `-o wide` prints the table with more columns.\n")
	comments := comments{}
	for _, output := range cli.Outputs() {
		fmt.Fprintf(&page, "\n## %s\n\n", output.Command)
		if output.Names != "" {
			fmt.Fprintf(&page, "`-o name` lists %s.\n\n", output.Names)
		}
		s := &schema{table: newTable("field", "type", "optional", "meaning"), comments: comments}
		if err := s.add("", reflect.TypeOf(output.Answer)); err != nil {
			return "", err
		}
		page.WriteString(s.table.String())
	}
	return page.String(), nil
}

// schema collects the fields of one type.
type schema struct {
	table    *table
	comments comments
}

// add adds the fields of a type below a path.
func (s *schema) add(path string, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Pointer:
		return s.add(path, t.Elem())
	case reflect.Slice:
		return s.add(path+"[]", t.Elem())
	case reflect.Map:
		return s.add(path+"{}", t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return nil
		}
	default:
		return nil
	}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case field.Anonymous && name == "":
			if err := s.add(path, field.Type); err != nil {
				return err
			}
			continue
		case name == "":
			name = field.Name
		}
		meaning, err := s.comments.of(t, field.Name)
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		optional := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			optional = "yes"
		}
		s.table.row("`"+at+"`", typeName(field.Type), optional, meaning)
		if err := s.add(at, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// typeName is the type as JSON has it.
func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "time"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "list of " + strings.TrimSuffix(typeName(t.Elem()), "s") + "s"
	case reflect.Map:
		return "map of " + typeName(t.Elem()) + "s"
	case reflect.Struct:
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	default:
		return "number"
	}
}

// comments are those of fields, by package, type and field.
type comments map[string]map[string]string

// of is the comment on a field in one line.
func (c comments) of(t reflect.Type, field string) (string, error) {
	path := t.PkgPath()
	if !strings.HasPrefix(path, module) {
		return "", nil
	}
	if c[path] == nil {
		read, err := readComments(path)
		if err != nil {
			return "", err
		}
		c[path] = read
	}
	return c[path][t.Name()+"."+field], nil
}

func readComments(path string) (map[string]string, error) {
	found := map[string]string{}
	set := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(strings.TrimPrefix(path, module)), "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						found[spec.Name.Name+"."+name.Name] = forReaders(name.Name, oneLine(field.Doc.Text()))
					}
				}
			}
			return true
		})
	}
	return found, nil
}

// forReaders drops the beginning by which Go names the field: "Since is the time …" is "The time …".
func forReaders(field, comment string) string {
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(comment, field+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return comment
}

func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
