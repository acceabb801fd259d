package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// up starts a control plane that stays. Only the export line goes to the standard output, so
// a shell can evaluate it.
func up(ctx context.Context, args []string, std streams) error {
	options, rest, err := parse(args, std)
	if err != nil {
		return err
	}
	if err := nothingMore(rest); err != nil {
		return err
	}
	running, err := detached()
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return alreadyUp(running[0], options, std)
	}
	ctx, cancel := interruptible(ctx)
	defer cancel()
	options.Detached = true
	cluster, err := labtest.Start(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.err, "Kubernetes %s is up at %s; end it with: %s\n", cluster.Version(), cluster.Server(), downOf(cluster.Kubeconfig()))
	fmt.Fprintf(std.out, "export KUBECONFIG=%s\n", cluster.Kubeconfig())
	return nil
}

// downOf is the command that ends a control plane. It has to use the cache that the control
// plane was started in.
func downOf(kubeconfig string) string {
	command := "go run ./lab down " + kubeconfig
	if cache := os.Getenv(program.CacheEnv); cache != "" {
		command = program.CacheEnv + "=" + cache + " " + command
	}
	return command
}

// alreadyUp accepts a running control plane that satisfies the options.
func alreadyUp(run *labtest.Run, options labtest.Options, std streams) error {
	if !run.Satisfies(options) {
		return fmt.Errorf("%s is up already, without what was asked for; use it (export KUBECONFIG=%s), or end it, if it is yours, with: %s", run, run.Kubeconfig(), downOf(run.Kubeconfig()))
	}
	fmt.Fprintf(std.err, "already up: %s; end it, if it is yours, with: %s\n", run, downOf(run.Kubeconfig()))
	fmt.Fprintf(std.out, "export KUBECONFIG=%s\n", run.Kubeconfig())
	return nil
}

// down ends all control planes that "lab up" started, or those whose kubeconfigs are
// arguments.
func down(args []string, std streams) error {
	flags := newFlags()
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	args = flags.Args()
	running, err := detached()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if running, err = chosen(running, args); err != nil {
			return err
		}
	}
	if len(running) == 0 {
		fmt.Fprintln(std.err, "nothing is up")
	}
	for _, run := range running {
		if err := run.End(); err != nil {
			return fmt.Errorf("end %s: %w", run, err)
		}
		fmt.Fprintf(std.err, "ended %s\n", run)
	}
	return nil
}

func chosen(running []*labtest.Run, kubeconfigs []string) ([]*labtest.Run, error) {
	var list []*labtest.Run
	for _, kubeconfig := range kubeconfigs {
		i := slices.IndexFunc(running, func(r *labtest.Run) bool { return r.Kubeconfig() == kubeconfig })
		if i < 0 {
			return nil, usagef("no control plane has the kubeconfig %q; \"lab status\" shows them", kubeconfig)
		}
		list = append(list, running[i])
	}
	return list, nil
}

// detached lists the control planes that "lab up" started.
func detached() ([]*labtest.Run, error) {
	runs, err := labtest.Runs()
	var list []*labtest.Run
	for _, run := range runs {
		if run.Detached {
			list = append(list, run)
		}
	}
	return list, err
}

func status(args []string, std streams) error {
	if err := noArguments(args); err != nil {
		return err
	}
	runs, err := labtest.Runs()
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		fmt.Fprintln(std.out, "nothing runs; start a control plane with: go run ./lab up")
	}
	for _, run := range runs {
		if err := show(run, std); err != nil {
			return err
		}
	}
	return nil
}

func show(run *labtest.Run, std streams) error {
	fmt.Fprintf(std.out, "%s, %s, since %s\n", run, ownership(run), time.Since(run.Began).Round(time.Second))
	fmt.Fprintf(std.out, "export KUBECONFIG=%s\n", run.Kubeconfig())
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  PROGRAM\tVERSION\tPID\tSTATE\tLOG")
	for _, p := range run.Processes {
		state := "running"
		if !p.Alive() {
			state = "ended"
		}
		fmt.Fprintf(table, "  %s\t%s\t%d\t%s\t%s\n", p.Name, p.Version, p.PID, state, filepath.Join(run.Dir, p.Name+".log"))
	}
	return table.Flush()
}

func ownership(run *labtest.Run) string {
	if run.Detached {
		return `up until "lab down"`
	}
	return fmt.Sprintf("up as long as process %d", run.Owner.PID)
}

func build(ctx context.Context, args []string, std streams) error {
	flags := newFlags()
	tier := flags.String("tier", "", "")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	names := flags.Args()
	switch {
	case *tier != "":
		t, err := labtest.ParseTier(*tier)
		if err != nil {
			return usageError{err}
		}
		names = append(names, labtest.TierPrograms(t)...)
	case len(names) == 0:
		names = labtest.Options{With: labtest.Components()}.Programs()
	}
	for _, name := range names {
		if _, err := program.Find(name); err != nil {
			return usageError{err}
		}
	}
	ctx, cancel := interruptible(ctx)
	defer cancel()
	builder, err := program.NewBuilder(std.err)
	if err != nil {
		return err
	}
	built, err := builder.Build(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(std.out, built[name].Path)
	}
	return nil
}

// packages installs the Debian packages that the tests of a tier need.
func packages(ctx context.Context, args []string, std streams) error {
	flags := newFlags()
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	if len(flags.Args()) != 1 {
		return usagef("packages needs the tier of tests: test, all or release")
	}
	tier, err := labtest.ParseTier(flags.Arg(0))
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := interruptible(ctx)
	defer cancel()
	return labtest.Install(ctx, tier, std.err)
}

// execute runs a command against its own control plane and returns the command's exit code.
func execute(ctx context.Context, args []string, std streams) (code int, err error) {
	options, command, err := parse(args, std)
	if err != nil {
		return 0, err
	}
	if len(command) == 0 {
		return 0, usagef("exec needs a command after --")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", command[0], err)
	}
	cluster, err := startForCommand(ctx, options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	return runCommand(process.Spec{
		Path: path, Args: command[1:], Foreground: true,
		Env:   append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), labtest.Env+"="+cluster.Dir(), remains.Mark(cluster.Dir())),
		Stdin: std.in, Stdout: std.out, Stderr: std.err,
	})
}

func startForCommand(ctx context.Context, options labtest.Options) (*labtest.Cluster, error) {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	return labtest.Start(ctx, options)
}

// runCommand waits for the command even when a signal arrives: the command must end first,
// because it uses the control plane. A terminal sends Ctrl-C to the command too; other
// signals are passed on.
func runCommand(spec process.Spec) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	p, err := process.Start(spec)
	if err != nil {
		return 0, err
	}
	for {
		select {
		case <-p.Done():
			return p.ExitCode(), nil
		case received := <-signals:
			if received == os.Interrupt {
				continue
			}
			if err := p.Signal(received.(syscall.Signal)); err != nil {
				return 0, errors.Join(err, p.Kill())
			}
		}
	}
}
