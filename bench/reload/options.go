package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const usage = `Measure reloaders on a real control plane of their own.

Usage:
  reload [flags]                     measure Lockstep as it is in this checkout
  reload --command LINE [--command LINE …] [flags]
                                     measure other programs, or several side by side
  reload --compare A.json B.json     how far two runs are apart
  reload --medians A.json            the first program against the others, over the runs of --repeat

A LINE is a shell command, such as
  'v1=./reloader --kubeconfig {kubeconfig}'
The text before "=" names it in the report. Before it is run these are replaced:
  {kubeconfig}              a kubeconfig of the program's own user, with every permission
  {server} {token} {ca}     what is in it
  {namespace}               the namespace in which everything happens
  {port}                    a free port
  {lockstep}                the Lockstep of this checkout, built
  {flags}                   Lockstep's flags for the scenario, such as --images; a scenario that
                            needs some is skipped without it

Flags:
`

// lockstepLine is measured by default. Leader election is off because its renewals aren't a
// cost of a change; no port is open.
//
// Nothing holds a change back: pods stay pending in nearly all scenarios, so no rollout ends, and many sources change without a pause. The
// scenario ramp overrides it.
const lockstepLine = "lockstep={lockstep} controller --kubeconfig {kubeconfig} --leader-elect=false --metrics-addr 0 --probe-addr 0 " +
	"--ramp=false --max-rolling=0 --damping=0 {flags}"

// usageError is a mistake in the command line.
type usageError struct{ error }

type options struct {
	contenders []contender
	scenarios  []scenario
	kubernetes string
	streams    bool
	out        string
	duration   time.Duration
	patience   time.Duration
	replicas   int
	sizes      sizes
	compare    []string
	medians    string
	repeat     int
	args       []string
}

// sizes are the numbers of objects.
type sizes struct {
	fanOut    []int
	objects   int
	bytes     []int
	workloads int
	// ramp is how many workloads the change of the scenario ramp reaches.
	ramp int
	// greedy is the size of the greedy tenant, in percent.
	greedy int
}

// share is the number of objects that the greedy tenant has of n.
func (s sizes) share(n int) int { return (n*s.greedy + 99) / 100 }

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{args: args}
	fs := flag.NewFlagSet("reload", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	var lines []string
	fs.Func("command", "command line of a program to measure; may be repeated (default Lockstep)", func(line string) error {
		lines = append(lines, line)
		return nil
	})
	names := fs.String("scenario", "all", "scenarios, separated by commas; "+scenarioNames())
	compare := fs.Bool("compare", false, "compare two files instead of measuring")
	medians := fs.Bool("medians", false, "compare the programs of one file instead of measuring")
	fs.IntVar(&o.repeat, "repeat", 1, "how often each scenario is measured, the programs in turn")
	fs.StringVar(&o.kubernetes, "kubernetes", "1.36", "release of the control plane, 1.36 or 1.34")
	fs.BoolVar(&o.streams, "streams", true, "let the API server stream lists; false measures the path of servers that cannot")
	fs.StringVar(&o.out, "out", "", "file for the report as JSON")
	fs.DurationVar(&o.duration, "duration", 30*time.Second, "how long each load lasts")
	fs.DurationVar(&o.patience, "patience", 2*time.Minute, "how long to wait after the load until every workload is in step")
	fs.IntVar(&o.replicas, "replicas", 1, "replicas of each workload; the pods stay pending, except in the scenario ramp")
	fs.IntVar(&o.sizes.objects, "objects", 35000, "ConfigMaps and Secrets of the scenario big, half and half")
	fs.IntVar(&o.sizes.workloads, "workloads", 1000, "workloads of the scenario big")
	fs.IntVar(&o.sizes.ramp, "spread", 500, "workloads of the scenario ramp")
	fs.IntVar(&o.sizes.greedy, "greedy", 100, "how many objects the greedy tenant of the scenarios tenant has, in percent; a few for a quick try")
	fanOut := fs.String("fan-out", "1,10,50,100,500", "numbers of workloads that share one ConfigMap")
	bytes := fs.String("bytes", "20480,1024", "sizes of the objects of the scenario big")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usageError{err}
	}
	if *compare {
		o.compare = fs.Args()
		if len(o.compare) != 2 {
			return o, usageError{errors.New("--compare takes two files")}
		}
		return o, nil
	}
	if *medians {
		if fs.NArg() != 1 {
			return o, usageError{errors.New("--medians takes one file")}
		}
		o.medians = fs.Arg(0)
		return o, nil
	}
	if o.repeat < 1 {
		return o, usageError{fmt.Errorf("--repeat %d: need at least one", o.repeat)}
	}
	if o.sizes.ramp < 1 {
		return o, usageError{fmt.Errorf("--spread %d: need at least one workload", o.sizes.ramp)}
	}
	if o.sizes.greedy < 1 {
		return o, usageError{fmt.Errorf("--greedy %d: need at least one percent", o.sizes.greedy)}
	}
	return o.complete(lines, *names, *fanOut, *bytes)
}

// complete parses the lists in the flags.
func (o options) complete(lines []string, names, fanOut, bytes string) (options, error) {
	var err error
	if o.sizes.fanOut, err = numbers(fanOut); err != nil {
		return o, usageError{fmt.Errorf("--fan-out: %w", err)}
	}
	if o.sizes.bytes, err = numbers(bytes); err != nil {
		return o, usageError{fmt.Errorf("--bytes: %w", err)}
	}
	if o.sizes.objects < 2*o.sizes.workloads {
		return o, usageError{fmt.Errorf("--objects %d: each of %d workloads needs a ConfigMap and a Secret of its own", o.sizes.objects, o.sizes.workloads)}
	}
	if o.scenarios, err = chooseScenarios(names, o.sizes); err != nil {
		return o, usageError{err}
	}
	if len(lines) == 0 {
		lines = []string{lockstepLine}
	}
	for _, line := range lines {
		o.contenders = append(o.contenders, newContender(line))
	}
	return o, nil
}

func numbers(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no positive number", part)
		}
		list = append(list, n)
	}
	return list, nil
}

// contender is a program to measure.
type contender struct {
	name string
	// line is the shell command, with placeholders.
	line string
}

func newContender(line string) contender {
	if m := regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*)=(.*)$`).FindStringSubmatch(line); m != nil {
		return contender{name: m[1], line: m[2]}
	}
	first, _, _ := strings.Cut(line, " ")
	return contender{name: filepath.Base(first), line: line}
}

// withPrograms builds Lockstep when a command line needs it.
func (o options) withPrograms(ctx context.Context) (options, func(), error) {
	nothing := func() {}
	needed := false
	for _, c := range o.contenders {
		needed = needed || strings.Contains(c.line, "{lockstep}")
	}
	if !needed {
		return o, nothing, nil
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return o, nothing, fmt.Errorf("make a directory for programs: %w", err)
	}
	cleanUp := func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "lockstep")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/lockstep-dev/lockstep/cmd/lockstep")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		cleanUp()
		return o, nothing, fmt.Errorf("build lockstep: %w", err)
	}
	for i := range o.contenders {
		o.contenders[i].line = strings.ReplaceAll(o.contenders[i].line, "{lockstep}", path)
	}
	return o, cleanUp, nil
}
