// Package cli knows the commands: their flags, exit codes and output. It doesn't assemble the
// parts or make decisions.
package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// programName is the program's name in its output.
const programName = "lockstep"

// Exit codes of every command.
const (
	exitOK     = commandline.ExitOK
	exitFailed = commandline.ExitFailed
	exitUsage  = commandline.ExitUsage
	// exitWouldRoll is that of "plan --exit-code" only.
	exitWouldRoll = 3
)

// Environment is a command's view of its process.
type Environment = run.Environment

// usageError is a mistake that only the caller can correct: a flag, a file, a name.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// clusterError is a cluster that cannot be found. It contains the advice itself, so the usage
// isn't printed.
type clusterError struct{ error }

func (e clusterError) Unwrap() error { return e.error }

// Run runs one command line and returns the exit code: 0 done, 1 failed, 2 used wrongly, 3 something
// would roll.
func Run(ctx context.Context, args []string, env Environment) int {
	env.Stdout, env.Stderr = commandline.NewScreen(env.Stdout), commandline.NewScreen(env.Stderr)
	if dropIn, rest := asDropIn(args, env); dropIn != nil {
		reportToDropIn(env)
		return dropIn(ctx, rest, env)
	}
	root := newRoot(env)
	root.SetArgs(args)
	if command, _, err := root.Find(args); err == nil && command.HasParent() { // the program itself only says what it is
		reportVariables(command, args, env)
	}
	command, err := execute(ctx, root, args)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errWouldRoll) {
		return exitWouldRoll
	}
	_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		if flag, isFlag := errors.AsType[commandline.WrongFlagError](err); isFlag {
			_, _ = fmt.Fprintln(env.Stderr, "Usage:", flag.Usage)
		}
		_, _ = fmt.Fprintf(env.Stderr, "Run %q for usage.\n", command.CommandPath()+" --help")
		return exitUsage
	}
	if _, missing := errors.AsType[clusterError](err); missing {
		return exitUsage
	}
	return exitFailed
}

// execute runs the command of the arguments, and returns it.
func execute(ctx context.Context, root *cobra.Command, args []string) (*cobra.Command, error) {
	if word := commandline.Misplaced(root, args); word != "" {
		return root, usageError{commandline.UnknownCommand(root, word, DropIns())}
	}
	command, err := root.ExecuteContextC(ctx)
	if command.Name() == helpName { // A mistake there is about the commands of the program.
		command = root
	}
	return command, err
}

func newRoot(env Environment) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   programName + " COMMAND",
		Short: "Keep Kubernetes workloads in step with their configuration",
		Long: `Lockstep keeps Kubernetes workloads in step with the configuration they run on.

Changing a ConfigMap or Secret doesn't restart pods. Annotate a workload with

    lockstep.dev/reload: auto

and "lockstep controller" rolls it out when a ConfigMap or Secret that it uses changes. Several
changes cause one rollout, and changes made while the controller was down are delivered too. To
see why a workload was rolled out, or why not, run

    lockstep explain deployment/web

As a drop-in replacement, Lockstep accepts the command line of these programs. Name the
executable after the program, or run "lockstep NAME":

` + dropInTable() + `
Environment variables set all flags of "lockstep controller": --max-delay is
LOCKSTEP_MAX_DELAY. In the other commands, they set only the flags for the
connection and the output, such as LOCKSTEP_CONTEXT and LOCKSTEP_OUTPUT, and
never what is selected or done. A flag takes precedence.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return nil
			}
			return setFromEnvironment(cmd.Name(), cmd.Flags(), env)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return printVersion(env)
			}
			if len(args) > 0 {
				return usageError{commandline.UnknownCommand(cmd, args[0], DropIns())}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.AddCommand(
		newController(env), newStatus(env), newExplain(env), newPlan(env), newHistory(env), newHold(env), newRelease(env), newStop(env), newResume(env),
		newRoll(env), newUI(env), newAttach(env), newImages(env), newResolve(env), newLint(env), newConvert(env), newDoctor(env), newNotify(env), newCompletion(env), newVersion(env),
	)
	addCompletion(root, env)
	root.SetHelpCommand(newHelp(env))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{commandline.CommandError(cmd, err, DropIns())}
	})
	asPlugin(root, env.Program)
	// cobra's own version flag needs a template to print this text, and templates make the program 11 MB larger.
	root.Flags().BoolVarP(&version, "version", "v", false, "version for "+root.DisplayName())
	return root
}

// noArguments refuses arguments that a command would otherwise silently ignore.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}
