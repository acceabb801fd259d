package reload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// pods are the running pods of a workload.
func (s *stage) pods(t testing.TB, app string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	var running []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}
	return running
}

// awaitReady waits until that many pods of a workload are ready.
func (s *stage) awaitReady(t testing.TB, app string, want int) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		ready := 0
		for _, pod := range s.pods(t, app) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == want, fmt.Sprintf("%d pods of %s are ready, want %d", ready, app, want)
	})
}

// watchEvictions notes which pods of a workload are evicted, until stop is called.
// To count the pods instead would be wrong: a fake node deletes by name, and at
// times takes the successor of a pod that was already gone.
func (s *stage) watchEvictions(t testing.TB, app string) (stop func() map[types.UID]bool) {
	t.Helper()
	evicted := map[types.UID]bool{}
	events, err := testkit.NewClient(t, s.Cluster.Kubeconfig()).Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && isEvicted(pod) {
				evicted[pod.UID] = true
			}
		}
	}()
	return func() map[types.UID]bool {
		events.Stop()
		<-done
		return evicted
	}
}

// isEvicted reads what the API server writes into a pod before it evicts it.
func isEvicted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	})
}

const budget = `
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: keep}, spec: {minAvailable: %d, selector: {matchLabels: {app: db}}}}
`

// TestEvict: pods go one at a time, within the disruption budget, each once, also
// when the controller is killed in the middle; the template is not touched.
func TestEvict(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+
		workload("StatefulSet", "db", auto+", "+settings.Strategy+": evict", uses("configmap/app")+", terminationGracePeriodSeconds: 0")+
		fmt.Sprintf(budget, 3), labtest.KWOK)
	s.change(t, "statefulset/db", "{spec: {replicas: 3, podManagementPolicy: OrderedReady}}")
	s.awaitReady(t, "db", 3)
	c := s.runProcess(t, "--pod-strategies")
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app")
	first := s.pods(t, "db")
	stop := s.watchEvictions(t, "db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "db", "Normal Evicting", "configmap/app")
	s.awaitKnown(t, "StatefulSet.apps", "db", "evictFor", "evictSince")
	s.witness.Pass(t)
	for i, pod := range s.pods(t, "db") {
		if pod.UID != first[i].UID {
			t.Errorf("%s was evicted against the budget", pod.Name)
		}
	}
	began := s.remembered(t, "StatefulSet.apps", "db")

	kill(t, c)
	s.delete(t, "budget/keep")
	s.make(t, fmt.Sprintf(budget, 2))
	c = s.runProcess(t, "--pod-strategies")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // until the first has gone
		gone := 0
		for i, pod := range s.pods(t, "db") {
			if pod.UID != first[i].UID {
				gone++
			}
		}
		return gone > 0, "Lockstep hasn't evicted a pod although the budget allows it: " + s.remembered(t, "StatefulSet.apps", "db")
	})
	// The series may be over by now, and then the record does not say when it began.
	got := s.remembered(t, "StatefulSet.apps", "db")
	if strings.Contains(got, "evictSince") && !strings.Contains(got, field(began, "evictSince")) {
		t.Errorf("the series began again: %s, was %s", got, began)
	}
	kill(t, c)
	s.run(t, "--pod-strategies")
	s.AwaitEvent(t, "db", "Normal Evicted", "configmap/app")
	s.awaitReady(t, "db", 3)
	s.awaitKnown(t, "StatefulSet.apps", "db", versionOf("two"))
	s.checkRollouts(t, "the operator's template is not touched", 1, "statefulset/db") // the test's own scaling
	want := map[types.UID]bool{}
	for _, pod := range first {
		want[pod.UID] = true
	}
	if diff := cmp.Diff(want, stop()); diff != "" {
		t.Errorf("evicted are (-every old pod +these), and nobody may be evicted twice:\n%s", diff)
	}
}

// field is the text of one field of an entry.
func field(entry, name string) string {
	_, rest, found := strings.Cut(entry, `"`+name+`":`)
	if !found {
		return "no " + name
	}
	value, _, _ := strings.Cut(rest, ",")
	return strings.TrimRight(value, "}")
}

// TestRefresh: nothing is restarted; the pods are touched, and what a refresh
// cannot reach is told.
func TestRefresh(t *testing.T) {
	t.Parallel()
	refresh := auto + ", " + settings.Strategy + ": refresh"
	mount := "containers: [{name: app, image: app, volumeMounts: [{name: v, mountPath: /v%s}]}], volumes: [{name: v, configMap: {name: app}}], terminationGracePeriodSeconds: 0"
	s := newStage(t, configMap("app", "key: one")+
		deployment("files", refresh, fmt.Sprintf(mount, ""))+
		deployment("variables", refresh, uses("configmap/app"))+
		deployment("subpath", refresh, fmt.Sprintf(mount, ", subPath: key")), labtest.KWOK)
	names := []string{"files", "variables", "subpath"}
	for _, name := range names {
		s.change(t, "deployment/"+name, "{spec: {replicas: 2}}")
		s.awaitReady(t, name, 2)
	}
	s.run(t, "--pod-strategies")
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "configmap/app")
	}
	before := s.pods(t, "files")
	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, name := range names {
		s.awaitKnown(t, deploy, name, versionOf("two"))
	}
	s.AwaitEvent(t, "files", "Normal Refreshed", "configmap/app")
	for i, pod := range s.pods(t, "files") {
		if pod.UID != before[i].UID || !strings.HasPrefix(pod.Annotations[settings.Inputs], "configmap/app~") {
			t.Errorf("%s shows %q, want it to be the old one, touched", pod.Name, pod.Annotations[settings.Inputs])
		}
	}
	s.AwaitEvent(t, "variables", "Warning NotRefreshable", "configmap/app", "restart")
	s.AwaitEvent(t, "subpath", "Warning NotRefreshable", "configmap/app", "restart")
	for _, note := range s.Events(t, "files") {
		if strings.Contains(note, "NotRefreshable") {
			t.Errorf("mounted files can be refreshed, and are told not to be: %s", note)
		}
	}
	for _, note := range s.Events(t, "variables") {
		if strings.Contains(note, "Normal Refreshed") {
			t.Errorf("an environment cannot be refreshed, and is told to be: %s", note)
		}
	}
	s.checkRollouts(t, "refreshed", 0, "deployment/files", "deployment/variables", "deployment/subpath")
}

// TestPodStrategiesAreOff: without the permissions on pods the workload is left alone,
// and told so; switching them on delivers what was held.
func TestPodStrategiesAreOff(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+
		deployment("evicted", auto+", "+settings.Strategy+": evict", uses("configmap/app"))+
		deployment("refreshed", auto+", "+settings.Strategy+": refresh", uses("configmap/app")))
	c := s.run(t)
	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, name := range []string{"evicted", "refreshed"} {
		s.AwaitEvent(t, name, "Warning StrategyOff", "--pod-strategies", "configmap/app")
	}
	s.checkRollouts(t, "switched off", 0, "deployment/evicted", "deployment/refreshed")
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.run(t, "--pod-strategies")
	s.AwaitEvent(t, "evicted", "Normal Evicted")
	s.AwaitEvent(t, "refreshed", "Warning NotRefreshable")
	s.checkRollouts(t, "switched on", 0, "deployment/evicted", "deployment/refreshed")
}

// forPods are objects whose pods are moved, of kinds that make them in different
// ways: itself, through a ReplicaSet, on each node, or as an operator would.
func forPods(strategy string) string {
	annotations := auto + ", " + settings.Strategy + ": " + strategy
	return workload("DaemonSet", "agent", annotations, mounts) +
		strings.Replace(fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+mounts+"}}"), auto, annotations, 1) +
		fmt.Sprintf(replicationController, annotations, mounts)
}

const (
	mounts = "containers: [{name: app, image: app, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, configMap: {name: app}}], terminationGracePeriodSeconds: 0"

	// replicationController has a plain map for a selector.
	replicationController = `
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old, annotations: {%s}}
spec: {replicas: 1, selector: {app: old}, template: {metadata: {labels: {app: old}}, spec: {%s}}}
`
	// bystanders bear the labels of the Rollout, which nothing forbids, or of nobody.
	bystanders = `
---
{apiVersion: v1, kind: Pod, metadata: {name: bare, labels: {app: nobody, team: other}}, spec: {containers: [{name: app, image: app}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: namesake, labels: {app: canary, team: other}}, spec: {containers: [{name: app, image: app}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: neighbour}
spec:
  replicas: 2
  selector: {matchLabels: {team: other}}
  template: {metadata: {labels: {app: canary, team: other}}, spec: {containers: [{name: app, image: app}]}}
`
)

// podKinds are the workloads of forPods, by the names that events and labels have.
func podKinds() []string { return []string{"agent", "canary", "old"} }

const oldKind = "v1/ReplicationController=spec.template"

// newCrowdStage has the workloads of forPods on it, running, beside bystanders.
func newCrowdStage(t *testing.T, strategy string) (s *stage, spared map[types.UID]bool) {
	t.Helper()
	s = newStage(t, configMap("app", "key: one")+forPods(strategy)+bystanders, labtest.KWOK, labtest.ArgoRollouts)
	for _, name := range podKinds() {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			return len(s.pods(t, name)) > len(s.bystanders(t, name)), name + " has no pods"
		})
	}
	spared = map[types.UID]bool{}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for _, pod := range s.bystanders(t, "") {
			spared[pod.UID] = true
		}
		return len(spared) == 4, fmt.Sprintf("%d bystanders, want 4", len(spared))
	})
	s.run(t, "--pod-strategies", "--kind", oldKind)
	for i, groupKind := range []string{"DaemonSet.apps", "Rollout.argoproj.io", "ReplicationController."} {
		s.awaitKnown(t, groupKind, podKinds()[i], "configmap/app")
	}
	return s, spared
}

// bystanders are the pods that belong to nobody here; those with a label "app" of
// that value, when it is given.
func (s *stage) bystanders(t testing.TB, app string) []corev1.Pod {
	t.Helper()
	labels := client.MatchingLabels{"team": "other"}
	if app != "" {
		labels["app"] = app
	}
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), labels); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// checkSpared: nobody else's pod was evicted or touched.
func (s *stage) checkSpared(t *testing.T, spared map[types.UID]bool) {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace)); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, pod := range list.Items {
		if !spared[pod.UID] {
			continue
		}
		left++
		if pod.DeletionTimestamp != nil || pod.Annotations[settings.Inputs] != "" {
			t.Errorf("%s belongs to nobody here, and was evicted or touched", pod.Name)
		}
	}
	if left != len(spared) {
		t.Errorf("%d of %d pods that belong to nobody here are left", left, len(spared))
	}
}

// TestEvictEveryKind: whoever makes the pods, each gets a successor, and pods that
// only look alike are left alone.
func TestEvictEveryKind(t *testing.T) {
	t.Parallel()
	s, spared := newCrowdStage(t, "evict")
	before := map[string]types.UID{}
	for _, name := range podKinds() {
		for _, pod := range s.pods(t, name) {
			before[name+" "+string(pod.UID)] = pod.UID
		}
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, name := range podKinds() {
		s.AwaitEvent(t, name, "Normal Evicted", "configmap/app")
		for _, pod := range s.pods(t, name) {
			if before[name+" "+string(pod.UID)] != "" && !spared[pod.UID] {
				t.Errorf("%s of %s was not evicted", pod.Name, name)
			}
		}
	}
	s.checkSpared(t, spared)
}

// TestRefreshEveryKind does the same for pods that are only touched.
func TestRefreshEveryKind(t *testing.T) {
	t.Parallel()
	s, spared := newCrowdStage(t, "refresh")
	s.change(t, "configmap/app", "{data: {key: two}}")
	for _, name := range podKinds() {
		s.AwaitEvent(t, name, "Normal Refreshed", "configmap/app")
		for _, pod := range s.pods(t, name) {
			if !spared[pod.UID] && !strings.HasPrefix(pod.Annotations[settings.Inputs], "configmap/app~") {
				t.Errorf("%s of %s was not touched", pod.Name, name)
			}
		}
	}
	s.checkSpared(t, spared)
}
