// Command lab starts and ends real Kubernetes control planes on this machine, for users and
// for the Makefile. The work is done in internal/labtest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

const usage = `A real Kubernetes control plane on this machine, built from source.

Usage:
  lab up     [FLAGS]                          start one and leave it running
  lab status                                  what runs, where, which versions
  lab down   [KUBECONFIG…]                    end what "lab up" started, from any clone of this
                                              user, or only those with these kubeconfigs
  lab exec   [FLAGS] -- COMMAND [ARGUMENT…]   start one, run COMMAND against it, end it
  lab build  [--tier TIER] [PROGRAM…]         build programs without starting them
  lab packages TIER                           install the Debian packages that the tests of a
                                              tier need: test (none), all or release
  lab demo                                    say how long "make demo" takes to begin here, and
                                              build what its first chapter needs

Flags:
  --kubernetes 1.36|1.34   the release (1.36)
  --node real|fake         a node for pods: "real" is kubelet, containerd and runc in
                           namespaces of their own (root on Linux), "fake" is the same
                           as --with kwok
  --with LIST              what runs beside it, see below

The control plane is etcd, kube-apiserver and kube-controller-manager. LIST adds to it:
  kwok             a fake node on which pods become ready, and kube-scheduler
  argo-rollouts    the Rollout kind and its controller
  registry         a registry of images; a real node knows it as registry.lab
  registry-tls     another one, with TLS and credentials
  node             a real node, and kube-scheduler; the same as --node real

Programs are built once, from Go modules only, and kept in the user's cache directory
(LOCKSTEP_LAB_CACHE moves it). The first build of a bare control plane took seven minutes
on two cores. A real node needs Debian packages: "lab packages all" installs them.

Examples:
  eval "$(go run ./lab up --node real)"      then use any client: KUBECONFIG is set
  go run ./lab exec -- go test ./...         tests share the control plane of "exec"
  go run ./lab build helm                    a program for chart tests

"lab exec" sets KUBECONFIG and LOCKSTEP_LAB for COMMAND and passes on its exit code.
`

const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// streams are the standard streams of the command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	std := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(run(context.Background(), os.Args[1:], std))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	code, err := dispatch(ctx, args, std)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(std.out, usage)
		return 0
	case errors.As(err, &usageError{}):
		fmt.Fprintf(std.err, "lab: %v\n\n%s", err, usage)
		return exitUsage
	case err != nil:
		fmt.Fprintf(std.err, "lab: %v\n", err)
		return exitFailure
	}
	return code
}

func dispatch(ctx context.Context, args []string, std streams) (code int, err error) {
	if len(args) == 0 {
		return 0, usagef("no command given")
	}
	name, args := args[0], args[1:]
	switch name {
	case "up":
		return 0, up(ctx, args, std)
	case "down":
		return 0, down(args, std)
	case "status":
		return 0, status(args, std)
	case "demo":
		return 0, demo(ctx, args, std)
	case "packages":
		return 0, packages(ctx, args, std)
	case "build":
		return 0, build(ctx, args, std)
	case "exec":
		return execute(ctx, args, std)
	case "help", "-h", "-help", "--help":
		return 0, flag.ErrHelp
	}
	return 0, usagef("unknown command %q", name)
}

// interruptible returns a context that ends with Ctrl-C or a termination signal.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// parse parses the flags that describe a control plane, and returns the arguments after
// them.
func parse(args []string, std streams) (labtest.Options, []string, error) {
	options := labtest.Options{Progress: std.err}
	flags := newFlags()
	flags.StringVar(&options.Kubernetes, "kubernetes", program.DefaultKubernetes, "")
	flags.Func("with", "", func(text string) error {
		components, err := labtest.ParseComponents(text)
		options.With = append(options.With, components...)
		return err
	})
	flags.Func("node", "", func(text string) error {
		component, ok := map[string]labtest.Component{"real": labtest.Node, "fake": labtest.KWOK}[text]
		if !ok {
			return fmt.Errorf("%q is no node; there are real and fake", text)
		}
		options.With = append(options.With, component)
		return nil
	})
	if err := parseFlags(flags, args); err != nil {
		return options, nil, err
	}
	if _, err := program.Find(program.ForKubernetes(program.APIServer, options.Kubernetes)); err != nil {
		return options, nil, usagef("Kubernetes %q is not in the lab; 1.36 and 1.34 are", options.Kubernetes)
	}
	if err := options.Check(); err != nil {
		return options, nil, usageError{err}
	}
	return options, flags.Args(), nil
}

func newFlags() *flag.FlagSet {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the usage of all commands instead.
	return flags
}

func parseFlags(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{err}
}

// noArguments is for commands without arguments.
func noArguments(args []string) error {
	flags := newFlags()
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	return nothingMore(flags.Args())
}

func nothingMore(args []string) error {
	if len(args) > 0 {
		return usagef("unexpected %q", strings.Join(args, " "))
	}
	return nil
}
