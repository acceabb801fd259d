package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, &usageError{}):
		fmt.Fprintln(os.Stderr, "reload:", err)
		os.Exit(exitUsage)
	case err != nil:
		fmt.Fprintln(os.Stderr, "reload:", err)
		os.Exit(exitFailure)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if len(o.compare) > 0 {
		return compareFiles(os.Stdout, o.compare)
	}
	if o.medians != "" {
		return printMedians(os.Stdout, o.medians)
	}
	o, cleanUp, err := o.withPrograms(ctx)
	if err != nil {
		return err
	}
	defer cleanUp()
	return measureAll(ctx, o)
}

// measureAll runs every scenario with every program, one after the other, and writes the
// report after each, so an interrupted run leaves its results so far.
func measureAll(ctx context.Context, o options) error {
	r := newReport(o)
	for _, s := range o.scenarios {
		for _, c := range slices.Repeat(o.contenders, o.repeat) {
			if s.flags != "" && !strings.Contains(c.line, "{flags}") {
				say("%s, %s: skipped, its command line has no {flags}", s.name, c.name)
				continue
			}
			say("%s, %s: begins", s.name, c.name)
			result, err := measure(ctx, o, s, c)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, c.name, err)
			}
			result = r.add(result)
			say("%s, %s: %s", s.name, c.name, result.summary())
			if err := r.write(o.out); err != nil {
				return err
			}
		}
	}
	r.print(os.Stdout)
	if o.out != "" {
		say("written to %s", o.out)
	}
	return r.faults()
}

// say reports the progress of the run.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
