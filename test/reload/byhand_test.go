package reload_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// deletePods deletes pods of a workload by their ordinal or all of them, as a person
// does for an updateStrategy OnDelete.
func (s *stage) deletePods(t testing.TB, app string, names ...string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for i := range list.Items {
		p := &list.Items[i]
		if len(names) > 0 && !strings.Contains(strings.Join(names, " "), p.Name) {
			continue
		}
		if err := s.Client.Delete(t.Context(), p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		deleted++
	}
	if deleted == 0 {
		t.Fatalf("there is no pod of %s among %q", app, names)
	}
}

// awaitPods waits until the status of a workload counts so many pods, all of its current
// template.
func (s *stage) awaitPods(t testing.TB, ref, field string, want int64) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		status, _ := s.read(t, ref).Object["status"].(map[string]any)
		got, _ := status[field].(int64)
		return got == want, fmt.Sprintf("%s of %s is %d, want %d", field, ref, got, want)
	})
}

// checkNoEvent fails when the workload has an event with the text.
func (s *stage) checkNoEvent(t testing.TB, name, text string) {
	t.Helper()
	s.pass(t)
	for _, note := range s.Events(t, name) {
		if strings.Contains(note, text) {
			t.Errorf("there is an event too many: %q", note)
		}
	}
}

// TestOnDelete: pods take up the template when a person deletes them. Until the last one
// is gone the change waits, also over a restart of the controller.
func TestOnDelete(t *testing.T) {
	t.Parallel()
	onDelete := "updateStrategy: {type: OnDelete}, "
	set := strings.Replace(workload("StatefulSet", "db", auto, uses("configmap/app")), "replicas: 0", "replicas: 2, podManagementPolicy: Parallel, "+onDelete[:len(onDelete)-2], 1)
	agent := strings.Replace(workload("DaemonSet", "agent", auto, uses("configmap/app")), "spec: {", "spec: {"+onDelete, 1)
	s := newStage(t, configMap("app", "key: one")+set+agent, labtest.KWOK)
	s.awaitPods(t, "statefulset/db", "availableReplicas", 2)
	c, metric := s.runMeasured(t)
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app")
	s.awaitKnown(t, "DaemonSet.apps", "agent", "configmap/app")

	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, ref := range []string{"statefulset/db", "daemonset/agent"} {
		s.awaitRollouts(t, ref, 1)
		s.AwaitEvent(t, strings.Split(ref, "/")[1], "Normal AwaitsPods", "configmap/app", "OnDelete")
	}
	s.awaitPods(t, "daemonset/agent", "updatedNumberScheduled", 0)
	s.checkNoEvent(t, "db", "Reloaded")
	if got := metric(`lockstep_pending_workloads{reason="AwaitsPods"}`); got != 2 {
		t.Errorf("%v workloads wait, want both", got)
	}
	s.deletePods(t, "agent")
	s.AwaitEvent(t, "agent", "Normal Reloaded", "configmap/app "+short("two"))

	s.deletePods(t, "db", "db-1")
	s.awaitPods(t, "statefulset/db", "updatedReplicas", 1)
	s.checkRollouts(t, "one pod is left", 1, "statefulset/db")
	s.checkNoEvent(t, "db", "Reloaded")
	stop(t, c)
	s.run(t)
	s.deletePods(t, "db", "db-0")
	s.AwaitEvent(t, "db", "Normal Reloaded", "configmap/app "+short("two"))
	s.checkRollouts(t, "all pods are new", 1, "statefulset/db", "daemonset/agent")
}

// TestPartition: pods below the partition keep the old template until it is lowered.
func TestPartition(t *testing.T) {
	t.Parallel()
	set := strings.Replace(workload("StatefulSet", "db", auto, uses("configmap/app")), "replicas: 0",
		"replicas: 2, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 1}}", 1)
	s := newStage(t, configMap("app", "key: one")+set, labtest.KWOK)
	s.awaitPods(t, "statefulset/db", "availableReplicas", 2)
	s.run(t)
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "db", "Normal AwaitsPods", "configmap/app", "partition", "1 pod")
	s.awaitPods(t, "statefulset/db", "updatedReplicas", 1)
	s.checkNoEvent(t, "db", "Reloaded")
	s.change(t, "statefulset/db", "{spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}")
	s.AwaitEvent(t, "db", "Normal Reloaded", "configmap/app")
}
