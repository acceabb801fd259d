// Package cli is the command line of the in-pod agent: flags, environment,
// exit codes. It links nothing of the controller.
package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/agent/dropin/configcontroller"
	"github.com/lockstep-dev/lockstep/internal/agent/dropin/configmapreload"
	"github.com/lockstep-dev/lockstep/internal/agent/dropin/k8ssidecar"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/run"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// Env is the process environment: arguments, variables and streams.
type Env struct {
	// Args are the arguments, starting with the program's name.
	Args   []string
	Lookup func(name string) (string, bool)
	// Environ lists the environment, to report unknown variables; nil reports none.
	Environ        func() []string
	Stdout, Stderr io.Writer
	Now            func() time.Time
	Version        string
}

// programName is the program's name in its messages.
const programName = "lockstep-sync"

// The exit codes in addition to the application's own.
const (
	exitOK    = commandline.ExitOK
	exitError = commandline.ExitFailed
	exitUsage = commandline.ExitUsage
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// Unwrap returns the mistake itself.
func (u usageError) Unwrap() error { return u.error }

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, env Env) int {
	env.Stdout, env.Stderr = commandline.NewScreen(env.Stdout), commandline.NewScreen(env.Stderr)
	command, err := dispatch(ctx, env)
	var exit *podsync.ExitError
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage):
		fmt.Fprintln(env.Stderr, "Error:", err)
		if flag, isFlag := errors.AsType[commandline.WrongFlagError](err); isFlag {
			fmt.Fprintln(env.Stderr, "Usage:", flag.Usage)
		}
		fmt.Fprintf(env.Stderr, "Run %q for usage.\n", command+" --help")
		return exitUsage
	default:
		fmt.Fprintln(env.Stderr, "Error:", err)
		return exitError
	}
}

// predecessor is another program whose command line the agent accepts.
type predecessor struct {
	short string
	parse func(args []string, lookup func(string) (string, bool)) (run.Config, error)
	usage func() string
	// advice is what its user can do, because not every native flag exists there.
	advice advice
}

func predecessors() map[string]predecessor {
	byFlag, byVariable := advice{kubeconfig: "use --kubeconfig"}, advice{kubeconfig: "set KUBECONFIG"}
	return map[string]predecessor{
		configcontroller.Name:      {configcontroller.Short, configcontroller.Parse, configcontroller.Usage, byFlag},
		configcontroller.ImageName: {configcontroller.ImageShort, configcontroller.ParseImage, configcontroller.Usage, byFlag},
		configmapreload.Name:       {configmapreload.Short, configmapreload.Parse, configmapreload.Usage, advice{}},
		k8ssidecar.Name:            {k8ssidecar.Short, k8ssidecar.Parse, k8ssidecar.Usage, byVariable},
	}
}

// predecessorTable lists one predecessor per line.
func predecessorTable() string {
	var text strings.Builder
	for _, name := range predecessorNames() {
		fmt.Fprintf(&text, "    %-24s %s\n", name, predecessors()[name].short)
	}
	return text.String()
}

func predecessorNames() []string { return slices.Sorted(maps.Keys(predecessors())) }

// explain parses the predecessor's command line and describes what the agent would do.
func (p predecessor) explain(env Env, args []string) error {
	config, err := p.parse(args, env.Lookup)
	if asksForHelp(err) {
		return p.help(env)
	}
	if err != nil {
		return usageError{err}
	}
	return explain(env, config)
}

// run parses the predecessor's command line and runs the agent.
func (p predecessor) run(ctx context.Context, env Env, args []string) error {
	config, err := p.parse(args, env.Lookup)
	if asksForHelp(err) {
		return p.help(env)
	}
	if err != nil {
		return usageError{err}
	}
	log := logOptions{format: cmp.Or(config.Log.Format, "text"), level: config.Log.Level, utc: config.Log.UTC}
	return p.advice.addTo(runAgent(ctx, env, config, log))
}

func asksForHelp(err error) bool {
	return errors.Is(err, flag.ErrHelp) || errors.Is(err, pflag.ErrHelp)
}

func (p predecessor) help(env Env) error {
	_, err := fmt.Fprint(env.Stdout, p.usage())
	return err
}

// advice is a hint, in terms of the command line, for an error from a lower layer.
type advice struct{ missing, kubeconfig string }

func (a advice) addTo(err error) error {
	_, refused := errors.AsType[*podsync.CheckError](err)
	_, missing := errors.AsType[*podsync.MissingError](err)
	switch {
	case refused:
		return fmt.Errorf("the check refused the first set: %w; to see its output, run \"lockstep-sync status --root=…\"", err)
	case missing && a.missing != "":
		return fmt.Errorf("%w, %s", err, a.missing)
	case errors.Is(err, rest.ErrNotInCluster) && a.kubeconfig != "":
		return fmt.Errorf("%w: outside a cluster %s", err, a.kubeconfig)
	}
	return err
}

// dispatch checks the name the program was started with, then the first argument, so both
// links in an image and plain arguments work; then the flags, for a program that was copied
// to another name. It returns the name of the command that was run.
func dispatch(ctx context.Context, env Env) (command string, err error) {
	name, args := filepath.Base(env.Args[0]), env.Args[1:]
	original, replaces := predecessors()[name]
	if replaces {
		return name, original.run(ctx, env, args)
	}
	if len(args) > 0 {
		if original, replaces = predecessors()[args[0]]; replaces {
			return programName + " " + args[0], original.run(ctx, env, args[1:])
		}
	}
	if len(args) > 1 && args[0] == "explain" {
		if original, replaces = predecessors()[args[1]]; replaces {
			return programName + " " + args[1], original.explain(env, args[2:])
		}
	}
	if name != programName && configcontroller.Recognizes(args) {
		return name + " " + configcontroller.Name, predecessors()[configcontroller.Name].run(ctx, env, args)
	}
	return native(ctx, env, args)
}

func native(ctx context.Context, env Env, args []string) (command string, err error) {
	root := newRootCommand(env)
	root.SetArgs(args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	found, err := root.ExecuteContextC(ctx)
	return found.CommandPath(), err
}

// Document is the whole command line, for documentation.
func Document() *cobra.Command {
	return newRootCommand(Env{Stdout: io.Discard, Stderr: io.Discard, Lookup: func(string) (string, bool) { return "", false }, Version: "dev"})
}

func newRootCommand(env Env) *cobra.Command {
	f := newFlags()
	cmd := &cobra.Command{
		Use:   "lockstep-sync [flags] [-- COMMAND ARGS…]",
		Short: "Keep a pod's files in step with ConfigMaps and Secrets, and the application in step with the files",
		Long: "Keeps a directory in sync with ConfigMaps, Secrets or a mounted directory. The agent stages and checks each change,\n" +
			"publishes it in one step, notifies the application and queries it. With a command after --, the agent is its parent process.\n\n" +
			"It can replace another program, with that program's command line and variables: start it under the program's name,\n" +
			"or as \"lockstep-sync NAME\", which lists them with --help:\n\n" + strings.TrimSuffix(predecessorTable(), "\n"),
		SilenceErrors: true, SilenceUsage: true,
		Args: checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.version {
				_, err := fmt.Fprint(env.Stdout, commandline.Version(programName, env.Version))
				return err
			}
			if f.helpAll {
				return printHelp(env.Stdout, cmd, true)
			}
			return runNative(cmd, env, f, args)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{commandline.CommandError(cmd, err, predecessorNames())}
	})
	f.bind(cmd.Flags())
	cmd.InitDefaultHelpFlag()
	// Cobra's own version flag links its templates and everything they may call: 3 MB.
	cmd.Flags().BoolVarP(&f.version, "version", "v", false, "version for "+programName)
	standardHelp := cmd.HelpFunc()
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newExplainCommand(env), newStatusCommand(env), newInstallCommand(env), newVersionCommand(env))
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c != cmd {
			standardHelp(c, args)
			return
		}
		_ = printHelp(env.Stdout, c, false) // there is nowhere else to report it
	})
	return cmd
}

func checkArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 && len(args) > 0:
		return usageError{fmt.Errorf("%w; the application's command comes after --", commandline.UnknownCommand(cmd.Root(), args[0], predecessorNames()))}
	case dash == 0 && len(args) == 0:
		return usageError{errors.New("there is no command after --: add one, or omit -- for sidecar mode")}
	case dash > 0:
		return usageError{fmt.Errorf("unexpected argument %q before --", args[0])}
	}
	return nil
}

func runNative(cmd *cobra.Command, env Env, f *flags, args []string) error {
	if f.install != "" {
		return install(env, f.install)
	}
	reportVariables(env, cmd.Flags())
	config, err := f.config(args, env.Lookup)
	if err != nil {
		return usageError{err}
	}
	native := advice{missing: "or use --wait-for-sources to wait for it", kubeconfig: "use --kubeconfig or set KUBECONFIG"}
	return native.addTo(runAgent(cmd.Context(), env, config, f.log))
}

// reportVariables warns about variables that look like this program's flags. lockstep reads
// its flags from the environment; this program doesn't. Other variables may belong to
// lockstep.
func reportVariables(env Env, flags *pflag.FlagSet) {
	if env.Environ == nil {
		return
	}
	unknown := commandline.UnknownVariables(env.Environ(), nil)
	flags.VisitAll(func(f *pflag.Flag) {
		if variable := commandline.Variable(f.Name); slices.Contains(unknown, variable) {
			fmt.Fprintln(env.Stderr, commandline.NotRead(variable, f.Name))
		}
	})
}

// runAgent validates before it changes anything, so a mistake costs one line and not a crash
// half-way.
func runAgent(ctx context.Context, env Env, config run.Config, options logOptions) error {
	if err := config.Validate(); err != nil {
		return usageError{oneLine(err)}
	}
	log, err := options.logger(env.Stderr)
	if err != nil {
		return usageError{err}
	}
	log.Info("lockstep-sync starts", append([]any{"version", env.Version}, config.Summary()...)...)
	// A small heap in every pod is worth more than rare collections.
	debug.SetGCPercent(30)
	if len(config.Child.Args) == 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT)
		defer stop()
	}
	return run.Run(ctx, config, log, env.Now)
}

// oneLine joins several mistakes into one line.
func oneLine(err error) error {
	lines := strings.Split(err.Error(), "\n")
	return errors.New(strings.Join(slices.Compact(lines), "; "))
}

// logOptions configure the log format.
type logOptions struct {
	format string
	level  slog.Level
	utc    bool
}

func (o logOptions) logger(w io.Writer) (*slog.Logger, error) {
	w = commandline.Raw(w) // The handlers escape what they log.
	options := &slog.HandlerOptions{Level: o.level}
	if o.utc {
		options.ReplaceAttr = inUTC
	}
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(commandline.JSON(w), options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", o.format)
}

func inUTC(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
