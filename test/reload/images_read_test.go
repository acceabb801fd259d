package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// asked is a Deployment with the label of kube-image-deployer, unless that is empty, and
// with annotations.
func (g *gallery) asked(name, label, annotations string) string {
	labels := ""
	if label != "" {
		labels = fmt.Sprintf("kube-image-deployer: '%s'", label)
	}
	return strings.Replace(deployment(name, annotations, g.runs("app:1.0")), "metadata: {", "metadata: {labels: {"+labels+"}, ", 1)
}

// old is the annotation by which kube-image-deployer was asked for the image of the container.
func (g *gallery) old(image string) string {
	return fmt.Sprintf("kube-image-deployer/app: '%s'", g.at(image))
}

// TestReadAnnotations: the requests of kube-image-deployer's users are read when asked for,
// with their label, beside our own, which win; what follows is our own way: the index by tag
// and digest, on record, respecting an undo.
func TestReadAnnotations(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.0", "one")
	major := g.push(t, "app:2.0", "two")
	g.make(t, g.asked("web", "true", g.old("app:1.*"))+
		g.asked("both", "true", g.old("app:1.*")+", "+g.wants("app", "app:2.*"))+
		g.asked("wrong", "true", g.old("app")+", "+auto)+
		g.asked("declined", "false", g.old("app:1.*"))+
		g.asked("later", "", g.old("app:1.*")))
	g.awaitObserved(t, web)
	g.open(t, "--read-annotations", "kube-image-deployer")
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", digestIn(first))
	g.awaitImage(t, "deployment/both", "app", major)
	g.awaitKnown(t, deploy, "both", digestIn(major))
	g.AwaitEvent(t, "wrong", "Warning InvalidAnnotation", "kube-image-deployer/app", "doesn't name a tag")
	if table := g.table(t, "--read-annotations", "kube-image-deployer"); strings.Count(table, "InStep") != 2 || strings.Contains(table, "deployment/declined") || strings.Contains(table, "deployment/later") {
		t.Errorf("the table has other rows than web and both:\n%s", table)
	}
	if table := g.table(t); strings.Contains(table, "deployment/web") {
		t.Errorf("the table reads what it was not asked to read:\n%s", table)
	}

	second := g.push(t, "app:1.1", "three")
	g.awaitImage(t, web, "app", second)
	g.checkRollouts(t, "without the label, or with one that says no", 0, "deployment/declined", "deployment/later")
	g.change(t, "deployment/later", "{metadata: {labels: {kube-image-deployer: ''}}}")
	g.awaitImage(t, "deployment/later", "app", second)
	g.annotate(t, "deployment/later", settings.ImagePrefix+"app", g.at("app:1.*"))
	g.awaitPolls(t, 3)
	g.checkRollouts(t, "the same spec under our own key rolls nothing", 1, "deployment/later")

	g.awaitKnown(t, deploy, "web", digestIn(second))
	g.awaitObserved(t, web)
	g.undo(t, "web", "image/app="+digestIn(first))
	g.AwaitEvent(t, "web", "Warning Undone", "image/app")
	g.awaitKnown(t, deploy, "web", "back:")
	g.rollImage(t, 0, "rolled out", web, "--now", "--read-annotations", "kube-image-deployer")
	g.checkImage(t, "by hand", second)

	g.change(t, web, "{metadata: {labels: {kube-image-deployer: null}}}")
	g.change(t, "deployment/both", "{metadata: {annotations: {"+settings.ImagePrefix+"app: null}}}")
	g.push(t, "app:1.2", "four")
	labels := g.push(t, "app:1.3", "five")
	g.awaitImage(t, "deployment/both", "app", labels)
	g.awaitImage(t, "deployment/later", "app", labels)
	g.checkImage(t, "its label is gone", second)
}

// TestReadAnnotationsAfterTheOriginal: a workload that kube-image-deployer has pinned to the
// digest of one platform is not rolled out by the change of tools, only by the next tag.
func TestReadAnnotationsAfterTheOriginal(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.0", "one")
	child := g.at("app") + "@" + digestIn(g.push(t, "app:old", "another digest of the repository"))
	g.make(t, strings.Replace(g.asked("web", "true", g.old("app:1.*")), g.at("app:1.0")+"'}", child+"'}", 1))
	g.open(t, "--read-annotations", "kube-image-deployer")
	g.awaitKnown(t, deploy, "web", digestIn(first))
	g.awaitPolls(t, 3)
	g.checkImage(t, "what the original wrote", child)
	g.awaitImage(t, web, "app", g.push(t, "app:1.1", "two"))
	g.checkRollouts(t, "one for the next tag", 1, web)
}
