package reload_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// shardName is the ConfigMap that a Deployment's entry belongs into.
func (s *stage) shardName(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(deploy + "_" + s.Namespace + "_" + name))
	return fmt.Sprintf("lockstep-state-%02d", h.Sum32()%64)
}

// sameShard are names of Deployments whose entries belong into one ConfigMap, and one
// whose entry does not.
func (s *stage) sameShard(count int) (same []string, other string) {
	for i := 0; len(same) < count || other == ""; i++ {
		name := fmt.Sprint("w", i)
		switch {
		case len(same) == 0 || len(same) < count && s.shardName(name) == s.shardName(same[0]):
			same = append(same, name)
		case s.shardName(name) != s.shardName(same[0]):
			other = name
		}
	}
	return same, other
}

// listing is an annotation that asks for one source that exists and for many that do
// not.
func listing(many int) string {
	names := []string{"configmap/app"}
	for i := range many {
		names = append(names, fmt.Sprintf("configmap/%s-%03d", strings.Repeat("n", 50), i))
	}
	return settings.Reload + ": \"" + strings.Join(names, ",") + "\""
}

// TestNoRoomInTheRecord: a namespace that has taken its room of the record gets no more.
// The workload that came last says so and is not moved; the others are.
func TestNoRoomInTheRecord(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one"))
	names, _ := s.sameShard(2)
	first, second := names[0], names[1]
	s.make(t, deployment(first, listing(180), uses("configmap/app")))
	s.run(t)
	s.awaitKnown(t, deploy, first, "configmap/app")
	s.make(t, deployment(second, listing(180), uses("configmap/app")))
	s.AwaitEvent(t, second, "Warning RecordFull", "namespace "+s.Namespace, s.shardName(second), "leaves the workload alone")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/"+first, 1)
	s.checkRollouts(t, "what it was given could not be put on record", 0, "deployment/"+second)
	s.annotate(t, "deployment/"+second, settings.Reload, "auto")
	s.awaitKnown(t, deploy, second, "configmap/app")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, "deployment/"+second, 1)
}

// TestAShardThatCannotBeWritten is named by readiness, a metric and an event. Workloads
// of all other shards are on record, its own are moved from memory, and it is written
// as soon as it can be.
func TestAShardThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one"))
	names, other := s.sameShard(1)
	shard := s.shardName(names[0])
	foreign := testkit.ConfigMap(shard, "theirs", "1")
	foreign.Namespace = s.Own
	s.Create(t, foreign)
	s.make(t, deployment(names[0], auto, uses("configmap/app"))+deployment(other, auto, uses("configmap/app")))
	c, metric := s.runMeasured(t)
	c.AwaitVerbose(t, "[-] record "+shard+": RecordUnwritable", "another ConfigMap with this name exists")
	c.AwaitReady(t, true)
	if series := fmt.Sprintf("lockstep_state_unwritable{configmap=%q}", shard); metric(series) != 1 {
		t.Errorf("the metrics do not show %s", series)
	}
	s.awaitKnown(t, deploy, other, "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/"+names[0], 1)
	s.awaitRollouts(t, "deployment/"+other, 1)
	own := &testkit.World{Cluster: s.Cluster, Client: s.Client, Namespace: s.Own, Own: s.Own}
	own.AwaitEvent(t, shard, "Warning RecordUnwritable", "only in memory", "another ConfigMap with this name exists")

	if err := s.Client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.awaitKnown(t, deploy, names[0], digest(t, s.shown(t, "deployment/"+names[0]), "configmap/app"))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, text := c.Probe(t, "/readyz?verbose")
		return !strings.Contains(text, "RecordUnwritable"), text
	})
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Own, Name: shard}, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}
