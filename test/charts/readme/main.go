// Command readme writes a chart's README.md from its Chart.yaml and values.yaml:
// the text in README.md.in, with a table of the values at its marker.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// marker is the line of README.md.in that the table replaces.
const marker = "<!-- values -->"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the directory of one chart, got %q", args)
	}
	text, err := os.ReadFile(filepath.Join(args[0], "README.md.in"))
	if err != nil {
		return err
	}
	values, err := os.ReadFile(filepath.Join(args[0], "values.yaml"))
	if err != nil {
		return err
	}
	table, err := tableOf(values)
	if err != nil {
		return fmt.Errorf("read values.yaml: %w", err)
	}
	readme := strings.Replace(string(text), marker, table, 1)
	return os.WriteFile(filepath.Join(args[0], "README.md"), []byte(readme), 0o644)
}

// tableOf lists every value that has a comment beginning with two dashes.
func tableOf(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n| --- | --- | --- |\n")
	if err := writeRows(&b, "", document.Content[0]); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func writeRows(b *strings.Builder, prefix string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		meaning := comment(key)
		if meaning == "" && value.Kind == yaml.MappingNode {
			if err := writeRows(b, path+".", value); err != nil {
				return err
			}
			continue
		}
		if meaning == "" {
			return fmt.Errorf("%s has no comment that begins with two dashes", path)
		}
		shown, err := defaultOf(value)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", path, shown, strings.ReplaceAll(meaning, "|", `\|`))
	}
	return nil
}

// comment is the last comment before a key that begins with two dashes, in one
// line.
func comment(key *yaml.Node) string {
	_, text, found := strings.Cut("\n"+key.HeadComment, "\n# -- ")
	if !found {
		return ""
	}
	return strings.ReplaceAll(text, "\n# ", " ")
}

func defaultOf(value *yaml.Node) (string, error) {
	var v any
	if err := value.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}
