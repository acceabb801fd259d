package reload_test

import (
	"syscall"
	"testing"

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
	s.pass = s.witness.Pass
	s.make(t, simple()+secret("db", "key: one")+configMap("calm", "key: one")+configMap("reborn", "key: one")+
		workload("StatefulSet", "db", auto, uses("configmap/app", "secret/db"))+
		workload("StatefulSet", "calm", auto, uses("configmap/calm", "configmap/reborn")))
	c := s.run(t)
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app", "secret/db")
	s.awaitKnown(t, "StatefulSet.apps", "calm", "configmap/calm", "configmap/reborn")

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
	s.awaitRollouts(t, "statefulset/db", 1)
	s.checkRollouts(t, "one rollout for both", 1, "statefulset/db")
	s.checkRollouts(t, "listed again as it was", 0, "statefulset/calm")
	select {
	case <-c.Done():
		t.Error("the controller ended")
	default:
	}
}
