package reload_test

import (
	"crypto/rand"
	"fmt"
	"strings"
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
	labtest.In(t, labtest.TierAll)
	cluster := labtest.Private(t, labtest.Options{})
	w := testkit.NewWorldOn(t, cluster)
	s := &stage{World: w, witness: w.NewWitness(t)}
	s.pass = s.passByRecord
	s.make(t, simple()+secret("db", "key: one")+configMap("calm", "key: one")+configMap("reborn", "key: one")+
		workload("StatefulSet", "db", auto, uses("configmap/app", "secret/db"))+
		workload("StatefulSet", "calm", auto, uses("configmap/calm", "configmap/reborn")))
	c := s.runProcess(t)
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
		return s.given(t, "StatefulSet.apps", "db", input.Secret("db")) != before, "Lockstep hasn't delivered the Secret: " + s.remembered(t, "StatefulSet.apps", "db")
	})
	s.pass(t)
	s.checkEachDeliveredOnce(t, "db", "configmap/app", "secret/db")
	s.checkRollouts(t, "listed again as it was", 0, "statefulset/calm")
	select {
	case <-c.Done():
		t.Error("the controller ended")
	default:
	}
}

// checkEachDeliveredOnce: one rollout for both sources, or one for each. After an
// outage each kind is listed again by itself, with pauses that grow to half a
// minute. Whoever waited for the other kind would hold back a change that is known
// for one that may not exist, as long as that kind cannot be read.
func (s *stage) checkEachDeliveredOnce(t testing.TB, name string, sources ...string) {
	t.Helper()
	delivered := map[string]int{}
	var notes []string
	for _, note := range s.Events(t, name) {
		if !strings.Contains(note, "Normal Reloaded") {
			continue
		}
		notes = append(notes, note)
		for _, source := range sources {
			delivered[source] += strings.Count(note, source)
		}
	}
	for _, source := range sources {
		if delivered[source] > 1 {
			t.Errorf("%s was delivered %d times: %q", source, delivered[source], notes)
		}
	}
	// The second of two may be loaded by the rollout for the first.
	if got := s.rollouts(t, "statefulset/"+name); got != len(notes) || got == 0 {
		t.Errorf("%d rollouts and the events %q, want an event for each", got, notes)
	}
}

// given is the version of a source that a workload was given, by the record.
func (s *stage) given(t testing.TB, groupKind, name string, source input.ID) string {
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
	sources := []input.ID{input.ConfigMap("witness"), input.Secret("witness")}
	before := map[input.ID]string{}
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
