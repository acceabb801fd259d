package reload_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/inprocess"
)

// roll runs "lockstep roll" in the stage's namespace.
func (s *stage) roll(t testing.TB, args ...string) (output string, code int) {
	t.Helper()
	stdout, stderr, code := inprocess.Run(t, append([]string{"roll", "--kubeconfig", s.Cluster.Kubeconfig(), "--namespace", s.Namespace, "--controller-namespace", s.Own}, args...)...)
	return stdout + stderr, code
}

// TestRollInStep: what is on record counts, also where another tool's rollout has loaded
// what the template does not show, and where it was only observed. A pause is told.
func TestRollInStep(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.annotate(t, web, settings.Hold, "until the other tool is done")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.AwaitEvent(t, "web", "Warning Held")
	s.change(t, web, "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
	s.annotate(t, web, settings.Hold)
	s.awaitKnown(t, deploy, "web", versionOf("three"))
	if shown := s.shown(t, web); !strings.Contains(shown, short("two")) {
		t.Fatalf("the template shows %q, want what Lockstep wrote last", shown)
	}
	output, code := s.roll(t, web, "--reason", "it is urgent")
	if code != 0 || !strings.Contains(output, "is in step: the record lists") || !strings.Contains(output, "--force") || !strings.Contains(output, "no event was written for your reason: nothing was rolled out") {
		t.Errorf("roll ended with %d and says %q", code, output)
	}
	s.checkRollouts(t, "in step", 2, web)
	if output, code := s.roll(t, web, "--force", "--now", "--reason", "it is very urgent"); code != 0 || !strings.Contains(output, "rolled out") || strings.Contains(output, "no event") {
		t.Errorf("roll --force ended with %d and says %q", code, output)
	}
	s.checkRollouts(t, "forced", 3, web)
	s.AwaitEvent(t, "web", "Normal RolledByHand", "it is very urgent")

	s.annotate(t, web, settings.Observe, "true")
	s.change(t, "configmap/app", "{data: {key: four}}")
	s.AwaitEvent(t, "web", "WouldReload", "configmap/app")
	s.awaitKnown(t, deploy, "web", versionOf("four"))
	if output, code := s.roll(t, web); code != 0 || !strings.Contains(output, "as delivered; --force") {
		t.Errorf("after observe mode roll ended with %d and says %q", code, output)
	}
	s.change(t, web, "{spec: {paused: true}}")
	s.awaitObserved(t, web)
	if output, code := s.roll(t, web, "--force", "--now"); code != 0 || strings.Contains(output, "rolled out") || !strings.Contains(output, "begins when you resume it") {
		t.Errorf("of a paused workload roll ended with %d and says %q", code, output)
	}
}

// TestPatternAndNever: a source that refuses is followed by its exact name only.
func TestPatternAndNever(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+configMap("apples", "key: one")+
		deployment("web", settings.Reload+`: "configmap/app*"`, uses("configmap/app"))+
		deployment("named", settings.Reload+`: "configmap/app*, configmap/app"`, uses("configmap/app")))
	s.annotate(t, "configmap/app", settings.Reload, "never")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/apples")
	s.awaitKnown(t, deploy, "named", "configmap/apples", "configmap/app")
	s.AwaitEvent(t, "web", "Normal Following follows configmap/apples")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/named", 1)
	s.checkRollouts(t, "it refuses", 0, web)
}

// TestRoll moves workloads by hand, beside a controller that takes it as delivered.
func TestRoll(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+
		deployment("held", auto+", "+settings.Hold+": freeze", uses("configmap/app"))+
		deployment("listed", settings.Reload+`: "configmap/a*", `+settings.Quiet+": 1h", plain)+
		deployment("nothing", auto, plain)+
		deployment("silent", "a: b", uses("configmap/app"))+
		strings.ReplaceAll(cronJob, "%s", uses("configmap/app"))+
		fmt.Sprintf(replicationController, settings.Reload+": configmap/app", plain))
	s.annotate(t, web, settings.Quiet, "1h")
	s.run(t, "--max-delay", "2h")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.awaitKnown(t, deploy, "held", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitKnown(t, deploy, "web", `"pending":`)

	cases := []struct {
		reason string
		args   []string
		says   []string
		code   int
	}{
		{"waits for quiet", []string{web, "--now"}, []string{"rolled out", "configmap/app~"}, 0},
		{"once is enough, whether or not the controller has it on record yet", []string{web, "--now"}, []string{"configmap/app~", "; --force "}, 0},
		{"a hold is respected", []string{"deployment/held"}, []string{"held", "freeze", "--now"}, 1},
		{"unless it is urgent", []string{"deployment/held", "--now"}, []string{"rolled out"}, 0},
		{"a pattern means what exists", []string{"deployment/listed", "--now"}, []string{"rolled out", "configmap/app~"}, 0},
		{"asking by hand is asking", []string{"Deployment/silent", "--quiet", "500ms"}, []string{"without a change", "rolled out"}, 0},
		{"nothing to move it to", []string{"deployment/nothing"}, []string{"doesn't use a ConfigMap or Secret"}, 1},
		{"its next Job reads it", []string{"cronjob/nightly"}, []string{"next Job"}, 1},
		{"a path that leads to no template", []string{"replicationcontroller/old", "--kind", "v1/ReplicationController=spec.pod", "--now"}, []string{"spec.pod isn't a pod template"}, 1},
		{"only the installation makes its key", []string{web, "--controller-namespace", s.Namespace}, []string{"--controller-namespace", "not found"}, 1},
		{"no such form", []string{web, "--form", "label"}, []string{"--form", "annotation", "env"}, 2},
		{"no such workload", []string{"deployment/nobody"}, []string{"nobody", "not found"}, 1},
		{"no such kind", []string{"gadget/web"}, []string{"gadget", "deployment", "--kind"}, 2},
		{"half a name", []string{"web"}, []string{"KIND/NAME"}, 2},
		{"no name", nil, []string{"name at least one workload"}, 2},
	}
	for _, tc := range cases {
		output, code := s.roll(t, tc.args...)
		if code != tc.code {
			t.Errorf("%s: lockstep roll %q: exit code %d, want %d\n%s", tc.reason, tc.args, code, tc.code, output)
		}
		for _, text := range tc.says {
			if !strings.Contains(output, text) {
				t.Errorf("%s: lockstep roll %q does not say %q:\n%s", tc.reason, tc.args, text, output)
			}
		}
	}
	key := &corev1.Secret{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "lockstep-installation-key"}, key); !apierrors.IsNotFound(err) {
		t.Errorf("a roll made an installation key where none was: %v", err)
	}
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.awaitKnown(t, deploy, "held", versionOf("two"))
	s.checkRollouts(t, "by hand, and not again by the controller", 1, web, "deployment/held", "deployment/listed", "deployment/silent")
	s.checkRollouts(t, "left alone", 0, "deployment/nothing", "cronjob/nightly")
}

// TestRollInTheEnvironment: beside a controller that writes the environment variable
// a roll writes it too, where it is told to and where it finds one.
func TestRollInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.annotate(t, web, settings.Quiet, "1h")
	s.run(t, "--form", "env", "--max-delay", "2h")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	for turn, flags := range [][]string{{"--form", "env"}, nil} {
		s.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		if output, code := s.roll(t, append([]string{web, "--now"}, flags...)...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, output)
		}
		s.awaitRollouts(t, web, turn+1)
		s.awaitKnown(t, deploy, "web", versionOf(fmt.Sprintf("turn-%d", turn)))
		if shown := s.shown(t, web); shown != "" {
			t.Errorf("the template has the annotation %q, want the variable", shown)
		}
		env := s.Deployment(t, "web").Spec.Template.Spec.Containers[0].Env
		if len(env) != 1 || env[0].Name != settings.InputsVariable || !strings.HasPrefix(env[0].Value, "configmap/app~") {
			t.Errorf("the environment is %v", env)
		}
	}
}
