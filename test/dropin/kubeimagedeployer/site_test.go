// Package kubeimagedeployer_test runs the built program in the place of
// kube-image-deployer: its command line and its variables, on a real API server, with
// exactly the permissions of its published ClusterRole, and a real registry. Like the original it
// trusts the certificates of the system, which only another process can have others of.
package kubeimagedeployer_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func TestMain(m *testing.M) { inprocess.Main(m, 6) }

// role is the ClusterRole of the original's manifest.
func role() []labtest.Rule {
	verbs := []string{"get", "list", "watch", "patch", "update"}
	return []labtest.Rule{
		{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: verbs},
		{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: verbs},
		{Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
	}
}

// site is a cluster in which the original was installed, with a registry.
type site struct {
	*testkit.World
	registry *registrylab.Server
	account  *labtest.Account
	gate     *gate
	// key is the watch key, which no other test has.
	key string
	// directory has Docker's configuration and the kubeconfig.
	dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, registrylab.Options{})
}

// newSiteWith does the same with a registry that has options.
func newSiteWith(t *testing.T, o registrylab.Options) *site {
	t.Helper()
	labtest.Story(t, "TestManifestOfTheOriginal")
	s := &site{World: testkit.NewWorld(t), registry: testkit.ServeRegistry(t, o), dir: t.TempDir()}
	s.key = s.Namespace
	s.account = labtest.NewAccount(t, s.Cluster, s.Own)
	s.account.AllowEverywhere(t, role()...)
	testkit.AwaitListing(t, s.account, true, &appsv1.DeploymentList{})
	s.gate = newGate(t, s.account.Kubeconfig)
	s.trust(t, s.registry)
	s.write(t, "kubeconfig", s.gate.kubeconfig)
	t.Cleanup(func() { s.checkCalls(t) })
	return s
}

func (s *site) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// trust makes the program trust registries, and gives it the credentials.
func (s *site) trust(t *testing.T, registries ...*registrylab.Server) {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	var auths, authorities []string
	for _, r := range registries {
		auths = append(auths, fmt.Sprintf(`%q:{"auth":%q}`, r.Address, auth))
		authorities = append(authorities, string(r.CA))
	}
	s.write(t, "config.json", `{"auths":{`+strings.Join(auths, ",")+`}}`)
	s.write(t, "ca.pem", strings.Join(authorities, "\n"))
}

// checkCalls is the same for every test: the role is enough, and nothing but the four
// kinds of workloads is asked for, and whether events may be written.
func (s *site) checkCalls(t *testing.T) {
	t.Helper()
	needed := regexp.MustCompile(`^/apis/((apps/v1|batch/v1)(/namespaces/[^/]+)?/(deployments|statefulsets|daemonsets|cronjobs)(/|$)` +
		`|authorization.k8s.io/v1/selfsubjectaccessreviews$|events.k8s.io/v1/namespaces/[^/]+/events$)`)
	for _, c := range s.gate.all() {
		if c.status == 403 || !needed.MatchString(c.path) {
			t.Errorf("the program asked for %s %s, and was answered %d", c.method, c.path, c.status)
		}
	}
}

// built is the program, which is built once for all tests of this directory.
var (
	built     string
	buildOnce sync.Mutex
)

func lockstep(t *testing.T) string {
	t.Helper()
	buildOnce.Lock()
	defer buildOnce.Unlock()
	if built == "" {
		built = labtest.Binary(t, "./cmd/lockstep")
	}
	return built
}

// program is an executable of that name.
func program(t *testing.T, name string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(lockstep(t), link); err != nil {
		t.Fatal(err)
	}
	return link
}

// environment is what the original's manifest sets, with intervals for tests.
func (s *site) environment(more ...string) []string {
	return append([]string{
		"KUBECONFIG_PATH=" + filepath.Join(s.dir, "kubeconfig"), "DOCKER_CONFIG=" + s.dir, "SSL_CERT_FILE=" + filepath.Join(s.dir, "ca.pem"),
		"HOME=" + s.dir, "CONTROLLER_WATCH_KEY=" + s.key, "IMAGE_CHECK_INTERVAL_SEC=1", "IMAGE_HASH_CACHE_TTL_SEC=0", "METRICS_ADDR=0", "PROBE_ADDR=0",
	}, more...)
}

// start starts the program as the original was started, with variables only.
func (s *site) start(t *testing.T, variables ...string) *labtest.Running {
	t.Helper()
	return labtest.StartCommand(t, labtest.Command{Path: program(t, "kube-image-deployer"), Env: s.environment(variables...), Dir: s.dir})
}

// stop ends the program, which ends well.
func stop(t *testing.T, r *labtest.Running) {
	t.Helper()
	r.Signal(t, syscall.SIGTERM)
	if code := r.ExitCode(t, testkit.Patience); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
}

// at is an image of the registry.
func (s *site) at(image string) string { return s.registry.Address + "/" + image }

// push pushes an image for two platforms and returns how the original wrote it: without a
// tag, with the digest of the image for linux/amd64.
func (s *site) push(t *testing.T, image, label string) string {
	t.Helper()
	repository, tag, _ := strings.Cut(image, ":")
	if _, err := s.registry.PushIndex(t.Context(), repository, tag, label); err != nil {
		t.Fatal(err)
	}
	digest, err := registrylab.ChildDigest(label, registrylab.Platforms()[0])
	if err != nil {
		t.Fatal(err)
	}
	return s.at(repository) + "@" + digest
}

// meta is that of a workload with the label, and with annotations as pairs of a container
// and an image of the registry.
func (s *site) meta(name string, images ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{s.key: "true"}, Annotations: map[string]string{}}
	for i := 0; i < len(images); i += 2 {
		m.Annotations[s.key+"/"+images[i]] = s.at(images[i+1])
	}
	return m
}

// deployment is a workload whose container "app" follows an image.
func (s *site) deployment(name, image string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: s.meta(name, "app", image), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: selector(name), Template: template(name, "app"),
	}}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// template has containers that run "before".
func template(name string, containers ...string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}}
	for _, c := range containers {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: c, Image: "before"})
	}
	return t
}

// images are what the containers run, init containers first: "name=image".
func images(p corev1.PodTemplateSpec) string {
	var all []string
	for _, c := range append(append([]corev1.Container{}, p.Spec.InitContainers...), p.Spec.Containers...) {
		all = append(all, c.Name+"="+c.Image)
	}
	return strings.Join(all, " ")
}

// awaitImages waits until the containers of a Deployment run these images.
func (s *site) awaitImages(t *testing.T, name, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := images(s.Deployment(t, name).Spec.Template)
		return got == want, fmt.Sprintf("%s runs %s, want %s", name, got, want)
	})
}

// setImage writes the image of a Deployment's first container, as a person does.
func (s *site) setImage(t *testing.T, name, image string) {
	t.Helper()
	d := s.Deployment(t, name)
	before := client.MergeFrom(d.DeepCopy())
	d.Spec.Template.Spec.Containers[0].Image = image
	if err := s.Client.Patch(t.Context(), d, before); err != nil {
		t.Fatal(err)
	}
}

// fence waits until the program has dealt with everything that happened before: it asks the
// registry once more for all that it follows, and moves what has changed by then.
func (s *site) fence(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("fence-%d", time.Now().UnixNano())
	want := s.push(t, name+":1", name)
	d := s.deployment(name, name+":1")
	s.Create(t, d)
	s.awaitImages(t, name, "app="+want)
	heads := 0
	s.registry.Counts()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		heads += s.registry.Counts()["head"]
		return heads >= 6, fmt.Sprintf("the registry was asked %d times", heads)
	})
	second := s.push(t, name+":1", name+" again")
	s.awaitImages(t, name, "app="+second)
	if err := s.Client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// awaitLog waits until the program has written a text.
func awaitLog(t *testing.T, r *labtest.Running, text string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Contains(r.Stderr(), text), "the log does not contain " + text
	})
}

// loadToken reads the token of a kubeconfig.
func loadToken(t *testing.T, kubeconfig string) (server, token string, ca []byte) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.Host, config.BearerToken, config.CAData
}
