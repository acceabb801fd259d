package reload_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestEnforcedImage: a digest that another writer chose does not stay where a workload has its
// images enforced. An undo, a hold and a contest count all the same. TestPinByHand is the default.
func TestEnforcedImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	other := g.at("app") + "@" + digestIn(g.push(t, "app:other", "other"))
	g.set(t, other)
	g.awaitPolls(t, 3)
	g.annotate(t, web, settings.Enforce, "maybe")
	g.AwaitEvent(t, "web", "Warning InvalidAnnotation", settings.Enforce, "maybe", "true or false")
	g.checkImage(t, "what is not understood enforces nothing", other)
	g.annotate(t, web, settings.Enforce, "true")
	g.awaitImage(t, web, "app", first)
	g.AwaitEvent(t, "web", "Normal Reloaded", "another writer had chosen "+g.at("app@")+digestIn(other)[7:17], settings.Enforce)

	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
	g.awaitKnown(t, deploy, "web", digestIn(second))
	g.awaitObserved(t, web)
	g.annotate(t, web, settings.Hold, "freeze")
	g.set(t, other)
	g.AwaitEvent(t, "web", "Warning Held", "freeze", "image/app")
	g.checkImage(t, "held", other)
	g.annotate(t, web, settings.Hold)
	g.awaitImage(t, web, "app", second)
	g.awaitObserved(t, web)

	g.set(t, other)
	g.awaitImage(t, web, "app", second)
	g.awaitObserved(t, web)
	g.set(t, other)
	g.AwaitEvent(t, "web", "Warning Contested", "image/app", "ignoreDifferences")
	g.awaitPolls(t, 3)
	g.checkImage(t, "contested", other)
	g.awaitKnown(t, deploy, "web", "contested")
	g.rollImage(t, 0, "rolled out", web, "--now") // without --force: it is no pin that may stay
	g.checkImage(t, "rolled out by hand", second)
}

// TestUndoOfAnEnforcedImage: an undo is no edit. The image stays until the tag has another digest.
func TestUndoOfAnEnforcedImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	g.annotate(t, web, settings.Enforce, "true")
	second := g.push(t, "app:latest", "two")
	g.awaitImage(t, web, "app", second)
	g.awaitKnown(t, deploy, "web", digestIn(second))
	g.awaitObserved(t, web)
	g.undo(t, "web", "image/app="+digestIn(first))
	g.AwaitEvent(t, "web", "Warning Undone", "image/app")
	g.awaitKnown(t, deploy, "web", "back:")
	g.awaitPolls(t, 3)
	g.checkImage(t, "undone", first)
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "three"))
}

// TestEnforcedImageThatFailed: a digest whose rollout failed does not replace another writer's.
func TestEnforcedImageThatFailed(t *testing.T) {
	t.Parallel()
	g, first := running(t, ", "+settings.Enforce+": 'true'")
	g.full(t, true)
	second := g.push(t, "app:latest", "two")
	g.AwaitEvent(t, "web", "Warning Quarantined", digestIn(second)[7:17])
	g.awaitImage(t, web, "app", first)
	g.full(t, false)
	other := g.at("app") + "@" + digestIn(g.push(t, "app:other", "other"))
	g.set(t, other)
	g.awaitPolls(t, 3)
	g.checkImage(t, "quarantined", other)
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "three"))
}
