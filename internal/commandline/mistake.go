package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WrongFlagError is a flag that a command doesn't have, or a value that a flag doesn't take.
type WrongFlagError struct {
	error
	// Usage is one line.
	Usage string
}

func (e WrongFlagError) Unwrap() error { return e.error }

// CommandError explains why the flags of a command line could not be parsed: an unknown command,
// if that is why a flag is unknown, or the wrong flag. further are commands that Cobra does not
// know.
func CommandError(cmd *cobra.Command, err error, further []string) error {
	if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown && !cmd.HasParent() && cmd.Flags().NArg() > 0 {
		return UnknownCommand(cmd, cmd.Flags().Arg(0), further)
	}
	return WrongFlagError{FlagError(cmd.Flags(), err), cmd.UseLine()}
}

// Misplaced is the first of the arguments in the place of a command that isn't one, empty if there is none. Cobra
// itself parses the flags before and after it first, and answers "sttaus --help" with the help of the whole program.
func Misplaced(root *cobra.Command, args []string) string {
	root.InitDefaultHelpFlag()
	root.InitDefaultHelpCmd()
	found, _, err := root.Find(args)
	word := firstWord(root.Flags(), args)
	if err != nil || found.HasParent() || word == cobra.ShellCompRequestCmd || word == cobra.ShellCompNoDescRequestCmd {
		return ""
	}
	return word
}

// firstWord is the argument that Cobra takes for a command: the first one that isn't a flag or, as far as the flags are
// known, the value of one.
func firstWord(flags *pflag.FlagSet, args []string) string {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name := strings.TrimLeft(args[i], "-")
		if name == args[i] {
			return name
		}
		flag := flags.Lookup(name)
		if len(name) == 1 {
			flag = flags.ShorthandLookup(name)
		}
		if takesNext := strings.HasPrefix(args[i], "--") || len(name) == 1; takesNext && !strings.Contains(name, "=") && (flag == nil || flag.NoOptDefVal == "") {
			i++
		}
	}
	return ""
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
	var shown, hidden []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			hidden = append(hidden, f.Name)
		} else {
			shown = append(shown, f.Name)
		}
	})
	return fmt.Errorf("unknown flag: %s%s%s", dashes, word, cmp.Or(Hint(word, "--", shown), Hint(word, "--", hidden)))
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
