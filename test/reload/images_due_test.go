package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// pinned is a gallery with one Deployment that a controller has pinned to app:latest.
func pinned(t testing.TB) (g *gallery, first string) {
	t.Helper()
	g = newGallery(t)
	first = g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	g.awaitObserved(t, web)
	g.open(t)
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", digestIn(first))
	g.awaitObserved(t, web)
	return g, first
}

// set is what "kubectl set image" does.
func (g *gallery) set(t testing.TB, image string) {
	t.Helper()
	g.change(t, web, fmt.Sprintf("{spec: {template: {spec: {containers: [{name: app, image: '%s'}]}}}}", image))
	g.awaitObserved(t, web)
}

// release is "lockstep release".
func (g *gallery) release(t testing.TB, ref string) {
	t.Helper()
	_, stderr, code := inprocess.Run(t, "release", ref, "-n", g.Namespace, "--kubeconfig", g.Cluster.Kubeconfig())
	if code != 0 {
		t.Fatalf("release: exit code %d\n%s", code, stderr)
	}
}

// TestUndoOfAnImage: an image that came back with an older revision, also the first pin,
// stays until the tag has another digest.
func TestUndoOfAnImage(t *testing.T) {
	t.Parallel()
	g, _ := pinned(t)
	g.undo(t, "web", "")
	g.AwaitEvent(t, "web", "Warning Undone", "image/app", "was reverted", "lockstep release "+web)
	g.awaitPolls(t, 3)
	g.checkImage(t, "the first pin was undone", g.at("app:latest"))

	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
	shown := g.shown(t, web)
	third := g.push(t, "app:latest", "three")
	g.awaitImage(t, web, "app", third)
	g.awaitKnown(t, deploy, "web", digestIn(third))
	g.awaitObserved(t, web)
	g.undo(t, "web", shown)
	g.awaitKnown(t, deploy, "web", "back:")
	g.awaitPolls(t, 3)
	g.checkImage(t, "so was another one", second)
	fourth := g.push(t, "app:latest", "four")
	g.awaitImage(t, web, "app", fourth)
}

// TestReleaseOfAnImage: what was reverted is accepted without a rollout, and the next
// digest is rolled out.
func TestReleaseOfAnImage(t *testing.T) {
	t.Parallel()
	g, _ := pinned(t)
	g.undo(t, "web", "")
	g.AwaitEvent(t, "web", "Warning Undone")
	g.release(t, web)
	g.AwaitEvent(t, "web", "Normal Released", "image/app")
	g.awaitPolls(t, 3)
	g.checkImage(t, "released", g.at("app:latest"))
	if table := g.table(t); !strings.Contains(table, "Accepted") || strings.Contains(table, "Pinned") {
		t.Errorf("the template has no digest, and the table says\n%s", table)
	}
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "two"))
}

// TestPinByHand: a digest that a person chose stays until the tag has another one.
func TestPinByHand(t *testing.T) {
	t.Parallel()
	g, _ := pinned(t)
	other := g.at("app") + "@" + digestIn(g.push(t, "app:other", "other"))
	g.set(t, other)
	g.awaitPolls(t, 3)
	g.checkImage(t, "a person's pin", other)
	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
	g.checkRollouts(t, "the first pin, the person's, and the tag's move", 3, web)
}

// TestContestedImage: an image that another writer puts back for the third time is left
// alone, with the rule that ends the contest, until the digest changes.
func TestContestedImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	for range 2 {
		g.set(t, g.at("app:latest"))
		g.awaitImage(t, web, "app", first)
		g.awaitObserved(t, web)
	}
	g.set(t, g.at("app:latest"))
	g.AwaitEvent(t, "web", "Warning Contested", "image/app", "ignoreDifferences", `group: "apps", kind: Deployment`, `.spec.template.spec.containers[] | select(.name == "app") | .image`)
	g.awaitPolls(t, 3)
	g.checkImage(t, "contested", g.at("app:latest"))
	g.awaitKnown(t, deploy, "web", "contested")

	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
}

// TestHeldImage: a hold on the workload counts for images, and observing writes nothing.
func TestHeldImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	g.annotate(t, web, settings.Hold, "freeze")
	second := g.push(t, "app:latest", "two")
	g.AwaitEvent(t, "web", "Warning Held", "freeze", "image/app")
	g.checkImage(t, "held", first)
	g.annotate(t, web, settings.Hold)
	g.awaitImage(t, web, "app", second)

	g.annotate(t, web, settings.Observe, "true")
	g.push(t, "app:latest", "three")
	g.AwaitEvent(t, "web", "Normal WouldReload", "image/app")
	g.checkImage(t, "observed", second)
	g.annotate(t, web, settings.Observe)
	g.awaitPolls(t, 3)
	g.checkImage(t, "what was observed counts as given", second)
}

// TestObservedFirstPin: also what was never pinned is not rolled out when observing ends.
func TestObservedFirstPin(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest")+", "+settings.Observe+": 'true'", g.runs("app:latest")))
	g.open(t)
	g.AwaitEvent(t, "web", "Normal WouldReload", "image/app")
	g.annotate(t, web, settings.Observe)
	g.awaitPolls(t, 3)
	g.checkRollouts(t, "what was observed counts as given", 0, web)
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "two"))
}

// TestImageUndoneWhileDown: a patch that is not on record, and its undo, are found in the
// revisions.
func TestImageUndoneWhileDown(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	g.awaitObserved(t, web)
	c := g.open(t)
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", digestIn(first))
	before := g.shards(t)
	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
	g.awaitKnown(t, deploy, "web", digestIn(second))
	g.awaitObserved(t, web)
	stop(t, c)
	for _, shard := range before { // as if the process had ended between patch and record
		o := shard.DeepCopy()
		o.ResourceVersion = ""
		if err := g.Client.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	g.undo(t, "web", "image/app="+digestIn(first))
	g.awaitObserved(t, web)
	g.open(t)
	g.AwaitEvent(t, "web", "Warning Undone", "image/app")
	g.checkImage(t, "undone while the controller was down", first)
}

// TestFailedImage: a digest whose rollout fails is put back and quarantined; the next one
// is tried, and a release allows it again.
func TestFailedImage(t *testing.T) {
	t.Parallel()
	g, first := running(t, "")
	g.full(t, true)
	second := g.push(t, "app:latest", "two")
	g.AwaitEvent(t, "web", "Warning PutBack", digestIn(second)[7:17]+" -> "+digestIn(first)[7:17], "quarantined", "lockstep release")
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", "bad="+digestIn(second)[7:27])
	g.AwaitEvent(t, "web", "Warning Quarantined", "not rolled out", digestIn(second)[7:17])
	g.full(t, false)
	g.awaitPolls(t, 3)
	g.checkImage(t, "quarantined", first)

	third := g.push(t, "app:latest", "three")
	g.awaitImage(t, web, "app", third)
	g.awaitKnown(t, deploy, "web", "ok=latest@"+digestIn(third)[7:])
	again := g.push(t, "app:latest", "two")
	g.AwaitEvent(t, "web", "Warning Quarantined", digestIn(again)[7:17])
	g.checkImage(t, "quarantine has no end by itself", third)
	g.release(t, web)
	g.awaitImage(t, web, "app", again)
}

// TestFailedTogether: when configuration was given with an image, either may be to blame,
// and the configuration cannot be put back.
func TestFailedTogether(t *testing.T) {
	t.Parallel()
	metrics := freeAddress(t)
	g, _ := running(t, ", "+auto, "--metrics-addr", metrics)
	g.full(t, true)
	g.annotate(t, web, settings.Quiet, "1h") // until both are known, however slow the machine is
	g.change(t, "configmap/app", "{data: {key: two}}")
	second := g.push(t, "app:latest", "two")
	g.awaitPolls(t, 3)
	g.pass(t)
	g.annotate(t, web, settings.Quiet, testkit.Quiet)
	g.AwaitEvent(t, "web", "Normal Reloaded", "configmap/app", "image/app")
	g.AwaitEvent(t, "web", "Warning RolloutFailed", "image/app", "configuration was delivered together with it")
	g.checkImage(t, "it stays", second)
	counted := func(want bool) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			text := scrape(t, metrics)
			return strings.Contains(text, `lockstep_blocked_workloads{reason="RolloutFailed"} 1`+"\n") == want, fmt.Sprintf("want it counted: %t\n%s", want, text)
		})
	}
	counted(true)
	g.full(t, false)
	counted(false)
	g.checkImage(t, "it was not to blame", second)
}

// running is a gallery in which pods run, on a fake node, and the first pin is proven.
func running(t testing.TB, annotations string, flags ...string) (g *gallery, first string) {
	t.Helper()
	g = newGallery(t, labtest.KWOK)
	first = g.push(t, "app:latest", "one")
	g.make(t, configMap("app", "key: one")+fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {%s}}
spec:
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {%s, volumes: [{name: config, configMap: {name: app}}]}}
`, g.wants("app", "app:latest")+annotations, g.runs("app:latest")))
	g.open(t, flags...)
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", "ok=latest@"+digestIn(first)[7:])
	return g, first
}

// full lets no further pod start in the namespace, and rollouts fail soon. With a short deadline from
// the beginning, those of a slow machine would fail too.
func (g *gallery) full(t testing.TB, is bool) {
	t.Helper()
	g.stage.full(t, is)
	g.change(t, web, fmt.Sprintf("{spec: {progressDeadlineSeconds: %d}}", map[bool]int{true: 1, false: 600}[is]))
}
