package process_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// starterEnv makes the test binary itself the starter that gets killed.
const starterEnv = "LOCKSTEP_TEST_STARTER"

// groupShell gives each job a process group after "set -m", also without a terminal.
// The sh of Debian does not.
const groupShell = "/bin/bash"

func TestMain(m *testing.M) {
	if os.Getenv(starterEnv) != "" {
		beStarter()
	}
	os.Exit(m.Run())
}

// beStarter starts a program, prints its id, and stays until it is killed.
func beStarter() {
	p, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"600"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.ID().PID)
	select {}
}

func TestKilledStarterTakesItsProcessesWithIt(t *testing.T) {
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), starterEnv+"=1")
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	child := readPID(t, out)
	if !child.Alive() {
		t.Fatalf("process %d does not run before its starter is killed", child.PID)
	}

	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	starter.Wait() //nolint:errcheck // It was killed; that is the point.

	waitGone(t, child)
}

func TestKillEndsTheWholeSession(t *testing.T) {
	cases := map[string]string{
		"in the group of its parent":    "sleep 600 & echo $!; wait",
		"in a group of its own":         "set -m; sleep 600 & echo $!; wait",
		"left by a parent that is gone": "set -m; sleep 600 & echo $!",
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			p := start(t, process.Spec{Path: groupShell, Args: []string{"-c", script}, Stdout: write})
			write.Close()
			grandchild := readPID(t, read)
			if !grandchild.Alive() {
				t.Fatal("the process of the process does not run")
			}
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if grandchild.Alive() {
				t.Error("the process of the process runs on")
			}
		})
	}
}

func TestEndMarkedEndsThoseAndNoOthers(t *testing.T) {
	mark := "LOCKSTEP_TEST_MARK=" + t.TempDir()
	sleep := func(env ...string) *process.Process {
		return start(t, process.Spec{Path: "/bin/sleep", Args: []string{"600"}, Env: env})
	}
	ours, longer, others := sleep("A=1", mark), sleep(mark+"0"), sleep("A=1")
	if err := process.EndMarked(mark); err != nil {
		t.Fatal(err)
	}
	if ours.ID().Alive() {
		t.Error("a marked process runs on")
	}
	if !longer.ID().Alive() || !others.ID().Alive() {
		t.Error("a process with another mark, or none, was ended")
	}
}

func TestIdentityOfARecycledPIDIsAnotherProcess(t *testing.T) {
	p := start(t, process.Spec{Path: "/bin/sleep", Args: []string{"600"}})
	earlier := process.Identity{PID: p.ID().PID, Birth: "somebody who had this id before"}
	if earlier.Alive() {
		t.Error("an identity with another birth counts as alive")
	}
	if err := earlier.Kill(); err != nil {
		t.Error(err)
	}
	if !p.ID().Alive() {
		t.Error("killing the earlier owner of a process id ended its present owner")
	}
	if err := p.ID().Kill(); err != nil {
		t.Error(err)
	}
	if p.ID().Alive() {
		t.Error("process is alive after its own identity was killed")
	}
}

func TestIdentityIsReadAsItIsWritten(t *testing.T) {
	for _, want := range []process.Identity{process.Self(), {PID: 4711}, {PID: 4711, Birth: "Mon Nov  2 08:00:00 2026"}} {
		if got, err := process.ParseIdentity(want.String()); err != nil || got != want {
			t.Errorf("%q is read as %+v, error %v", want, got, err)
		}
	}
	if got, err := process.ParseIdentity("first 4711"); err == nil {
		t.Errorf("read as %+v without an error", got)
	}
}

// TestEndSessionSparesStrangers: the number of a process that ended long ago may
// belong to anybody by now.
func TestEndSessionSparesStrangers(t *testing.T) {
	cases := map[string]struct {
		script string // prints the number, and the id of a process that must stay and copies input to output
		gone   bool   // whether no process has the number itself
	}{
		"first of a session":       {script: "echo $$; cat <&3 & echo $!; wait"},
		"first of a group":         {script: "set -m; sh -c 'echo $$; cat <&3 & echo $!; wait' & wait"},
		"of a group without first": {script: "set -m; sh -c 'echo $$; cat <&3 & echo $!'; sleep 600", gone: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			input, ask, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer ask.Close()
			// A shell gives background jobs another standard input, so they read this one from 3.
			start(t, process.Spec{Path: groupShell, Args: []string{"-c", "exec 3<&0; " + c.script}, Stdin: input, Stdout: write})
			input.Close()
			write.Close()
			lines := bufio.NewReader(read)
			number, stranger := readPID(t, lines), readPID(t, lines)
			if c.gone {
				waitGone(t, number)
			}
			if err := process.EndSession(process.Identity{PID: number.PID, Birth: "somebody who had this id before"}); err != nil {
				t.Error(err)
			}
			wantAnswer(t, stranger, ask, lines)
		})
	}
}

// wantAnswer fails the test when a process that copies its input to its output was sent
// SIGKILL before the call. Such a process runs no further instruction, so an answer to a
// later line proves that it wasn't.
func wantAnswer(t *testing.T, id process.Identity, ask io.Writer, answers *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(ask, "alive\n"); err != nil {
		t.Fatalf("process %d reads no more: %v", id.PID, err)
	}
	answered := make(chan string, 1)
	go func() {
		line, err := answers.ReadString('\n')
		answered <- fmt.Sprintf("%q, error %v", line, err)
	}()
	deadline := time.After(3 * time.Minute)
	for {
		select {
		case got := <-answered:
			if want := `"alive\n", error <nil>`; got != want {
				t.Fatalf("process %d answers %s, want %s", id.PID, got, want)
			}
			return
		case <-deadline:
			t.Fatalf("process %d doesn't answer within three minutes", id.PID)
		case <-time.After(time.Millisecond):
			if !id.Alive() {
				t.Fatalf("process %d, a stranger, was ended", id.PID)
			}
		}
	}
}

func TestExitCode(t *testing.T) {
	cases := map[string]struct {
		script string
		want   int
	}{
		"its own":  {script: "exit 7", want: 7},
		"a signal": {script: "kill -TERM $$", want: 128 + int(syscall.SIGTERM)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, process.Spec{Path: "/bin/sh", Args: []string{"-c", c.script}})
			if got := p.ExitCode(); got != c.want {
				t.Errorf("exit code of %q is %d, want %d", c.script, got, c.want)
			}
		})
	}
}

func TestStartNamesTheMissingProgram(t *testing.T) {
	_, err := process.Start(process.Spec{Path: "/no/such/program"})
	if err == nil || !strings.Contains(err.Error(), "start program: ") {
		t.Errorf("error is %v, want it to name the program", err)
	}
}

func start(t *testing.T, spec process.Spec) *process.Process {
	t.Helper()
	p, err := process.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// readPID reads the first line of a process's output.
func readPID(t *testing.T, from io.Reader) process.Identity {
	t.Helper()
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatalf("read a process id: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return process.Identify(pid)
}

func waitGone(t *testing.T, id process.Identity) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); id.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs after three minutes", id.PID)
		}
	}
}
