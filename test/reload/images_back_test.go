package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRedoOfAnImage: a second undo goes forward again, and the image is followed as before.
func TestRedoOfAnImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	g.undo(t, "web", "")
	g.AwaitEvent(t, "web", "Warning Undone", "image/app")
	g.awaitKnown(t, deploy, "web", "back:")
	g.awaitObserved(t, web)
	g.undo(t, "web", "image/app="+digestIn(first))
	g.awaitObserved(t, web)
	g.checkImage(t, "forward again", first)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the record is written once a second
		table := g.table(t)
		return strings.Contains(table, "InStep"), "after the second undo the table says\n" + table
	})
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "two"))
}

// TestAbortedCanaryOfAnImage: the digest of a canary that is aborted counts as reverted,
// although the template has it; the next digest is tried.
func TestAbortedCanaryOfAnImage(t *testing.T) {
	t.Parallel()
	g := newGallery(t, labtest.KWOK, labtest.ArgoRollouts)
	first := g.push(t, "app:latest", "one")
	g.make(t, fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, annotations: {%s}}
spec:
  replicas: 1
  selector: {matchLabels: {app: canary}}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
  template: {metadata: {labels: {app: canary}}, spec: {%s}}
`, g.wants("app", "app:latest"), g.runs("app:latest@"+digestIn(first))))
	const canary, groupKind = "rollout/canary", "Rollout.argoproj.io"
	g.awaitPhase(t, "Healthy")
	g.open(t)
	g.awaitKnown(t, groupKind, "canary", digestIn(first))
	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, canary, "app", second)
	g.awaitKnown(t, groupKind, "canary", digestIn(second))
	g.awaitPhase(t, "Paused")
	g.abort(t, true)
	g.AwaitEvent(t, "canary", "Warning Undone", "image/app", "was reverted")
	g.awaitKnown(t, groupKind, "canary", "back:")
	if table := g.table(t); !strings.Contains(table, "Undone") {
		t.Errorf("after the abort the table says\n%s", table)
	}
	g.awaitPolls(t, 3)
	third := g.push(t, "app:latest", "three")
	g.awaitImage(t, canary, "app", third)
}
