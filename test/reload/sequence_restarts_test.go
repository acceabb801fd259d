package reload_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSequenceRestarts holds what is said of restarts for nothing, and of one rollout for
// what has gathered, against combinations.
func TestSequenceRestarts(t *testing.T) {
	t.Parallel()
	s, c := pairs(t, "verbose", "observed")
	s.make(t, configMap("rules-a", "key: one")+deployment("pattern", settings.Reload+": configmap/rules-*", "containers: [{name: app, image: app}]"))
	s.awaitKnown(t, deploy, "pattern", "configmap/rules-a")

	t.Run("a source that refused a pattern refuses no more", func(t *testing.T) {
		s.make(t, strings.Replace(configMap("rules-b", "key: one"), "name: rules-b", "name: rules-b, annotations: {"+settings.Reload+": never}", 1))
		s.checkRollouts(t, "it refuses", 0, "deployment/pattern")
		s.annotate(t, "configmap/rules-b", settings.Reload)
		s.awaitKnown(t, deploy, "pattern", "configmap/rules-b")
		s.checkRollouts(t, "what begins to be followed restarts no pod", 0, "deployment/pattern")
		s.change(t, "configmap/rules-b", "{data: {key: two}}")
		s.awaitRollouts(t, "deployment/pattern", 1)
	})

	t.Run("held with many words, or observed, a Secret rotates, killed, released meanwhile", func(t *testing.T) {
		s.annotate(t, "deployment/verbose", settings.Hold, strings.Repeat("freeze ", 100<<10/7))
		s.annotate(t, "deployment/observed", settings.Observe, "true")
		before := s.remembered(t, deploy, "observed")
		for _, name := range []string{"verbose", "observed"} {
			s.change(t, "secret/"+name, "{stringData: {key: two}}")
		}
		s.AwaitEvent(t, "verbose", "Held", "secret/verbose")
		s.AwaitEvent(t, "observed", "WouldReload", "secret/observed")
		s.awaitSettled(t, "observed", before) // on record: the template does not show it
		s.checkRollouts(t, "held or observed", 0, "deployment/verbose", "deployment/observed")
		kill(t, c)
		s.annotate(t, "deployment/verbose", settings.Hold)
		s.annotate(t, "deployment/observed", settings.Observe)
		s.run(t)
		s.awaitRollouts(t, "deployment/verbose", 1)
		s.checkRollouts(t, "given as observed", 0, "deployment/observed")
		s.checkRollouts(t, "one rollout for what has gathered", 1, "deployment/verbose")
	})
}

// TestSequenceOnePerChange holds "two installations: one rollout per change" against an undo.
func TestSequenceOnePerChange(t *testing.T) {
	t.Parallel()
	s, _ := pairs(t, "db")
	other := *s.World
	other.Own = labtest.Namespace(t, s.Cluster)
	inprocess.StartReady(t, &other, "--quiet", testkit.Quiet)
	second := &stage{World: &other}
	second.awaitKnown(t, deploy, "db", "configmap/db", "secret/db")
	const ref = "deployment/db"

	t.Run("undone, another source changes, the first one changes", func(t *testing.T) {
		s.change(t, "configmap/db", "{data: {key: two}}")
		s.awaitRollouts(t, ref, 1)
		s.awaitKnown(t, deploy, "db", versionOf("two"))
		second.awaitKnown(t, deploy, "db", versionOf("two"))
		s.awaitObserved(t, ref)
		s.undo(t, "db", "")
		s.awaitKnown(t, deploy, "db", "back:")
		second.awaitKnown(t, deploy, "db", "back:")
		s.change(t, "secret/db", "{stringData: {key: two}}")
		s.checkRollouts(t, "reverted for both", 2, ref)
		s.change(t, "configmap/db", "{data: {key: three}}")
		s.awaitRollouts(t, ref, 3)
		second.awaitKnown(t, deploy, "db", versionOf("three"))
		s.checkRollouts(t, "one of both moves it", 3, ref)
	})
}

// TestSequenceImmutable holds "a warning and no rollout until lockstep roll" against restarts
// in between: of the controller, and of the workload.
func TestSequenceImmutable(t *testing.T) {
	t.Parallel()
	s, c := pairs(t, "web")
	s.change(t, "configmap/web", "{immutable: true}")
	s.awaitKnown(t, deploy, "web", "sealed")
	kill(t, c)
	s.delete(t, "configmap/web")
	s.make(t, configMap("web", "key: two"))
	s.change(t, "secret/web", "{stringData: {key: two}}")
	c = s.runProcess(t)
	s.AwaitEvent(t, "web", "Warning ImmutableReplaced", "configmap/web")
	s.checkRollouts(t, "sealed later, replaced while the controller was down, and a Secret rotated", 0, web)
	s.change(t, web, "{spec: {template: {metadata: {annotations: {restarted: now}}}}}")
	s.awaitObserved(t, web)
	s.checkRollouts(t, "a restart delivers nothing for certain", 1, web)
	kill(t, c)
	if output, code := s.roll(t, web); code != 0 {
		t.Fatalf("roll ended with %d: %s", code, output)
	}
	s.awaitObserved(t, web)
	s.run(t)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "rolled by a person while the controller was down", 2, web)
	s.change(t, "secret/web", "{stringData: {key: three}}")
	s.awaitRollouts(t, web, 3)
}

// TestSequenceNamespaceMadeAgain: nothing is known of a namespace that was deleted with a
// change held and another one reverted, whether or not the controller saw it go.
func TestSequenceNamespaceMadeAgain(t *testing.T) {
	t.Parallel()
	for name, watched := range map[string]bool{"watched": true, "while the controller is down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespaceMadeAgain(t, watched)
		})
	}
}

func namespaceMadeAgain(t *testing.T, watched bool) {
	t.Helper()
	manifest := pair("Deployment", "held") + pair("Deployment", "back")
	s := newStage(t, "")
	shop := s.beside(t, manifest)
	shop.pass = s.pass
	shop.awaitObserved(t, "deployment/back")
	scope := []string{"--namespaces", shop.Namespace + "," + s.Namespace}
	c := s.runProcess(t, scope...)
	shop.awaitKnown(t, deploy, "held", "configmap/held", "secret/held")
	shop.awaitKnown(t, deploy, "back", "configmap/back", "secret/back")
	shop.annotate(t, "deployment/held", settings.Hold, "freeze")
	shop.change(t, "secret/held", "{stringData: {key: two}}")
	shop.AwaitEvent(t, "held", "Held", "secret/held")
	shop.takeBack(t, "back")
	if !watched {
		kill(t, c)
	}
	shop.deleteNamespace(t)
	shop.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop.Namespace}})
	shop.make(t, strings.ReplaceAll(manifest, "key: one", "key: two"))
	if !watched {
		s.run(t, scope...)
	}
	shop.awaitKnown(t, deploy, "held", "configmap/held", "secret/held")
	shop.awaitKnown(t, deploy, "back", versionOf("two"), "secret/back")
	shop.checkRollouts(t, "made again", 0, "deployment/held", "deployment/back")
	shop.change(t, "secret/back", "{stringData: {key: three}}")
	shop.change(t, "secret/held", "{stringData: {key: three}}")
	shop.awaitRollouts(t, "deployment/back", 1)
	shop.awaitRollouts(t, "deployment/held", 1)
}

// deleteNamespace deletes the stage's namespace and waits until it is gone.
func (s *stage) deleteNamespace(t testing.TB) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	if err := s.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	// Kubernetes' controller deletes a namespace in several turns, each slow beside many others.
	labtest.Eventually(t, 5*testkit.Patience, func() (bool, string) {
		found := &corev1.Namespace{}
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), found)
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprintf("the namespace still exists (error %v): %+v", err, found.Status)
	})
}
