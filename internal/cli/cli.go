// Package cli knows the command line: flags, environment, exit codes and what is
// printed. It joins the parts and decides nothing else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Environment is what a command sees of its process.
type Environment struct {
	Stdout, Stderr io.Writer
	// Lookup finds an environment variable.
	Lookup func(string) (string, bool)
	// Program is the name under which the process was started.
	Program string
	// Version of the build.
	Version string
	// LogLibraries hands the logger to the libraries. They keep it in variables of
	// the process that nothing guards, so only a program's start may do it; nil
	// leaves them as they are.
	LogLibraries func(logr.Logger)
	// Now is the clock.
	Now func() time.Time
}

func (e Environment) logLibraries(log logr.Logger) {
	if e.LogLibraries != nil {
		e.LogLibraries(log)
	}
}

// usageError is a mistake that only the caller can mend: a flag, a file, a name.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// clusterError is a cluster that cannot be found. It says itself what to do, so
// no usage is offered.
type clusterError struct{ error }

func (e clusterError) Unwrap() error { return e.error }

// Run runs one command line and returns the exit code: 0 done, 1 failed, 2 used
// wrongly.
func Run(ctx context.Context, args []string, env Environment) int {
	if run, rest := asDropIn(args, env); run != nil {
		return run(ctx, rest, env)
	}
	root := newRoot(env)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		_, _ = fmt.Fprintf(env.Stderr, "Run %q for usage.\n", command.CommandPath()+" --help")
		return exitUsage
	}
	if _, missing := errors.AsType[clusterError](err); missing {
		return exitUsage
	}
	return exitFailed
}

func newRoot(env Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "lockstep",
		Short: "Keep Kubernetes workloads in step with their configuration",
		Long: `Lockstep keeps Kubernetes workloads in step with the configuration they run on.

A changed ConfigMap or Secret restarts no pod by itself. Annotate a workload with

    lockstep.dev/reload: auto

and "lockstep controller" rolls it when what it uses changes: once for a set of
changes, never for nothing, and also for what changed while it was down.

It can take the place of other programs, with their command lines, as "lockstep NAME"
or as an executable of that name: kubernetes-reloader, configmap-attacher,
kube-image-deployer, kube-image-deployer-cli.

Every flag can be set by an environment variable: --max-delay is
LOCKSTEP_MAX_DELAY. The flag wins.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return setFromEnvironment(cmd.Flags(), env)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newController(env), newAttach(env), newRoll(env), newRelease(env), newImages(env), newResolve(env), newVersion(env))
	root.AddCommand(newHistory(env), newPlan(env))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
		return usageError{err}
	})
	return root
}

// setFromEnvironment gives every flag that was not set its variable's value.
func setFromEnvironment(flags *pflag.FlagSet, env Environment) error {
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variableName(f.Name)
		value, set := env.Lookup(name)
		if f.Changed || !set {
			return
		}
		if f.Deprecated != "" {
			_, _ = fmt.Fprintf(env.Stderr, "Environment variable %s has been deprecated, %s\n", name, f.Deprecated)
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

func variableName(flag string) string {
	return "LOCKSTEP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// noArguments refuses what a command would otherwise silently ignore.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}
