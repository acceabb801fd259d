package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// The output formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

// outputOptions select the output format.
type outputOptions struct{ format string }

func outputFormats() []string {
	return []string{formatTable, formatWide, formatJSON, formatYAML, formatName}
}

func (o *outputOptions) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, strings.Join(outputFormats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats(), cobra.ShellCompDirectiveNoFileComp))
}

func (o outputOptions) validate() error {
	if !slices.Contains(outputFormats(), o.format) {
		return usageError{fmt.Errorf("--output %q: want one of %s", o.format, strings.Join(outputFormats(), ", "))}
	}
	return nil
}

func (o outputOptions) isWide() bool { return o.format == formatWide }

// isForUsers reports whether the output is for users, not for programs.
func (o outputOptions) isForUsers() bool {
	return o.format == formatTable || o.format == formatWide
}

// listed is an object in an answer. Only its name, such as "deployment/web", is shown, as kubectl does.
type listed struct{ namespace, name string }

// list writes the names of the answer's objects, each object once, or what write writes.
func (o outputOptions) list(to io.Writer, answer any, objects []listed, forPeople func(io.Writer) error) error {
	if o.format != formatName {
		return o.write(to, answer, forPeople)
	}
	for i, object := range objects {
		if slices.Contains(objects[:i], object) {
			continue
		}
		if err := say(to, "%s", object.name); err != nil {
			return err
		}
	}
	return nil
}

// listedOf are the objects of each element.
func listedOf[T any](all []T, object func(T) listed) []listed {
	objects := make([]listed, len(all))
	for i, one := range all {
		objects[i] = object(one)
	}
	return objects
}

// write writes the answer for programs, or calls forPeople.
func (o outputOptions) write(to io.Writer, answer any, forPeople func(io.Writer) error) error {
	switch o.format {
	case formatJSON:
		encoder := json.NewEncoder(commandline.JSON(to))
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(answer)
	case formatYAML:
		text, err := yaml.Marshal(answer)
		if err != nil || !commandline.IsPlain(text) {
			return outputOptions{formatJSON}.write(to, answer, nil) // It is YAML too, and can be escaped.
		}
		_, err = commandline.Raw(to).Write(text)
		return err
	}
	return forPeople(to)
}
