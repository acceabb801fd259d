package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CommandError explains why the flags of a command line could not be parsed: an unknown command,
// if that is why a flag is unknown, or the wrong flag. further are commands that Cobra does not
// know.
func CommandError(cmd *cobra.Command, err error, further []string) error {
	if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown && !cmd.HasParent() && cmd.Flags().NArg() > 0 {
		return UnknownCommand(cmd, cmd.Flags().Arg(0), further)
	}
	return FlagError(cmd.Flags(), err)
}

// FlagError reports in one line which flag is wrong, and suggests another one.
func FlagError(fs *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(fs, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), wanted(wrong.GetFlag(), wrong.Unwrap()))
	}
	return err
}

// UnknownCommand reports that the root lacks the command, and suggests another one.
func UnknownCommand(root *cobra.Command, word string, further []string) error {
	names := further
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s", word, Hint(word, "", names))
}

func unknownFlag(fs *pflag.FlagSet, unknown *pflag.NotExistError) error {
	// For "-quiet" pflag reads -q first; the whole word is more useful.
	word, dashes := unknown.GetSpecifiedName(), "--"
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		word, _, _ = strings.Cut(group, "=")
		dashes = "-"
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fmt.Errorf("unknown flag: %s%s%s", dashes, word, Hint(word, "--", names))
}

// wanted describes the flag's values, where its type deserves an example.
func wanted(f *pflag.Flag, cause error) string {
	switch f.Value.Type() {
	case "duration":
		return "want a duration, such as 30s or 5m"
	case "int":
		return "want a whole number"
	case "bool":
		return "want true or false"
	}
	return cause.Error()
}
