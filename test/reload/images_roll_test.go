package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// rollImage runs "lockstep roll" with what it takes to reach the registry, and fails when
// the exit code or what it says is another.
func (g *gallery) rollImage(t testing.TB, code int, says string, args ...string) string {
	t.Helper()
	output, got := g.roll(t, append(args, g.flags[3:]...)...)
	if got != code || !strings.Contains(output, says) {
		t.Errorf("lockstep roll %q: exit code %d, want %d and %q\n%s", args, got, code, says, output)
	}
	return output
}

// TestRollImages: configuration and image come by one patch, from a registry that asks for
// credentials; what no registry answers stops nothing else, and is told.
func TestRollImages(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	g.push(t, "app:1.0", "one")
	uses := ", volumes: [{name: config, configMap: {name: app}}]"
	g.make(t, configMap("app", "key: one")+
		deployment("web", auto+", "+settings.Quiet+": 1h, "+g.wants("app", "app:1.*"), g.runs("app:1.0")+uses)+
		deployment("stuck", auto+", "+settings.Quiet+": 1h, "+g.wants("app", "none:1"), g.runs("none:1")+uses)+
		deployment("alone", g.wants("app", "none:1"), g.runs("none:1"))+
		deployment("foreign", g.wants("app", "app:1.0"), g.runs("app:1.0"))+
		deployment("misspelt", settings.ImagePrefix+"app: app", g.runs("app:1.0"))+
		fmt.Sprintf(`
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {%s}}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}
`, g.wants("app", "app:1.*"), g.runs("app:1.0")))
	g.run(t, "--max-delay", "2h") // It follows no images, and none of its own moves is in the way.
	g.awaitKnown(t, deploy, "web", "configmap/app")
	g.awaitKnown(t, deploy, "stuck", "configmap/app")
	g.change(t, "configmap/app", "{data: {key: two}}")
	g.awaitKnown(t, deploy, "web", `"pending":`)
	second := g.push(t, "app:1.1", "two")

	output := g.rollImage(t, 0, "rolled out", web, "--now")
	for _, want := range []string{"image/app=" + digestIn(second), "configmap/app~" + short("two")} {
		if !strings.Contains(output, want) {
			t.Errorf("it does not say %q: %s", want, output)
		}
	}
	g.checkRollouts(t, "one patch for both", 1, web)
	g.checkImage(t, "by hand", second)
	g.rollImage(t, 0, "shows these versions already", web, "--now")
	g.checkRollouts(t, "and only once", 1, web)

	output = g.rollImage(t, 1, "rolled out", "deployment/stuck", "--now")
	if !strings.Contains(output, settings.ImagePrefix+"app") || !strings.Contains(output, "everything else is rolled out") {
		t.Errorf("it does not say what the registry answered: %s", output)
	}
	if shown := g.shown(t, "deployment/stuck"); shown != "configmap/app~"+short("two") {
		t.Errorf("the template shows %q", shown)
	}
	g.rollImage(t, 1, "the current image for image/app isn't known", "deployment/alone", "--now")
	g.rollImage(t, 1, `"app" doesn't name a tag`, "deployment/misspelt", "--now")
	g.rollImage(t, 1, "but not windows/amd64", "deployment/foreign", "--now", "--image-platforms", "windows/amd64")
	g.rollImage(t, 0, "rolled out: image/app="+digestIn(second), "cronjob/nightly", "--now")
	g.rollImage(t, 1, "next Job", "cronjob/nightly", "--now")
	g.checkRollouts(t, "nothing to move it to", 0, "deployment/alone", "deployment/misspelt", "deployment/foreign")
}

// TestRollPinnedImage: a digest that a person chose stays, unless they insist; one that was
// reverted goes forward again, and the controller follows it from then on.
func TestRollPinnedImage(t *testing.T) {
	t.Parallel()
	g, first := pinned(t)
	other := g.at("app") + "@" + digestIn(g.push(t, "app:other", "other"))
	g.set(t, other)
	g.rollImage(t, 0, "image/app isn't changed", web, "--now")
	g.checkImage(t, "a person's pin", other)
	g.rollImage(t, 0, "rolled out", web, "--now", "--force")
	g.checkImage(t, "a person who insists", first)

	g.awaitObserved(t, web)
	g.undo(t, "web", "")
	g.AwaitEvent(t, "web", "Warning Undone", "image/app")
	g.awaitKnown(t, deploy, "web", "back:")
	g.rollImage(t, 0, "rolled out", web, "--now")
	g.checkImage(t, "forward again", first)
	g.awaitImage(t, web, "app", g.push(t, "app:latest", "two"))
}

// TestRollQuarantinedImage: who rolls out by hand does not get what failed here, unless
// they insist.
func TestRollQuarantinedImage(t *testing.T) {
	t.Parallel()
	g, first := running(t, "")
	g.full(t, true)
	second := g.push(t, "app:latest", "two")
	g.AwaitEvent(t, "web", "Warning Quarantined", digestIn(second)[7:17])
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", "bad="+digestIn(second)[7:27], digestIn(first))
	g.full(t, false)
	g.rollImage(t, 0, "is quarantined", web, "--quiet", "1s")
	g.checkImage(t, "configuration alone", first)
	if shown := g.shown(t, web); !strings.Contains(shown, "configmap/app~"+short("one")) {
		t.Errorf("the template shows %q", shown)
	}
	g.rollImage(t, 0, "rolled out", web, "--now")
	g.checkImage(t, "a person insists", second)
}
