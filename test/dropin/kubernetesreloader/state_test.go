package kubernetesreloader_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// writesState matches the program's writes to its state.
func writesState() func(*http.Request) bool { return patches("configmaps/" + stateName) }

// TestAdoptsState starts where the original left off.
func TestAdoptsState(t *testing.T) {
	t.Parallel()
	s := newBareSite(t)
	s.createState(t, map[string]string{
		"v1.ConfigMap_same": sum("1"), "v1.ConfigMap_changed": sum("0"), "v1.ConfigMap_odd": "no digest",
		"v1.ConfigMap_nobody": sum("1"), "note": "of somebody",
	})
	same, changed, odd := s.deployment("same", "same"), s.deployment("changed", "changed"), s.deployment("odd", "odd")
	same.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "_RELOADER_CONFIGMAP_SAME", Value: sum("1")}}
	cm := s.configMap("same", "1")
	s.create(t, cm, s.configMap("changed", "1"), s.configMap("odd", "1"), same, changed, odd)

	program := s.run(t)
	s.awaitRolled(t, changed, 1, map[string]string{"main/_RELOADER_CONFIGMAP_CHANGED": sum("1")})
	s.awaitState(t, map[string]string{"v1.ConfigMap_same": sum("1"), "v1.ConfigMap_changed": sum("1"), "v1.ConfigMap_odd": sum("1")})
	s.awaitNoState(t, "v1.ConfigMap_nobody")
	s.fence(t)
	s.mustHave(t, same, 0)
	s.mustHave(t, odd, 0)
	if got := s.state(t)["note"]; got != "of somebody" {
		t.Errorf("a key that is none of ours became %q", got)
	}
	awaitLog(t, program, "v1.ConfigMap_odd")

	// From now on the strong digest decides: the SHA-1 does not see this change.
	before := s.state(t)["v1.ConfigMap_same.sha256"]
	cm.BinaryData = map[string][]byte{"image": {0xff}}
	s.update(t, cm)
	strong := s.awaitStrong(t, "v1.ConfigMap_same", before)
	s.awaitRolled(t, same, 1, map[string]string{"main/_RELOADER_CONFIGMAP_SAME": sum("1") + "-" + strong})
}

// TestRestart: a restart rolls nobody, and what changed meanwhile is delivered,
// also what was created, and not what was away only for a while.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d, idle, later, away := s.deployment("web", "web"), s.deployment("idle", "idle"), s.deployment("later", "later"), s.deployment("away", "away")
	cm := s.configMap("web", "1")
	s.create(t, cm, s.configMap("idle", "1"), s.configMap("away", "1"), d, idle, later, away)
	program := s.runProcess(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1"), "v1.ConfigMap_idle": sum("1"), "v1.ConfigMap_away": sum("1")})
	s.fence(t) // The source that does not exist is on record as well.
	if code := program.Stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	s.set(t, cm, "2")
	s.create(t, s.configMap("later", "1"))
	s.remove(t, s.configMap("away", ""))
	s.run(t)
	s.create(t, s.configMap("away", "1"))
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
	s.awaitRolled(t, later, 1, map[string]string{"main/_RELOADER_CONFIGMAP_LATER": sum("1")})
	s.fence(t)
	s.mustHave(t, idle, 0)
	s.mustHave(t, away, 0)
}

// TestBelievesTheOriginal goes back to the original and forth again.
func TestBelievesTheOriginal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "1"), s.deployment("web", "web")
	s.create(t, cm, d)
	program := s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	program.Stop(t)
	// The original knows nothing of the second key.
	state := &corev1.ConfigMap{ObjectMeta: s.meta(stateName), Data: s.state(t)}
	state.Data["v1.ConfigMap_web"] = sum("2")
	s.update(t, state)
	s.set(t, cm, "2")
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("2")})
	s.fence(t)
	s.mustHave(t, d, 0)
}

// TestKilledBeforePatch: a change that waits for its quiet window outlives the
// process, because the state still has what was delivered.
func TestKilledBeforePatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "1"), s.deployment("web", "web")
	s.create(t, cm, d)
	program := s.runProcess(t, "--coalesce-period=600000")
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	s.set(t, cm, "2")
	awaitLog(t, program, "verb=wait")
	s.awaitFlush(t)
	program.Signal(t, syscall.SIGKILL)
	program.ExitCode(t, patience)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	s.run(t)
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
}

// awaitFlush waits until the program has written its state, so that everything
// it would have written before is written.
func (s *site) awaitFlush(t *testing.T) {
	t.Helper()
	cm := s.configMap("flush", "1")
	s.create(t, cm, s.deployment("flush", "flush"))
	s.awaitState(t, map[string]string{"v1.ConfigMap_flush": sum("1")})
}

// TestKilledBeforeStateWrite: what a template shows was delivered, though nobody
// could write that down. The process goes on while it cannot, and says so once.
func TestKilledBeforeStateWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, binary := s.configMap("web", "1"), s.configMap("binary", "1")
	d, b := s.deployment("web", "web"), s.deployment("binary", "binary")
	b.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "_RELOADER_CONFIGMAP_BINARY", Value: sum("1")}}
	s.create(t, cm, binary, d, b)
	program := s.runProcess(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1"), "v1.ConfigMap_binary": sum("1")})
	refusal := s.gate.answer(writesState(), always, status(http.StatusServiceUnavailable, "ServiceUnavailable"))
	s.set(t, cm, "2")
	binary.BinaryData = map[string][]byte{"image": {0xff}}
	s.update(t, binary)
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
	awaitLog(t, program, "cannot read or write the state")
	labtest.Eventually(t, patience, func() (bool, string) {
		n := s.gate.took(refusal)
		return n >= 3, fmt.Sprintf("the state was written %d times, want 3", n)
	})
	if said := strings.Count(program.Stdout(), "cannot read or write the state"); said != 1 {
		t.Errorf("the same problem is in the log %d times, want once", said)
	}
	program.Signal(t, syscall.SIGKILL)
	program.ExitCode(t, patience)
	s.gate.lift(refusal)
	if got := s.state(t)["v1.ConfigMap_web"]; got != sum("1") {
		t.Fatalf("the state says %s, want the old digest: nothing was written", got)
	}
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("2")})
	s.fence(t)
	s.mustHave(t, d, 1)
	s.mustHave(t, b, 1)
}

// TestStateWriteIsRepeated: a failed write is made again without a new change.
func TestStateWriteIsRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	refusal := s.gate.answer(writesState(), 2, status(http.StatusInternalServerError, "InternalError"))
	s.create(t, s.configMap("web", "1"), s.deployment("web", "web"))
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	if took := s.gate.took(refusal); took != 2 {
		t.Errorf("%d writes were refused, want 2", took)
	}
}

// TestNoState: without the object and the permission to make it the program works
// from memory, says so once, and writes when the object is there.
func TestNoState(t *testing.T) {
	t.Parallel()
	s := newBareSite(t)
	cm, d := s.configMap("web", "1"), s.deployment("web", "web")
	s.create(t, cm, d)
	program := s.run(t)
	awaitLog(t, program, "cannot read or write the state")
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
	if said := strings.Count(program.Stdout(), "cannot read or write the state"); said != 1 {
		t.Errorf("the same problem is in the log %d times, want once", said)
	}
	s.createState(t, nil)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("2")})
}

// TestStateIsMade: with the permission to make the object it is made, at start and
// when somebody has deleted it.
func TestStateIsMade(t *testing.T) {
	t.Parallel()
	s := newBareSite(t)
	s.account.Allow(t, append(role(), labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})...)
	s.create(t, s.configMap("web", "1"), s.deployment("web", "web"))
	s.run(t)
	s.awaitStateExists(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	s.remove(t, &corev1.ConfigMap{ObjectMeta: s.meta(stateName)})
	s.awaitStateExists(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
}

// TestStateIsLost: what somebody takes out of the state is written again, also
// when the object was gone and somebody else made it.
func TestStateIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.deployment("web", "web")
	s.create(t, s.configMap("web", "1"), d)
	s.run(t)
	want := map[string]string{"v1.ConfigMap_web": sum("1")}
	s.awaitState(t, want)
	s.update(t, &corev1.ConfigMap{ObjectMeta: s.meta(stateName)})
	s.awaitState(t, want)
	s.remove(t, &corev1.ConfigMap{ObjectMeta: s.meta(stateName)})
	s.fence(t)
	s.createState(t, nil)
	s.awaitState(t, want)
	s.mustHave(t, d, 0)
}

// TestPatchFails: a refused patch is made again until it works; the state is
// written only when everybody has the change.
func TestPatchFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm := s.configMap("web", "1")
	first, second := s.deployment("first", "web"), s.deployment("second", "web")
	s.create(t, cm, first, second)
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	rules := []*rule{
		s.gate.answer(patches("deployments/second"), 1, status(http.StatusInternalServerError, "InternalError")),
		s.gate.answer(patches("deployments/second"), 1, status(http.StatusTooManyRequests, "TooManyRequests")),
		s.gate.answer(patches("deployments/second"), 1, status(http.StatusConflict, "Conflict")),
		s.gate.answer(patches("deployments/second"), 1, status(http.StatusForbidden, "Forbidden")),
		s.gate.answer(patches("deployments/second"), 1, func(http.ResponseWriter, *http.Request) {
			if got := s.state(t)["v1.ConfigMap_web"]; got != sum("1") {
				t.Errorf("the state says %s before everybody has the change", got)
			}
			panic(http.ErrAbortHandler)
		}),
	}
	s.set(t, cm, "2")
	want := map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")}
	s.awaitRolled(t, first, 1, want)
	s.awaitRolled(t, second, 1, want)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("2")})
	for i, r := range rules {
		if s.gate.took(r) != 1 {
			t.Errorf("refusal %d was never asked for", i)
		}
	}
}

// TestTemplateChangesUnderway: somebody adds a container between the decision
// and the patch, so that every position in the decision is wrong.
func TestTemplateChangesUnderway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "1"), s.deployment("web", "web")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "_RELOADER_CONFIGMAP_WEB", Value: sum("1")}}
	s.create(t, cm, d)
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	s.gate.answer(patches("deployments/web"), 1, func(w http.ResponseWriter, r *http.Request) {
		injected := corev1.Container{Name: "sidecar", Image: "example.com/app:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}
		spec := &d.Spec.Template.Spec
		spec.Containers = append([]corev1.Container{injected}, spec.Containers...)
		s.update(t, d)
		// A rollout of somebody else delivers what exists; another change does not.
		s.update(t, s.configMap("web", "3"))
		s.gate.proxy.ServeHTTP(w, r)
	})
	s.set(t, cm, "2")
	s.awaitRolled(t, &appsv1.Deployment{ObjectMeta: s.meta("web")}, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("3")})
	spec := s.podSpec(t, d)
	if env := spec.Containers[0].Env; len(env) != 1 || env[0].Name != "A" {
		t.Errorf("the environment of somebody else's container became %v", env)
	}
}
