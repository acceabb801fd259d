package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// patience is how long a test waits for something that takes seconds on an idle machine.
const patience = 3 * time.Minute

// lab runs the command in this process.
func lab(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &err})
	return out.String(), err.String(), code
}

// ownRuns lets a test start control planes that only it sees, from the
// programs of the user's cache.
func ownRuns(t *testing.T) {
	t.Helper()
	labtest.Programs(t, labtest.Options{}.Programs()...)
	cache, err := program.Cache()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	if err := os.Symlink(filepath.Join(cache, "bin"), filepath.Join(own, "bin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(program.CacheEnv, own)
}

func TestMistakesGetUsageAndExitCodeTwo(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"no command":        {nil, "no command given"},
		"unknown command":   {[]string{"start"}, `unknown command "start"`},
		"unknown flag":      {[]string{"up", "--wth", "kwok"}, "wth"},
		"unknown component": {[]string{"up", "--with", "kwok,istio"}, `unknown component "istio"; there are kwok,argo-rollouts,registry,registry-tls,node`},
		"unknown release":   {[]string{"up", "--kubernetes", "1.12"}, `Kubernetes "1.12" is not in the lab; 1.36 and 1.34 are`},
		"unknown program":   {[]string{"build", "kube-proxy"}, `unknown program "kube-proxy"`},
		"nobody's":          {[]string{"down", "now"}, `no control plane has the kubeconfig "now"`},
		"too many words":    {[]string{"status", "now"}, `unexpected "now"`},
		"two kinds of node": {[]string{"up", "--node", "real", "--with", "kwok"}, "kwok would take the pods of a real node for fake ones"},
		"a newer kubelet":   {[]string{"up", "--node", "real", "--kubernetes", "1.34"}, "kubelet of Kubernetes 1.36"},
		"no command to run": {[]string{"exec", "--with", "kwok", "--"}, "exec needs a command"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := lab(t, c.args...)
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d, stdout %q, want 2 and nothing", code, stdout)
			}
			if !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "Usage:") {
				t.Errorf("stderr is %q, want %q and the usage", stderr, c.want)
			}
		})
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"up", "--help"}, {"status", "-h"}, {"down", "--help"}, {"down", "-h"}} {
		stdout, stderr, code := lab(t, args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:") {
			t.Errorf("lab %q: exit code %d, stderr %q, stdout %q", args, code, stderr, stdout)
		}
	}
}

func TestExecRunsACommandAgainstAControlPlaneOfItsOwn(t *testing.T) {
	ownRuns(t)
	script := `test "$KUBECONFIG" = "$` + labtest.Env + `/kubeconfig" && grep -c server: "$KUBECONFIG" && exit 7`
	stdout, stderr, code := lab(t, "exec", "--", "sh", "-c", script)
	if code != 7 || stdout != "1\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q, want the command's 7 and 1", code, stdout, stderr)
	}
	if stdout, _, _ := lab(t, "status"); !strings.HasPrefix(stdout, "nothing runs") {
		t.Errorf("status after exec is %q", stdout)
	}
}

// TestKilledExecTakesEverythingWithIt: go test, say, starts the test processes, and
// does not hand its own end on to them.
func TestKilledExecTakesEverythingWithIt(t *testing.T) {
	ownRuns(t)
	exec := labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./lab"), Args: []string{"exec", "--", "bash", "-c", "set -m; sleep 600 & echo $!; wait"},
	})
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.HasSuffix(exec.Stdout(), "\n"), "the command does not run: " + exec.Stderr()
	})
	pid, err := strconv.Atoi(strings.TrimSpace(exec.Stdout()))
	if err != nil {
		t.Fatal(err)
	}
	grandchild := process.Identify(pid)
	runs, err := labtest.Runs()
	if err != nil || len(runs) != 1 || !grandchild.Alive() {
		t.Fatalf("%d control planes, error %v, want 1; the command's process runs: %t", len(runs), err, grandchild.Alive())
	}
	exec.Signal(t, syscall.SIGKILL)
	labtest.Eventually(t, patience, func() (bool, string) {
		_, err := os.Stat(runs[0].Dir)
		return !grandchild.Alive() && errors.Is(err, os.ErrNotExist),
			fmt.Sprintf("the command's process runs: %t; the control plane's directory: %v", grandchild.Alive(), err)
	})
}

func TestUpStatusDown(t *testing.T) {
	ownRuns(t)
	t.Cleanup(func() { lab(t, "down") })
	exported, stderr, code := lab(t, "up")
	if code != 0 || !strings.HasPrefix(exported, "export KUBECONFIG=") || strings.Count(exported, "\n") != 1 {
		t.Fatalf("up: exit code %d, stdout %q, stderr %q", code, exported, stderr)
	}
	// It is found in the cache that the variable names.
	_, ending, _ := strings.Cut(stderr, "end it with: "+program.CacheEnv+"="+os.Getenv(program.CacheEnv)+" go run ./lab ")
	again, stderr, code := lab(t, "up")
	if code != 0 || again != exported || ending == "" || !strings.HasSuffix(stderr, "go run ./lab "+ending) {
		t.Errorf("up again: exit code %d, stdout %q, want %q, stderr %q, want the command that ends it", code, again, exported, stderr)
	}
	if _, stderr, code := lab(t, "up", "--kubernetes", "1.34"); code != 1 || !strings.Contains(stderr, "lab down") {
		t.Errorf("up with another release: exit code %d, stderr %q, want 1 and advice", code, stderr)
	}

	shown, _, _ := lab(t, "status")
	for _, want := range []string{exported, "etcd", "kube-apiserver", "kube-controller-manager", "running", `until "lab down"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("status does not show %q:\n%s", want, shown)
		}
	}

	runs, err := labtest.Runs()
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d control planes, error %v, want 1", len(runs), err)
	}
	if _, stderr, code := lab(t, strings.Fields(ending)...); code != 0 || !strings.HasPrefix(stderr, "ended Kubernetes ") {
		t.Errorf("down: exit code %d, stderr %q", code, stderr)
	}
	for _, p := range runs[0].Processes {
		if p.Alive() {
			t.Errorf("%s runs after down", p.Name)
		}
	}
	if _, stderr, code := lab(t, "down"); code != 0 || stderr != "nothing is up\n" {
		t.Errorf("down again: exit code %d, stderr %q", code, stderr)
	}
}
