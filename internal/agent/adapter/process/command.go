package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is one program to run and wait for.
type Command struct {
	Args []string
	// Env is added to the agent's own environment.
	Env []string
	Dir string
	// Timeout ends the whole process group; 0 means none.
	Timeout time.Duration
}

// outputLimit bounds how much of a program's output is kept.
const outputLimit = 16 << 10

// Run runs the command and returns the end of its output. Its error names the program and
// how it ended.
func (p *Parent) Run(ctx context.Context, c Command) (string, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	output := &tail{limit: outputLimit}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) //nolint:gosec // running what the user configured is the purpose
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	cmd.Stdout, cmd.Stderr = output, output
	// Its own group, so no process that it started outlives the timeout.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := p.start(cmd); err != nil {
		return "", fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	err := p.wait(cmd)
	if ctx.Err() != nil {
		return output.String(), fmt.Errorf("run %s: stopped after %s: %w", c.Args[0], c.Timeout, ctx.Err())
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return output.String(), fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	return output.String(), nil
}

// tail keeps the end of the output, because that is where errors are.
type tail struct {
	limit int
	buf   bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.limit {
		p = p[len(p)-t.limit:]
	}
	if over := t.buf.Len() + len(p) - t.limit; over > 0 {
		t.buf.Next(over)
	}
	t.buf.Write(p)
	return n, nil
}

func (t *tail) String() string { return strings.ToValidUTF8(t.buf.String(), "?") }
