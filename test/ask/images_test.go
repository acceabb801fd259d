package ask_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// imageScenes need a registry, and for rollouts that fail pods on a fake node.
func imageScenes() group {
	return group{
		needs: []labtest.Component{labtest.KWOK},
		open:  openGallery,
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t, append(s.gallery.flags, "--pod-strategies")...)
		},
		ready: noFurtherPods,
		scenes: []scene{
			{reason: input.Unresolved, where: inState, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+deployment(name, auto+", "+s.wants("none:1"), reads(name)))
			}},
			{reason: input.Unpinned, where: inInputs, make: follows, also: isPinnedByUs},
			{reason: input.Pinned, where: inStep, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "one")
				_, digest, _ := strings.Cut(s.push(t, name+":other", "other"), "@")
				s.make(t, deployment(name, s.wants(name+":latest"), s.runs(s.at(name)+"@"+digest)))
			}},
			{reason: input.Enforced, where: inInputs, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "one")
				_, digest, _ := strings.Cut(s.push(t, name+":other", "other"), "@")
				s.make(t, deployment(name, s.wants(name+":latest")+", "+settings.Enforce+": 'true'", s.runs(s.at(name)+"@"+digest)))
			}, also: func(t testing.TB, s *stage, e explanation) string {
				t.Helper()
				if said := s.awaitDecided(t, "deployment/enforced", string(input.Reloaded)).Message; !strings.Contains(said, settings.Enforce) {
					return "the controller does not say why: " + said
				}
				return notInStep(e)
			}},
			{reason: input.Accepted, where: inInputs, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "one")
				s.make(t, deployment(name, s.wants(name+":latest")+", "+settings.Observe+": 'true'", s.runs(s.at(name+":latest"))))
			}, also: func(t testing.TB, s *stage, e explanation) string {
				t.Helper()
				s.awaitDecided(t, "deployment/accepted", string(input.WouldReload))
				return isInStep(t, s, e)
			}},
			{reason: input.Contested, where: inState, make: follows, bring: contested},
			{reason: input.Quarantined, where: inState, make: running(""), bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "two")
				s.awaitDecided(t, "deployment/"+name, string(input.PutBack))
			}},
			{reason: input.PutBack, where: inEvents, make: running(""), bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "two")
			}},
			{reason: input.RolloutFailed, where: inState, make: running(", " + auto), bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.annotate(t, "deployment/"+name, settings.Quiet, "1h") // until both are known
				s.touch(t, name)
				s.awaitOnRecord(t, "deployment/"+name, "due:")
				_, digest, _ := strings.Cut(s.push(t, name+":latest", "two"), "@sha256:")
				s.awaitOnRecord(t, "deployment/"+name, "due:"+digest[:10])
				s.annotate(t, "deployment/"+name, settings.Quiet, testkit.Quiet)
			}},
			{reason: input.Held, where: inState, ref: "deployment/heldimage", make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "one")
				s.make(t, configMap(name)+deployment(name, s.wants(name+":latest")+", "+settings.Hold+": freeze", s.runs(s.at(name+":latest"))+", volumes: [{name: config, configMap: {name: "+name+"}}]"))
			}, also: func(_ testing.TB, _ *stage, e explanation) string {
				if e.input("configmap/heldimage").Followed {
					return "it follows an image only, and the ConfigMap is listed as followed"
				}
				return ""
			}},
			{reason: input.BeyondStrategy, where: inState, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.push(t, name+":latest", "one")
				s.make(t, configMap(name)+deployment(name, auto+", "+settings.Strategy+": evict, "+s.wants(name+":latest"), s.runs(s.at(name+":latest"))+", volumes: [{name: config, configMap: {name: "+name+"}}]"))
			}},
		},
	}
}

// follows makes a Deployment that follows the tag of a repository of its name.
func follows(t testing.TB, s *stage, name string) {
	t.Helper()
	s.push(t, name+":latest", "one")
	s.make(t, deployment(name, s.wants(name+":latest"), s.runs(s.at(name+":latest"))))
}

// running does the same with a pod.
func running(annotations string) func(testing.TB, *stage, string) {
	return func(t testing.TB, s *stage, name string) {
		t.Helper()
		s.push(t, name+":latest", "one")
		s.make(t, configMap(name)+fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, annotations: {%s}}
spec:
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector: {matchLabels: {app: %s}}
  template: {metadata: {labels: {app: %s}}, spec: {%s, volumes: [{name: config, configMap: {name: %s}}]}}
`, name, s.wants(name+":latest")+annotations, name, name, s.runs(s.at(name+":latest")), name))
	}
}

// noFurtherPods lets no pod start once all that run are known to be healthy, as an image that
// does not come up would. Rollouts fail soon then, and not before, however slow the machine is.
func noFurtherPods(t testing.TB, s *stage) {
	t.Helper()
	for _, name := range []string{"quarantined", "putback", "rolloutfailed"} {
		s.awaitOnRecord(t, "deployment/"+name, "ok=latest@")
		s.change(t, "deployment/"+name, "{spec: {progressDeadlineSeconds: 1}}")
	}
	full := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	s.Create(t, full)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		s.Get(t, "full", full)
		return len(full.Status.Hard) > 0, fmt.Sprintf("Kubernetes doesn't enforce the quota yet: status %+v", full.Status)
	})
}

// contested puts an image back three times.
func contested(t testing.TB, s *stage, name string) {
	t.Helper()
	image := s.at(name + ":latest")
	pinned := s.push(t, name+":latest", "one")
	for range 3 {
		s.awaitImage(t, name, pinned)
		s.awaitObserved(t, "deployment/"+name)
		s.change(t, "deployment/"+name, fmt.Sprintf("{spec: {template: {spec: {containers: [{name: app, image: '%s'}]}}}}", image))
		s.awaitObserved(t, "deployment/"+name)
	}
	s.awaitDecided(t, "deployment/"+name, string(input.Contested))
}

// isPinnedByUs: the first pin is a rollout, told as one, from a version that is not known.
func isPinnedByUs(t testing.TB, s *stage, e explanation) string {
	t.Helper()
	want := s.awaitDecided(t, "deployment/unpinned", string(input.Reloaded)).Message
	if got := e.input("image/app"); want != "image/app unknown -> "+got.Delivered {
		return "the controller rolled out " + want
	}
	return notInStep(e)
}
