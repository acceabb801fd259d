package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError says in one line which flag is wrong and what may be meant, or that there is
// no such command, if it is that which makes the flag unknown. further are commands that
// Cobra does not know.
func FlagError(cmd *cobra.Command, err error, further []string) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if !cmd.HasParent() && cmd.Flags().NArg() > 0 {
			return UnknownCommand(cmd, cmd.Flags().Arg(0), further)
		}
		return unknownFlag(cmd, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), wanted(wrong.GetFlag(), wrong.Unwrap()))
	}
	return err
}

// UnknownCommand says that the root has no such command, and which one may be meant.
func UnknownCommand(root *cobra.Command, word string, further []string) error {
	names := further
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s", word, Hint(word, "", names))
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	// Of "-quiet" pflag reads -q first; the whole word says more.
	word, dashes := unknown.GetSpecifiedName(), "--"
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		word, _, _ = strings.Cut(group, "=")
		dashes = "-"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fmt.Errorf("unknown flag: %s%s%s", dashes, word, Hint(word, "--", names))
}

// wanted says what the flag takes, where its type is worth an example.
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
