package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// ending bounds a demo that plays to the end; a warm one promises 90 s, on a
// machine that does nothing else.
const ending = 8 * time.Minute

func TestDemoPlaysToTheEnd(t *testing.T) {
	t.Parallel()
	demo := start(t, labtest.Binary(t, "./cmd/lockstep"))
	stage := awaitStage(t, demo)
	if code := demo.ExitCode(t, ending); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		"two changes, one rollout (ReplicaSets of the Deployment: 2)",
		"no further rollout (ReplicaSets of the Deployment: 2)",
		"the change is delivered, by one rollout (ReplicaSets of the Deployment: 3)",
		"rolls out deployment/web: configmap/web-settings",
		"the change waits, and the tool says why (ReplicaSets of the Deployment: 3)",
		"Controller:  running",
		`State:       Held for `,
		"the release delivers it, by one rollout (ReplicaSets of the Deployment: 4)",
		"the bad change reached one of 12 Deployments: team-",
		"all 12 Deployments are healthy with the next version",
		"an image and a ConfigMap, one rollout (ReplicaSets of the Deployment: 6)",
		"the canary has one pod and waits for you",
		", as before",
		"Kubernetes removed configmap/checkout-settings-",
		"The end, after",
	} {
		if !strings.Contains(demo.Stdout(), want) {
			t.Errorf("the story does not say %q", want)
		}
	}
	if strings.Contains(demo.Stdout(), "\x1b[") {
		t.Error("the story has colours although it is not written to a terminal")
	}
	stage.mustBeClear(t)
}

func TestKeptDemoLeavesAControlPlaneToPlayWith(t *testing.T) {
	t.Parallel()
	demo := start(t, labtest.Binary(t, "./cmd/lockstep"), "KEEP=1", "CHAPTERS=1")
	stage := awaitStage(t, demo)
	t.Cleanup(func() {
		if err := stage.run.End(); err != nil {
			t.Error(err)
		}
		stage.mustBeClear(t)
	})
	if code := demo.ExitCode(t, ending); code != 0 {
		t.Fatalf("exit code %d, want 0", code)
	}
	_, rest, _ := strings.Cut(demo.Stdout(), "export KUBECONFIG=")
	kubeconfig, _, _ := strings.Cut(rest, "\n")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("the kubeconfig that the demo prints: %v", err)
	}
	web, err := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || web.Annotations["lockstep.dev/reload"] == "" {
		t.Errorf("the application of the story: annotations %v, error %v", web.Annotations, err)
	}
	lines := strings.Split(strings.TrimSpace(demo.Stdout()), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "bin/lockstep ui --kubeconfig "+kubeconfig+" -n shop") {
		t.Errorf("the last line does not say how to open the pages: %s", last)
	}
}

func TestInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	demo := start(t, labtest.Binary(t, "./cmd/lockstep"))
	stage := awaitStage(t, demo)
	labtest.Eventually(t, ending, func() (bool, string) {
		return strings.Contains(demo.Stdout(), "Baseline"), "the demo doesn't show a decision by Lockstep; it printed\n" + demo.Stdout()
	})
	demo.Signal(t, syscall.SIGINT)
	if code := demo.ExitCode(t, ending); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	stage.mustBeClear(t)
}

func TestDemoFailsWhenLockstepDoes(t *testing.T) {
	t.Parallel()
	demo := start(t, "/bin/false")
	stage := awaitStage(t, demo)
	if code := demo.ExitCode(t, ending); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "FAILED chapter 1, Two inputs change, one rollout follows: lockstep ended with exit code 1"; !strings.Contains(demo.Stdout(), want) {
		t.Errorf("the story does not say %q", want)
	}
	stage.mustBeClear(t)
}

func start(t *testing.T, lockstep string, env ...string) *labtest.Running {
	t.Helper()
	labtest.In(t, labtest.TierAll)
	return labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./test/demo"),
		Env:  append([]string{"LOCKSTEP_BINARY=" + lockstep, "KEEP=", "CLUSTER=", "CHAPTERS=", "KUBEBUILDER_ASSETS=", "DEMO_GATHER=12s", "DEMO_UNREAD=1"}, env...),
	})
}

// stage is the control plane that a demo has started.
type stage struct{ run *labtest.Run }

func awaitStage(t *testing.T, demo *labtest.Running) stage {
	t.Helper()
	var s stage
	labtest.Eventually(t, ending, func() (bool, string) {
		runs, err := labtest.Runs()
		if err != nil {
			return false, err.Error()
		}
		programs := 0
		for _, run := range runs {
			if run.Owner.PID != demo.PID() {
				continue
			}
			if programs = len(run.Processes); programs == 3 {
				s.run = run
				return true, ""
			}
		}
		return false, fmt.Sprintf("the demo's control plane runs %d programs, want 3; there are %d control planes", programs, len(runs))
	})
	return s
}

// mustBeClear fails the test when anything of the demo is left: a process of its
// control plane, a process that was told where the control plane is, or files.
func (s stage) mustBeClear(t *testing.T) {
	t.Helper()
	for _, p := range s.run.Processes {
		if p.Alive() {
			t.Errorf("%s still runs", p.Name)
		}
	}
	if _, err := os.Stat(s.run.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", s.run.Dir)
	}
	if runtime.GOOS != "linux" {
		return
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(commands) == 0 {
		t.Fatalf("no process can be seen: %v", err)
	}
	for _, file := range commands {
		command, err := os.ReadFile(file)
		if err == nil && bytes.Contains(command, []byte(s.run.Dir)) {
			t.Errorf("still runs: %s", bytes.ReplaceAll(command, []byte{0}, []byte(" ")))
		}
	}
}
