package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// buildLockstep compiles the product, so the story shows this checkout.
func buildLockstep(ctx context.Context) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(root, "bin", "lockstep")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -X main.version="+version(ctx, root), "-o", file, "./cmd/lockstep")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lockstep: %w\n%s", err, out)
	}
	return file, nil
}

// version is the version that the Makefile would set.
func version(ctx context.Context, root string) string {
	if v := os.Getenv("VERSION"); v != "" {
		return v
	}
	describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	describe.Dir = root
	out, err := describe.Output()
	if err != nil {
		return "dev"
	}
	return string(out[:len(out)-1])
}

// startLockstep runs the controller and waits until it follows the cluster.
func (st *stage) startLockstep(ctx context.Context) error {
	st.log = newNarrator(st.printer, "Deployment/"+st.namespace+"/"+deployment)
	p, err := process.Start(process.Spec{
		Path: st.binary,
		Args: slices.Concat([]string{
			"controller", "--own-namespace", st.ownNamespace,
			"--metrics-addr", "0", "--probe-addr", "0",
			"--quiet", st.quiet.String(), "--settle", moment.String(), "--log-format", "json", "--log-level", "debug",
		}, st.scope, st.flags),
		Env:    st.environment(),
		Stderr: st.log,
	})
	if err != nil {
		return err
	}
	st.lockstep = p
	return st.decided(ctx, 0, "")
}

// decided waits until Lockstep has made a decision about the application, after a mark in
// its log: one with the verb, or any when that is empty.
func (st *stage) decided(ctx context.Context, mark int, verb string) error {
	ended := false
	err := eventually(ctx, func(context.Context) (bool, string) {
		select {
		case <-st.lockstep.Done():
			ended = true
			return true, ""
		default:
			return st.log.hasDecision(mark, verb), "lockstep did not decide to " + verb + " " + deployment + "; the last line of its log: " + st.log.last()
		}
	})
	if ended {
		return fmt.Errorf("lockstep ended with exit code %d; the last line of its log: %s", st.lockstep.ExitCode(), st.log.last())
	}
	return err
}

// environment selects the story's cluster, and removes the reader's own LOCKSTEP_ variables.
func (st *stage) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "LOCKSTEP_") || strings.HasPrefix(variable, "KUBECONFIG=")
	})
	return append(own, "KUBECONFIG="+st.kubeconfig)
}

// stopLockstep ends the controller as Kubernetes would.
func (st *stage) stopLockstep() error {
	p := st.lockstep
	if p == nil {
		return nil
	}
	st.lockstep = nil
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Done():
		if code := p.ExitCode(); code != 0 {
			return fmt.Errorf("lockstep was told to stop and ended with exit code %d; the last line of its log: %s", code, st.log.last())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("lockstep does not end within %s of SIGTERM", patience), p.Kill())
	}
}
