package reload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestImageIsFollowed: a container is pinned to the newest tag that the annotation asks
// for, is moved when there is a newer one, and not otherwise.
func TestImageIsFollowed(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.9", "one")
	side := g.push(t, "side:latest", "side")
	g.make(t, deployment("web", g.wants("app", "app:1.*")+", "+g.wants("prepare", "side:latest"),
		g.runs("app:1.9")+fmt.Sprintf(", initContainers: [{name: prepare, image: '%s'}]", g.at("side"))))
	c := g.open(t)
	g.awaitImage(t, web, "app", first)
	g.awaitImage(t, web, "prepare", side)
	g.awaitRollouts(t, web, 1)
	if shown := g.shown(t, web); shown != "image/app="+digestIn(first)+",image/prepare="+digestIn(side) {
		t.Errorf("the template shows %q", shown)
	}
	g.AwaitEvent(t, "web", "Normal Following", "image/app", "image/prepare")

	g.push(t, "app:1.8", "older")
	second := g.push(t, "app:1.10", "two")
	g.awaitImage(t, web, "app", second)
	g.AwaitEvent(t, "web", "Normal Reloaded", "image/app "+digestIn(first)[7:17]+" -> "+digestIn(second)[7:17])
	g.awaitPolls(t, 10)
	g.checkRollouts(t, "first pin and one move", 2, web)

	stop(t, c)
	g.open(t)
	g.awaitPolls(t, 10)
	g.checkRollouts(t, "a restart rolls nothing", 2, web)

	if err := g.registry.Untag("app", "1.10"); err != nil {
		t.Fatal(err)
	}
	g.AwaitEvent(t, "web", "Warning Unresolved", settings.ImagePrefix+"app", "1.10", "does not exist any more")
	if got := g.image(t, web, "app"); got != second {
		t.Errorf("a list that came back shorter led to %s", got)
	}
}

func digestIn(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// TestImageAndConfigMap: a pushed image and a changed ConfigMap make one rollout.
func TestImageAndConfigMap(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.make(t, configMap("app", "key: one")+deployment("web", auto+", "+g.wants("app", "app:latest"),
		g.runs("app:latest")+", volumes: [{name: config, configMap: {name: app}}]"))
	g.open(t)
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", "configmap/app", digestIn(first))

	g.annotate(t, web, settings.Quiet, "1h") // until both are known, however slow the machine is
	g.change(t, "configmap/app", "{data: {key: two}}")
	second := g.push(t, "app:latest", "two")
	g.awaitPolls(t, 3)
	g.checkRollouts(t, "within the window", 1, web)
	g.annotate(t, web, settings.Quiet, testkit.Quiet)
	g.awaitImage(t, web, "app", second)
	g.awaitKnown(t, deploy, "web", versionOf("two"), digestIn(second))
	g.checkRollouts(t, "the first pin, and one for both", 2, web)
}

// TestImagesOfKinds: every kind of workload is patched, also those of which the API
// server knows no merge keys, and a CronJob.
func TestImagesOfKinds(t *testing.T) {
	t.Parallel()
	g := newGallery(t, labtest.ArgoRollouts)
	first := g.push(t, "app:1.0", "one")
	annotations := g.wants("app", "app:^1")
	g.make(t, workload("StatefulSet", "set", annotations, g.runs("app:1.0"))+workload("DaemonSet", "agent", annotations, g.runs("app:1.0")))
	g.make(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {%s}}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, annotations: {%s}}
spec: {replicas: 0, selector: {matchLabels: {app: canary}}, strategy: {canary: {}}, template: {metadata: {labels: {app: canary}}, spec: {%s}}}
`, annotations, g.runs("app:1.0"), annotations, g.runs("app:1.0")))
	g.open(t)
	all := []string{"statefulset/set", "daemonset/agent", "cronjob/nightly", "rollout/canary"}
	for _, ref := range all {
		g.awaitImage(t, ref, "app", first)
	}
	second := g.push(t, "app:1.1", "two")
	for _, ref := range all {
		g.awaitImage(t, ref, "app", second)
	}
}

// TestImageOfARenamedContainer: a container that is does not exist any more is not added back.
func TestImageOfARenamedContainer(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	g.open(t)
	g.awaitImage(t, web, "app", first)
	g.change(t, web, fmt.Sprintf("{spec: {template: {spec: {containers: [{name: renamed, image: '%s'}]}}}}", g.at("app:latest")))
	g.AwaitEvent(t, "web", "Warning InvalidAnnotation", settings.ImagePrefix+"app", "doesn't contain a container app", "its containers are renamed")
	g.push(t, "app:latest", "two")
	g.checkRollouts(t, "ours and the person's", 2, web)
	if got := g.image(t, web, "app") + g.image(t, web, "renamed"); got != g.at("app:latest") {
		t.Errorf("the containers run %s", got)
	}
}

// TestImagesInTrouble: what cannot be resolved is told with the annotation, the
// registry's answer and what to do, and the other containers go on.
func TestImagesInTrouble(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	good := g.push(t, "good:1.0", "one")
	g.push(t, "hidden:1.0", "hidden")
	g.registry.Tokens.AddReader("reader", "reader-password", "good")
	g.make(t, g.pullSecret("weak", "reader", "reader-password"))
	gone := freeAddress(t)
	container := func(name, image string) string { return fmt.Sprintf("{name: %s, image: '%s'}, ", name, g.at(image)) }
	g.make(t, deployment("web",
		strings.Join([]string{g.wants("app", "good:1.*"), g.wants("nomatch", "good:7.*"), g.wants("missing", "none:1"), g.wants("hidden", "hidden:1.0"), g.wants("nowhere", "good:1.0"), settings.ImagePrefix + "bad: 'app:^^'", settings.ImagePrefix + "gone: '" + gone + "/app:1'"}, ", "),
		"imagePullSecrets: [{name: weak}], containers: ["+container("app", "good:1.0")+container("nomatch", "good:1.0")+container("missing", "none:1")+container("hidden", "hidden:1.0")+container("bad", "good:1.0")+container("gone", "good:1.0")+"]"))
	c := g.open(t)
	g.awaitImage(t, web, "app", good)
	g.AwaitEvent(t, "web", "Warning Unresolved", settings.ImagePrefix+"nomatch", "matches 7.*")
	g.AwaitEvent(t, "web", "Warning Unresolved", settings.ImagePrefix+"missing", "pull secret")
	g.AwaitEvent(t, "web", "Warning Unresolved", settings.ImagePrefix+"hidden", "401", "add a pull secret for "+g.registry.Address)
	g.AwaitEvent(t, "web", "Warning InvalidAnnotation", settings.ImagePrefix+"nowhere", "doesn't contain a container nowhere")
	g.AwaitEvent(t, "web", "Warning InvalidAnnotation", settings.ImagePrefix+"bad", "^^", "write one such as ^1.4")
	g.AwaitEvent(t, "web", "Warning Unresolved", settings.ImagePrefix+"gone", "no answer from "+gone)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		log := c.Stderr()
		return strings.Count(log, "a registry is unavailable") == 1 && strings.Contains(log, "registry="+gone) && strings.Contains(log, "add a pull secret for "+g.registry.Address), "the log says nothing of the registry or of the credentials:\n" + log
	})
	g.checkRollouts(t, "only the good one", 1, web)
	for _, text := range g.Events(t, "web") {
		if strings.Contains(text, "reader-password") {
			t.Errorf("an event has the password: %s", text)
		}
	}
}

// TestImagesAreOff: who asks a controller that follows no images is told.
func TestImagesAreOff(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	g.make(t, deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	g.run(t)
	g.AwaitEvent(t, "web", "Warning ImagesOff", settings.ImagePrefix+"app", "--images")
}

// TestImagesTable: the command lists what containers run and what there is.
func TestImagesTable(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.0", "one")
	g.push(t, "side:1.0", "side")
	g.make(t, deployment("web", g.wants("app", "app:1.*"), g.runs("app:1.0"))+
		deployment("broken", g.wants("app", "none:1"), g.runs("none:1"))+
		deployment("quiet", settings.Hold+": ''", g.runs("side:1.0")))
	metrics := freeAddress(t)
	g.open(t, "--image-interval", "90m", "--metrics-addr", metrics)
	g.awaitImage(t, web, "app", first)
	g.awaitKnown(t, deploy, "web", digestIn(first))
	table := g.table(t)
	for _, want := range []string{
		"NAMESPACE", "SINCE", "NEXT", "deployment/web", g.at("app:1.*"), g.at("app:1.0@") + digestIn(first)[7:17], "1.0@" + digestIn(first)[7:17], "InStep",
		"deployment/broken", "Unresolved", "container app: digest of " + g.at("none:1"),
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
	if strings.Contains(table, "quiet") {
		t.Errorf("a workload without the annotation is listed:\n%s", table)
	}
	var rows []struct {
		Workload, Container, Latest, State string
		NextCheck                          *time.Time
	}
	if err := json.Unmarshal([]byte(g.table(t, "-o", "json")), &rows); err != nil || len(rows) != 2 || rows[1].Latest != "1.0@"+digestIn(first) || rows[1].State != "InStep" || rows[1].NextCheck != nil {
		t.Errorf("%+v, %v", rows, err)
	}
	// An interval is up to a tenth longer than 90 minutes.
	if err := json.Unmarshal([]byte(g.table(t, "-o", "json", "--controller", "http://"+metrics)), &rows); err != nil || rows[1].NextCheck == nil || time.Until(*rows[1].NextCheck) > 99*time.Minute || time.Until(*rows[1].NextCheck) < time.Hour {
		t.Errorf("with the controller's schedule: %+v, %v", rows, err)
	}
}

// table runs "lockstep images" in the stage's namespace.
func (g *gallery) table(t testing.TB, flags ...string) string {
	t.Helper()
	args := append([]string{"images", "-n", g.Namespace, "--kubeconfig", g.Cluster.Kubeconfig(), "--controller-namespace", g.Own}, g.flags[3:]...)
	stdout, stderr, code := inprocess.Run(t, append(args, flags...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	return stdout
}

// TestImageOfABorrowedTemplate: a Rollout that uses the template of a Deployment asks for
// images, and they are written into that template; what the Deployment asks for itself
// counts for nothing, as with its other annotations.
func TestImageOfABorrowedTemplate(t *testing.T) {
	t.Parallel()
	g := newGallery(t, labtest.ArgoRollouts)
	first := g.push(t, "app:1.0", "one")
	g.push(t, "app:2.0", "too new")
	g.make(t, deployment("lender", g.wants("app", "app:^2"), g.runs("app:1.0"))+fmt.Sprintf(`
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, annotations: {%s}}
spec: {replicas: 0, selector: {matchLabels: {app: lender}}, strategy: {canary: {}}, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: lender}}
`, g.wants("app", "app:^1")))
	g.open(t)
	g.awaitImage(t, "deployment/lender", "app", first)
	second := g.push(t, "app:1.1", "two")
	g.awaitImage(t, "deployment/lender", "app", second)
	g.AwaitEvent(t, "canary", "Normal Reloaded", "image/app "+digestIn(first)[7:17]+" -> "+digestIn(second)[7:17])
	g.checkRollouts(t, "the first pin and one move", 2, "deployment/lender")
}
