package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// productBuild is how long compiling Lockstep and the demo takes for the first time.
const productBuild = 2 * time.Minute

// preparation lists what a machine has to build for the story of "make demo".
type preparation struct {
	first   []program.Built // before the first chapter
	later   []program.Built // when a later chapter needs it
	product bool            // Lockstep and the demo themselves
	shared  time.Duration   // the extra time of the later ones while the first are not built
	cores   int
}

// demo estimates how long the story takes to start on this machine, and builds the programs
// of its first chapter. Later chapters build their programs when the reader gets there.
func demo(ctx context.Context, args []string, std streams) error {
	if err := noArguments(args); err != nil {
		return err
	}
	ctx, cancel := interruptible(ctx)
	defer cancel()
	builder, err := program.NewBuilder(std.err)
	if err != nil {
		return err
	}
	first, later, err := demoPrograms(ctx, os.Getenv(program.DownloadedEnv))
	if err != nil {
		return err
	}
	p := preparation{cores: runtime.NumCPU()}
	if _, p.first, err = builder.Find(first...); err != nil {
		return err
	}
	if _, p.later, err = builder.Find(later...); err != nil {
		return err
	}
	if slices.ContainsFunc(p.later, isControllerManager) {
		apiServer, err := program.Find(program.APIServer)
		if err != nil {
			return err
		}
		p.shared = apiServer.FirstBuild // The two have most packages in common.
	}
	if p.product, err = neverBuilt("demo"); err != nil {
		return err
	}
	fmt.Fprint(std.err, p.forecast())
	_, err = builder.Build(ctx, first...)
	return err
}

// demoPrograms lists the programs of the story, in the order of need.
func demoPrograms(ctx context.Context, dir string) (first, later []string, err error) {
	later = []string{program.Registry, program.Scheduler, program.KWOK, program.ArgoRollouts, program.Helm}
	if dir == "" {
		return labtest.Options{}.Programs(), later, nil
	}
	found, err := program.ReadDownloaded(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	controllers := program.ForKubernetes(program.ControllerManager, found.Release)
	if _, ok := found.Programs[controllers]; !ok {
		later = append(later, controllers)
	}
	return nil, later, nil
}

func isControllerManager(b program.Built) bool {
	return strings.HasPrefix(b.Name, program.ControllerManager)
}

// neverBuilt reports whether a program of this checkout is missing in bin.
func neverBuilt(name string) (bool, error) {
	root, err := program.Root()
	if err != nil {
		return false, err
	}
	_, err = os.Stat(filepath.Join(root, "bin", name))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// forecast describes how long it takes, what takes the time, and how to avoid it. It is
// empty when everything is built.
func (p preparation) forecast() string {
	now := program.FirstBuilds(p.first, p.cores)
	wait := now
	if p.product {
		wait += program.OnCores(productBuild, p.cores)
	}
	if wait == 0 && len(p.later) == 0 {
		return ""
	}
	begin := "The first chapter begins at once."
	if wait > 0 {
		begin = fmt.Sprintf("The first chapter begins in about %s (%d cores).", program.Rough(wait), p.cores)
	}
	var text strings.Builder
	fmt.Fprintln(&text, begin, "What is built from source, the first time only:")
	if now > 0 {
		row(&text, now, program.Describe(p.first))
	}
	if p.product {
		row(&text, program.OnCores(productBuild, p.cores), "Lockstep and the demo")
	}
	if len(p.later) > 0 {
		row(&text, program.FirstBuilds(p.later, p.cores)+program.OnCores(p.shared, p.cores), "when the last two chapters need them: "+program.Describe(p.later))
	}
	if now > 0 {
		fmt.Fprint(&text, waysOut)
	}
	return text.String()
}

const waysOut = `Without this wait: "make demo CLUSTER=1" plays on the cluster of your current context, after asking;
KUBEBUILDER_ASSETS=DIRECTORY starts the etcd and kube-apiserver that setup-envtest installed there.

`

func row(text *strings.Builder, d time.Duration, what string) {
	fmt.Fprintf(text, "  %-12s %s\n", program.Rough(d), what)
}
