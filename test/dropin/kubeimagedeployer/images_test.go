package kubeimagedeployer_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestManifestOfTheOriginal: the Deployment of the original's README beside a workload of each other
// kind, its own watch key, one namespace. Every workload is patched once, whatever it follows, and
// only its images are touched; a second process finds nothing to do.
func TestManifestOfTheOriginal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.key = kubeimagedeployer.DefaultKey
	first, newest := s.push(t, "busybox:latest", "one"), s.push(t, "busybox:1.34.10", "two")
	s.push(t, "busybox:1.34.9", "three")
	variables := []string{"CONTROLLER_WATCH_NAMESPACE=" + s.Namespace}
	// Its answers are known when the others come, so that they need one patch each.
	s.Create(t, s.deployment("ahead", "busybox:latest"), s.deployment("ahead-too", "busybox:1.34.*"))
	r := s.start(t, variables...)
	s.awaitImages(t, "ahead", "app="+first)
	s.awaitImages(t, "ahead-too", "app="+newest)

	d := s.readme(t)
	set := &appsv1.StatefulSet{ObjectMeta: s.meta("db", "app", "busybox:latest"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selector("db"), Template: template("db", "app")}}
	daemon := &appsv1.DaemonSet{ObjectMeta: s.meta("node", "app", "busybox:latest"), Spec: appsv1.DaemonSetSpec{Selector: selector("node"), Template: template("node", "app")}}
	daemon.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
	job := &batchv1.CronJob{ObjectMeta: s.meta("job", "app", "busybox:latest"), Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template("job", "app")}}}}
	job.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.Create(t, d, set, daemon, job)

	s.awaitImages(t, d.Name, "busybox-init="+first+" busybox=busybox busybox2="+newest)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		s.Get(t, "db", set)
		s.Get(t, "node", daemon)
		s.Get(t, "job", job)
		got := []string{images(set.Spec.Template), images(daemon.Spec.Template), images(job.Spec.JobTemplate.Spec.Template)}
		want := "app=" + first
		return got[0] == want && got[1] == want && got[2] == want, fmt.Sprintf("they run %q, want %s", got, want)
	})
	stop(t, r)
	got := s.Deployment(t, d.Name)
	delete(got.Annotations, "deployment.kubernetes.io/revision")
	for _, containers := range [][]corev1.Container{got.Spec.Template.Spec.InitContainers, got.Spec.Template.Spec.Containers} {
		for i := range containers {
			containers[i].Image = "busybox"
		}
	}
	if diff := cmp.Diff(d.Spec.Template, got.Spec.Template) + cmp.Diff(d.Annotations, got.Annotations) + cmp.Diff(d.Labels, got.Labels); diff != "" {
		t.Errorf("more than images was written (-created +now):\n%s", diff)
	}
	again := s.start(t, variables...)
	s.fence(t)
	stop(t, again)
	for _, object := range []string{"deployments/" + d.Name, "statefulsets/db", "daemonsets/node", "cronjobs/job", "deployments/ahead"} {
		if n := s.gate.patches(object); n != 1 {
			t.Errorf("%s was patched %d times, want once", object, n)
		}
	}
}

// readme is the Deployment of the original's README, in the test's namespace and registry.
func (s *site) readme(t *testing.T) *appsv1.Deployment {
	t.Helper()
	text, err := os.ReadFile("testdata/workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		t.Fatal(err)
	}
	d.Namespace = s.Namespace
	for key, image := range d.Annotations {
		d.Annotations[key] = s.at(image)
	}
	return d
}

// TestEnforcement: the annotation is enforced. What a person writes is reverted, however
// often; a new digest is rolled out, and another tag with the same digest is not.
func TestEnforcement(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.push(t, "app:1.0", "one")
	s.Create(t, s.deployment("web", "app:1.*"))
	s.start(t)
	s.awaitImages(t, "web", "app="+first)
	for _, drift := range []string{"before", s.at("app:1.0"), s.at("app@sha256:" + strings.Repeat("7", 64)), "before", "before"} {
		s.setImage(t, "web", drift)
		s.awaitImages(t, "web", "app="+first)
	}
	s.push(t, "app:1.1", "one")
	s.fence(t)
	if n := s.gate.patches("deployments/web"); n != 6 {
		t.Errorf("%d patches after five changes by hand and a tag with the same digest, want 6", n)
	}
	s.awaitImages(t, "web", "app="+s.push(t, "app:1.2", "two"))
	// A higher number in a tag that does not match, and a lower one that does.
	s.push(t, "app:1.3-rc1", "three")
	s.push(t, "app:1.0.9", "four")
	s.fence(t)
	if n := s.gate.patches("deployments/web"); n != 7 {
		t.Errorf("%d patches, want 7", n)
	}
}

// TestLabel: a workload without the label is left alone, and so is one whose label says
// false. The registry is asked for it no more.
func TestLabel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.push(t, "app:latest", "one")
	off := s.deployment("off", "app:latest")
	off.Labels[s.key] = "false"
	s.Create(t, s.deployment("web", "app:latest"), s.deployment("configured", "app:latest"), off)
	s.Patch(t, &appsv1.Deployment{}, "configured", fmt.Sprintf(`{"metadata":{"labels":{%q:"configured"}}}`, s.key))
	s.start(t)
	s.awaitImages(t, "web", "app="+first)
	s.awaitImages(t, "configured", "app="+first)
	s.Patch(t, &appsv1.Deployment{}, "web", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, s.key))
	s.Patch(t, &appsv1.Deployment{}, "configured", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, s.key))
	s.fence(t)
	s.push(t, "app:latest", "two")
	s.setImage(t, "web", "by-hand")
	s.registry.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v2/app/") {
			t.Errorf("the registry is asked for %s, which no workload follows", r.URL.Path)
		}
		return false
	})
	s.fence(t)
	if got := images(s.Deployment(t, "web").Spec.Template); got != "app=by-hand" {
		t.Errorf("without the label it runs %s", got)
	}
	if got := images(s.Deployment(t, "off").Spec.Template); got != "app=before" {
		t.Errorf("with the label false it runs %s", got)
	}
}

// TestNamespaces: by default the workloads of all namespaces are followed, with the same credentials.
// CONTROLLER_WATCH_NAMESPACE limits them to one.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.push(t, "app:latest", "one")
	other := *s
	other.World = testkit.NewWorldOn(t, s.Cluster)
	s.Create(t, s.deployment("web", "app:latest"))
	other.Create(t, other.deployment("web", "app:latest"))
	r := s.start(t)
	s.awaitImages(t, "web", "app="+first)
	other.awaitImages(t, "web", "app="+first)
	stop(t, r)
	second := s.push(t, "app:latest", "two")
	s.start(t, "CONTROLLER_WATCH_NAMESPACE="+s.Namespace)
	s.awaitImages(t, "web", "app="+second)
	s.fence(t)
	if got := images(other.Deployment(t, "web").Spec.Template); got != "app="+first {
		t.Errorf("the workload of another namespace runs %s", got)
	}
}

// TestMistakes: one bad annotation does not stop the others, and no container appears that
// the template does not have. A mistake that stays is told once.
func TestMistakes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hook := newWebhook(t)
	good := s.push(t, "app:latest", "one")
	d := s.deployment("web", "app:latest")
	d.ObjectMeta = s.meta("web", "app", "app:latest", "gone", "app:latest", "side", "app", "lost", "missing:1.*")
	d.Spec.Template = template("web", "app", "side", "lost")
	bare := s.deployment("bare", "app:latest")
	bare.Annotations = nil
	s.Create(t, d, bare)
	r := s.start(t, "SLACK_WEBHOOK="+hook.URL+secretPath)
	s.awaitImages(t, "web", "app="+good+" side=before lost=before")
	wanted := []string{
		"annotation " + s.key + "/gone: the pod template doesn't contain a container gone; its containers are app, side, lost",
		"annotation " + s.key + `/side: "` + s.at("app") + `" doesn't name a tag`,
		"annotation " + s.key + "/lost: tags of " + s.at("missing") + ": ",
		"Deployment " + s.Namespace + "/bare: label " + s.key + ": no annotation " + s.key + "/CONTAINER names an image",
	}
	for _, want := range wanted {
		hook.await(t, want)
	}
	s.fence(t)
	// A renamed container is a mistake too: its image is not brought back under the old name.
	d = s.Deployment(t, "web")
	d.Spec.Template.Spec.Containers[0].Name, d.Spec.Template.Spec.Containers[0].Image = "renamed", "before"
	if err := s.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	hook.await(t, "the pod template doesn't contain a container app; its containers are renamed, side, lost")
	s.fence(t)
	s.awaitImages(t, "web", "renamed=before side=before lost=before")
	stop(t, r)
	if n := strings.Count(hook.text(), "/bare: "); n != 1 {
		t.Errorf("the workload without an annotation is told of %d times, want once", n)
	}
}

// TestOffAndPlatforms: the flags of the original have an effect, also the one for CronJobs of
// an earlier release. The file .env sets what the environment does not.
func TestOffAndPlatforms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(t, "app:latest", "one")
	index, err := s.registry.PushIndex(t.Context(), "app", "latest", "one")
	if err != nil {
		t.Fatal(err)
	}
	arm, err := registrylab.ChildDigest("one", registrylab.Platforms()[1])
	if err != nil {
		t.Fatal(err)
	}
	every := s.deployment("every", "app:latest")
	every.Annotations["platform."+s.key+"/app"] = "index"
	set := &appsv1.StatefulSet{ObjectMeta: s.meta("db", "app", "app:latest"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selector("db"), Template: template("db", "app")}}
	s.Create(t, s.deployment("web", "app:latest"), every, set)
	s.write(t, ".env", "OFF_DAEMONSETS=true\nCONTROLLER_WATCH_KEY=not-this-one\n")
	r := labtest.StartCommand(t, labtest.Command{
		Path: program(t, "kube-image-deployer"), Dir: s.dir, Env: s.environment("CONTROLLER_WATCH_KEY="),
		Args: []string{"-controller-watch-key", s.key, "--off-statefulsets", "-image-default-platform=linux/arm64", "-use-cronjob-v1", "-v=2"},
	})
	s.awaitImages(t, "web", "app="+s.at("app@"+arm))
	s.awaitImages(t, "every", "app="+s.at("app@"+index))
	awaitLog(t, r, "use-cronjob-v1 has no effect")
	s.Get(t, "db", set)
	if got := images(set.Spec.Template); got != "app=before" {
		t.Errorf("the StatefulSet runs %s", got)
	}
	for _, c := range s.gate.all() {
		if strings.HasSuffix(c.path, "/statefulsets") || strings.HasSuffix(c.path, "/daemonsets") {
			t.Errorf("%s was asked for, which is off", c.path)
		}
	}
}
