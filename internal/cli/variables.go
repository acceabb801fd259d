package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// controllerName is the command whose flags all have a variable: its Deployment sets them, and nothing else is in its
// environment by accident.
const controllerName = "controller"

// sets is what a flag of a command for users sets.
type sets string

const (
	// connection is the cluster, the user, the installation or a registry that the command reaches.
	connection sets = "the connection"
	// outputForm is how the command reports.
	outputForm sets = "the output"
	// selects are the objects that the command is about. A variable that was exported for another command would widen
	// a command that names its objects.
	selects sets = "what is selected"
	// behaviour is what the command does to them, and what it ignores on the way.
	behaviour sets = "what the command does"
)

// hasVariable reports whether a flag of a command for users has an environment variable.
func (s sets) hasVariable() bool { return s == connection || s == outputForm }

// userFlags are the flags of all commands but the controller. A test fails for a flag that isn't among them.
func userFlags() map[string]sets {
	return map[string]sets{
		"as": connection, "as-group": connection, "context": connection, "kubeconfig": connection, "request-timeout": connection, "token": connection,
		"controller-namespace": connection, "key-name": connection, "lease-name": connection, "state-name": connection,
		"cloud-identity": connection, "controller": connection, "docker-config": connection, "plain-http": connection, "plain-http-registry": connection, "registry-ca": connection,

		"log-format": outputForm, "log-level": outputForm, "output": outputForm,

		"all": selects, "all-namespaces": selects, "filename": selects, "key": selects, "kind": selects, "namespace": selects,
		"recursive": selects, "secret": selects, "selector": selects, "tags-from": selects,

		"auto": behaviour, "best-effort": behaviour, "complete": behaviour, "dry-run": behaviour, "exit-code": behaviour, "force": behaviour,
		"form": behaviour, "from": behaviour, "help": behaviour, "image-default-platform": behaviour, "image-platforms": behaviour, "no-open": behaviour,
		"now": behaviour, "observe": behaviour, "overwrite": behaviour, "platform": behaviour, "port": behaviour, "quiet": behaviour, "read-annotations": behaviour,
		"read-only": behaviour, "reason": behaviour, "reference-grace": behaviour, "require-reference": behaviour, "timeout": behaviour,
		"version": behaviour, "wait": behaviour, "watch": behaviour,
	}
}

// hasVariable reports whether a flag of the command has an environment variable.
func hasVariable(command, flag string) bool {
	return command == controllerName || userFlags()[flag].hasVariable()
}

// setFromEnvironment sets every unset flag of the command that has an environment variable.
func setFromEnvironment(command string, flags *pflag.FlagSet, env Environment) error {
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !hasVariable(command, f.Name) {
			return
		}
		name := commandline.Variable(f.Name)
		value, set := env.Lookup(name)
		if !set {
			return
		}
		if slices.ContainsFunc(f.Annotations[sameSetting], flags.Changed) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			wrong = append(wrong, fmt.Errorf("environment variable %s=%q: %w", name, value, err))
		}
	})
	if len(wrong) > 0 {
		return usageError{errors.Join(wrong...)}
	}
	return nil
}

// reportVariables warns about environment variables that a user may expect to work and that don't: the command has the
// flag but doesn't read its variable, or no command reads it. It doesn't print their values. One environment may serve
// several commands, so a variable of another command isn't reported. The arguments may be wrong, and aren't parsed yet.
func reportVariables(cmd *cobra.Command, args []string, env Environment) {
	if env.Environ == nil || len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return
	}
	var read, own []string
	unread := map[string]*pflag.Flag{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := commandline.Variable(f.Name)
		if hasVariable(cmd.Name(), f.Name) {
			read, own = append(read, f.Name), append(own, name)
		} else {
			unread[name] = f
		}
	})
	all := readVariables(cmd.Root())
	for _, name := range commandline.UnknownVariables(env.Environ(), read) {
		flag, has := unread[name]
		switch {
		case has && !isTyped(cmd.Flags(), flag, args):
			_, _ = fmt.Fprintln(env.Stderr, commandline.NotRead(name, cmp.Or(presentName(flag), flag.Name)))
		case has || slices.Contains(all, name):
		case flagOf(name) != "":
			_, _ = fmt.Fprintf(env.Stderr, "Warning: environment variable %s is not read: --%s has no variable\n", name, flagOf(name))
		default:
			hint := commandline.Hint(name, "", own)
			if others := commandline.Hint(name, "", all); hint == "" && others != "" {
				hint = others + " This command doesn't read it"
			}
			_, _ = fmt.Fprintf(env.Stderr, "Warning: environment variable %s is not known%s\n", name, hint)
		}
	}
}

// flagOf is the flag of some command for users to which a variable belongs by its name, empty when there is none.
func flagOf(variable string) string {
	for name := range userFlags() {
		if commandline.Variable(name) == variable {
			return name
		}
	}
	return ""
}

// isTyped reports whether the arguments set the flag.
func isTyped(flags *pflag.FlagSet, f *pflag.Flag, args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--"+f.Name || isAmongShort(flags, f, arg)
	})
}

// isAmongShort reports whether an argument combines the flag with other short ones, such as the n in -An. What follows a
// flag that takes a value is the value.
func isAmongShort(flags *pflag.FlagSet, f *pflag.Flag, arg string) bool {
	letters, is := strings.CutPrefix(arg, "-")
	for ; is && letters != "" && letters[0] != '-'; letters = letters[1:] {
		switch other := flags.ShorthandLookup(letters[:1]); {
		case other == f:
			return true
		case other == nil || other.NoOptDefVal == "":
			return false
		}
	}
	return false
}

// reportToDropIn warns about Lockstep's variables: a replaced program has its own.
func reportToDropIn(env Environment) {
	if env.Environ == nil {
		return
	}
	for _, name := range commandline.UnknownVariables(env.Environ(), nil) {
		_, _ = fmt.Fprintf(env.Stderr, "Warning: environment variable %s is not read: a drop-in reads the variables of the program that it replaces\n", name)
	}
}

// readVariables are the variables that some command reads.
func readVariables(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if hasVariable(cmd.Name(), f.Name) {
				names = append(names, commandline.Variable(f.Name))
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// presentName is the present name of a setting that has several flags, empty for others.
func presentName(f *pflag.Flag) string {
	if names := f.Annotations[sameSetting]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// FlagVariable is a flag, with what its variable sets.
type FlagVariable struct {
	Flag string
	// Variable is empty if no command for users reads one.
	Variable string
	// Sets is what the flag sets.
	Sets string
	// Commands are the commands for users that show the flag in their help.
	Commands []string
}

// FlagVariables are the flags of all commands for users, in the order of their names.
func FlagVariables() []FlagVariable {
	found := map[string]FlagVariable{}
	for _, cmd := range usersCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			v, sets := found[f.Name], userFlags()[f.Name]
			v.Flag, v.Sets, v.Commands = f.Name, string(sets), append(v.Commands, cmd.Name())
			if sets.hasVariable() {
				v.Variable = commandline.Variable(f.Name)
			}
			found[f.Name] = v
		})
	}
	return slices.SortedFunc(maps.Values(found), func(a, b FlagVariable) int { return cmp.Compare(a.Flag, b.Flag) })
}

// usersCommands are all commands but the controller.
func usersCommands() []*cobra.Command {
	return slices.DeleteFunc(Document().Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == controllerName })
}
