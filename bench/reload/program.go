package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// program is a running contender.
type program struct {
	plane   *plane
	line    string
	process *process.Process
	log     *os.File
	// before is the cost of earlier processes of the same program.
	before cost
}

// cost is the CPU time and memory that a program used.
type cost struct {
	peak int64 // bytes
	cpu  time.Duration
}

func (c cost) and(other cost) cost {
	return cost{peak: max(c.peak, other.peak), cpu: c.cpu + other.cpu}
}

func startProgram(ctx context.Context, p *plane, c contender, flags string) (*program, error) {
	line, err := p.fill(ctx, c.line, flags)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.programLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	prog := &program{plane: p, line: line, log: log}
	return prog, prog.start()
}

// start runs the program in the shell's own process, so the measured and killed process is
// the program.
func (p *program) start() error {
	var err error
	p.process, err = process.Start(process.Spec{
		Path: "/bin/sh", Args: []string{"-c", "exec " + p.line}, Stdout: p.log, Stderr: p.log,
	})
	return err
}

// kill ends the program as a crash would, and records its cost.
func (p *program) kill() error {
	used, err := p.used()
	if err != nil {
		return err
	}
	p.before = used
	return p.process.Kill()
}

// stop ends the program for good.
func (p *program) stop() error {
	return errors.Join(p.process.Kill(), p.log.Close())
}

// used is the cost of all processes of the program so far.
func (p *program) used() (cost, error) {
	now, err := readCost(p.process.ID().PID)
	if err != nil {
		return cost{}, fmt.Errorf("%w; the end of the program's log:\n%s", err, p.logTail())
	}
	return p.before.and(now), nil
}

func (p *program) logTail() string {
	text, err := os.ReadFile(p.plane.programLog())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// rested waits until the program has used less than 2 % of a core for two seconds, and
// returns when that rest started. It works for any program, because it does not query it.
func (p *program) rested(ctx context.Context, atMost time.Duration) (time.Time, error) {
	const pause, rest = 250 * time.Millisecond, 2 * time.Second
	deadline := time.Now().Add(atMost)
	var history []time.Duration
	for {
		used, err := p.used()
		if err != nil {
			return time.Time{}, err
		}
		history = append(history, used.cpu)
		if n := int(rest / pause); len(history) > n && history[len(history)-1]-history[len(history)-1-n] < rest/50 {
			return time.Now().Add(-rest), nil
		}
		if time.Now().After(deadline) {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
