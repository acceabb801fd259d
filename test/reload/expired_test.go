package reload_test

import (
	"crypto/rand"
	"fmt"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestExpiredWatch: a controller that slept comes back to an API server that no
// longer knows the past, lists again, and delivers what changed exactly once. What
// only looks new because it was listed again restarts nobody.
func TestExpiredWatch(t *testing.T) {
	t.Parallel()
	cluster := labtest.Private(t, labtest.Options{})
	w := testkit.NewWorldOn(t, cluster)
	s := &stage{World: w, witness: w.NewWitness(t)}
	s.pass = s.passByRecord
	s.make(t, simple()+secret("db", "key: one")+configMap("calm", "key: one")+configMap("reborn", "key: one")+
		workload("StatefulSet", "db", auto, uses("configmap/app", "secret/db"))+
		workload("StatefulSet", "calm", auto, uses("configmap/calm", "configmap/reborn")))
	c := s.run(t)
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app", "secret/db")
	s.awaitKnown(t, "StatefulSet.apps", "calm", "configmap/calm", "configmap/reborn")
	before := s.given(t, "StatefulSet.apps", "db", input.Secret("db"))

	c.Signal(t, syscall.SIGSTOP)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.change(t, "configmap/calm", "{metadata: {labels: {a: b}}}")
	s.delete(t, "configmap/reborn")
	s.make(t, configMap("reborn", "key: one"))
	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Signal(t, syscall.SIGCONT)
	s.awaitKnown(t, "StatefulSet.apps", "db", versionOf("two"))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return s.given(t, "StatefulSet.apps", "db", input.Secret("db")) != before, "the Secret is not delivered"
	})
	s.pass(t)
	// The kinds come back one by one, and up to half a minute apart.
	if got := s.rollouts(t, "statefulset/db"); got < 1 || got > 2 {
		t.Errorf("%d rollouts for a ConfigMap and a Secret, want one for both or one for each", got)
	}
	s.checkRollouts(t, "listed again as it was", 0, "statefulset/calm")
	select {
	case <-c.Done():
		t.Error("the controller ended")
	default:
	}
}

// given is the version of a source that a workload was given, by the record.
func (s *stage) given(t testing.TB, groupKind, name string, source input.Source) string {
	t.Helper()
	entry, err := record.Decode(s.remembered(t, groupKind, name))
	if err != nil {
		t.Fatal(err)
	}
	return entry.Inputs[source].Version.String()
}

// passByRecord returns when both kinds of sources were followed after the call.
// The template alone does not tell: a source that is heard of only after the
// rollout for another one was loaded by that rollout, and is only recorded.
func (s *stage) passByRecord(t testing.TB) {
	t.Helper()
	sources := []input.Source{input.ConfigMap("witness"), input.Secret("witness")}
	before := map[input.Source]string{}
	for _, source := range sources {
		before[source] = s.given(t, deploy, "witness", source)
	}
	s.change(t, "secret/witness", fmt.Sprintf("{stringData: {key: %s}}", rand.Text()))
	s.change(t, "configmap/witness", fmt.Sprintf("{data: {key: %s}}", rand.Text()))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for _, source := range sources {
			if s.given(t, deploy, "witness", source) == before[source] {
				return false, source.String() + " of the witness is not followed"
			}
		}
		return true, ""
	})
}
