package reload_test

import (
	"fmt"
	"strings"
	"testing"

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

// crowd watches which pods a workload ever had, and how few were ready at once.
type crowd struct {
	stop func()
	ever map[types.UID]bool
}

// watchCrowd notes the pods of a workload until stop is called.
func (s *stage) watchCrowd(t testing.TB, app string) *crowd {
	t.Helper()
	c := &crowd{ever: map[types.UID]bool{}}
	events, err := testkit.NewClient(t, s.Cluster.Kubeconfig()).Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				c.ever[pod.UID] = true
			}
		}
	}()
	c.stop = func() {
		events.Stop()
		<-done
	}
	return c
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
	c := s.run(t, "--pod-strategies")
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app")
	first := s.pods(t, "db")
	crowd := s.watchCrowd(t, "db")
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
	c = s.run(t, "--pod-strategies")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // until the first has gone
		gone := 0
		for i, pod := range s.pods(t, "db") {
			if pod.UID != first[i].UID {
				gone++
			}
		}
		return gone > 0, "nobody was evicted within the budget"
	})
	if got := s.remembered(t, "StatefulSet.apps", "db"); !strings.Contains(got, field(began, "evictSince")) {
		t.Errorf("the series began again: %s, was %s", got, began)
	}
	kill(t, c)
	s.run(t, "--pod-strategies")
	s.AwaitEvent(t, "db", "Normal Evicted", "configmap/app")
	s.awaitReady(t, "db", 3)
	s.awaitKnown(t, "StatefulSet.apps", "db", versionOf("two"))
	s.checkRollouts(t, "the operator's template is not touched", 1, "statefulset/db") // the test's own scaling
	crowd.stop()
	if got := len(crowd.ever); got != 6 {
		t.Errorf("the workload had %d pods, want 3 and their 3 successors: nobody is evicted twice", got)
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
		s.AwaitEvent(t, name, "Normal Refreshed", "configmap/app")
		s.awaitKnown(t, deploy, name, versionOf("two"))
	}
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
	s.checkRollouts(t, "refreshed", 0, "deployment/files", "deployment/variables", "deployment/subpath")
}

// TestPodStrategiesAreOff: without the rights on pods the workload is left alone,
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
	s.AwaitEvent(t, "refreshed", "Normal Refreshed")
	s.checkRollouts(t, "switched on", 0, "deployment/evicted", "deployment/refreshed")
}
