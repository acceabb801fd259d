package cli

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestPortInUse: the error names the flag and the next port that is free.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := listen(t.Context(), 0, programName)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if host, _, _ := net.SplitHostPort(taken.Addr().String()); host != loopback {
		t.Errorf("it listens on %s, which others reach", host)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = listen(t.Context(), port, programName)
	if err == nil {
		t.Fatal("one port is used twice")
	}
	_, next, found := strings.Cut(err.Error(), "is free: lockstep ui --port ")
	free, _ := strconv.Atoi(next)
	if !found || free <= port || !strings.Contains(err.Error(), "--port "+strconv.Itoa(port)+": the port is in use") {
		t.Errorf("the error is %q", err)
	}
}

// TestCarryOut: a page runs no other command than those that it shows.
func TestCarryOut(t *testing.T) {
	t.Parallel()
	env := Environment{Lookup: variables(nil), Now: time.Now, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
	for _, arguments := range [][]string{nil, {"stop", "--all", "x"}, {"controller"}, {"--context", "x", "hold"}} {
		if output, err := carryOut(t.Context(), nil, arguments, env); err == nil || output != "" {
			t.Errorf("%q: %q, %v", arguments, output, err)
		}
	}
	// Flags come first, so that arguments after "--" stay arguments.
	output, err := carryOut(t.Context(), []string{"--kubeconfig", "/no/such/file"}, []string{"hold", "-n", "shop", "--", "deployment/web", "--overwrite"}, env)
	if err == nil || !strings.Contains(output, "/no/such/file") || !strings.Contains(err.Error(), "exit code 2") {
		t.Errorf("the output is %q and the error %v", output, err)
	}
}

// TestShellWords: a shell reads the words that were meant.
func TestShellWords(t *testing.T) {
	t.Parallel()
	got := shellWords([]string{"kubectl lockstep", "--context", "a b", "--kubeconfig", "/it's/$HOME", "", "x=1"})
	if want := `kubectl lockstep --context 'a b' --kubeconfig '/it'\''s/$HOME' '' x=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCommandFlags: commands on the pages reach the same cluster.
func TestCommandFlags(t *testing.T) {
	t.Parallel()
	var o uiOptions
	cmd := &cobra.Command{}
	o.kube.bind(cmd.Flags())
	if got := commandFlags(cmd); len(got) > 0 {
		t.Errorf("flags out of nowhere: %q", got)
	}
	if err := cmd.ParseFlags([]string{"--context", "lab"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(commandFlags(cmd), " "); got != "--context lab" {
		t.Errorf("the flags are %q", got)
	}
}
