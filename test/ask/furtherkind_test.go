package ask_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestFurtherKindOfTheController: the commands need a flag for a kind of the controller only if no
// Deployment has that flag.
func TestFurtherKindOfTheController(t *testing.T) {
	t.Parallel()
	const (
		further = "v1/ReplicationController=spec.template"
		old     = "replicationcontroller/old"
	)
	s := newStage(t)
	s.make(t, configMap("old")+`
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old, annotations: {`+auto+`}}
spec: {replicas: 0, selector: {app: old}, template: {metadata: {labels: {app: old}}, spec: {`+reads("old")+`}}}
`)
	s.run(t, "--kind", further)
	s.awaitOnRecord(t, old, "configmap/old")

	_, stderr, code := s.ask(t, "explain", old)
	if code != 2 || !strings.Contains(stderr, "--kind adds another kind") {
		t.Errorf("before a Deployment says it, explain ended with %d: %s", code, stderr)
	}
	s.MakeDeployed(t, "lockstep", "--namespaces="+s.Namespace, "--kind="+further)
	if e := s.explain(t, old); e.State.Reason != string(input.InStep) || e.State.From != "record" || e.input("configmap/old").Delivered == "" {
		t.Errorf("the state is %+v with the inputs %+v", e.State, e.Inputs)
	}
	if got := s.status(t, old); got.Reason != string(input.InStep) {
		t.Errorf("status lists it as %+v", got)
	}
	file := filepath.Join(t.TempDir(), "old.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: ReplicationController, metadata: {name: old}, spec: {template: {metadata: {annotations: {edited: once}}}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"plan -f " + file: old, "roll --dry-run " + old: old} {
		if stdout, stderr, code := s.ask(t, strings.Fields(command)...); code == 1 || code == 2 || !strings.Contains(stdout, want) {
			t.Errorf("%s ended with %d: %s%s", command, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := s.ask(t, "hold", old, "audit"); code != 0 || !strings.Contains(stdout, `end it with "lockstep release `+old+" -n "+s.Namespace+" --controller-namespace "+s.Own) {
		t.Errorf("hold by name ended with %d: %s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := s.ask(t, "release", old); code != 0 || !strings.Contains(stdout, `removed the hold "audit"`) {
		t.Errorf("release by name ended with %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code := s.ask(t, "explain", "gadget/old"); code != 2 || !strings.Contains(stderr, "replicationcontroller") {
		t.Errorf("a kind that nothing names ended with %d: %s", code, stderr)
	}
}
