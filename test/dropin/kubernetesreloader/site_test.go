// Package kubernetesreloader_test runs the product in the place of
// kubernetes-reloader: its command line, on a real API server, with exactly the
// permissions of its published Role.
package kubernetesreloader_test

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const (
	stateName           = "reloader-state"
	configMapAnnotation = "reloader.k8s.collaborne.com/configmap"
	secretAnnotation    = "reloader.k8s.collaborne.com/secret"
	// patience bounds every wait for something that must happen.
	patience = 3 * time.Minute
	// period is the coalesce period of most tests, in milliseconds.
	period = "--coalesce-period=300"
)

func TestMain(m *testing.M) { inprocess.Main(m, 8) }

// role is the Role of the original's manifest.
func role() []labtest.Rule {
	return []labtest.Rule{readSources(), patchState(), patchWorkloads()}
}

func readSources() labtest.Rule {
	return labtest.Rule{Groups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"list", "get", "watch"}}
}

func patchState() labtest.Rule {
	return labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{stateName}, Verbs: []string{"patch"}}
}

func patchWorkloads() labtest.Rule {
	return labtest.Rule{
		Groups: []string{"extensions", "apps"}, Resources: []string{"deployments", "daemonsets", "statefulsets"},
		Verbs: []string{"list", "get", "update", "patch", "watch"},
	}
}

// site is a namespace in which the original was installed.
type site struct {
	cluster   *labtest.Cluster
	admin     client.Client
	namespace string
	account   *labtest.Account
	config    *rest.Config // of the account
	gate      *gate
	begun     time.Time
}

// newSite makes a namespace with the original's objects, all but its Deployment.
func newSite(t *testing.T) *site {
	t.Helper()
	s := newBareSite(t)
	s.createState(t, nil)
	return s
}

// newBareSite makes one without the state.
func newBareSite(t *testing.T) *site {
	t.Helper()
	return newSiteAllowing(t, role()...)
}

// newSiteAllowing makes one without the state, where the account has other permissions than those of
// the original's Role.
func newSiteAllowing(t *testing.T, rules ...labtest.Rule) *site {
	t.Helper()
	labtest.Story(t, "TestEvents")
	s := &site{cluster: labtest.Shared(t), begun: time.Now()}
	s.namespace = labtest.Namespace(t, s.cluster)
	s.admin = connect(t, s.cluster.Kubeconfig())
	s.account = labtest.NewAccount(t, s.cluster, s.namespace)
	s.account.Allow(t, rules...)
	s.awaitPermissions(t, rules)
	s.config = load(t, s.account.Kubeconfig)
	s.gate = newGate(t, s.config)
	t.Cleanup(func() { s.checkCalls(t) })
	return s
}

// awaitPermissions waits until the API server's authorizer knows the account's Role: without
// permissions, the program ends.
func (s *site) awaitPermissions(t *testing.T, rules []labtest.Rule) {
	t.Helper()
	for resource, list := range map[string]client.ObjectList{
		"configmaps": &corev1.ConfigMapList{}, "secrets": &corev1.SecretList{}, "deployments": &appsv1.DeploymentList{},
		"daemonsets": &appsv1.DaemonSetList{}, "statefulsets": &appsv1.StatefulSetList{},
	} {
		allowed := slices.ContainsFunc(rules, func(r labtest.Rule) bool {
			return slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, "list")
		})
		testkit.AwaitListing(t, s.account, allowed, list, client.InNamespace(s.namespace))
	}
}

// checkCalls is the same for every test: what is forbidden is not tried over and
// over, and the program needs no discovery.
func (s *site) checkCalls(t *testing.T) {
	t.Helper()
	forbidden := map[string]int{}
	for _, c := range s.gate.seen(func(c call) bool { return c.status == 403 }) {
		forbidden[c.method+" "+c.path]++
	}
	for what, times := range forbidden {
		// Retries have pauses, and a slow machine gives them more time.
		if times > 10+int(time.Since(s.begun).Seconds()) {
			t.Errorf("%s was forbidden and tried %d times", what, times)
		}
	}
	elsewhere := regexp.MustCompile(`^/(api/v1|apis/apps/v1)/namespaces/` + s.namespace + `/(configmaps|secrets|deployments|daemonsets|statefulsets)(/|$)`)
	for _, c := range s.gate.seen(func(c call) bool { return !elsewhere.MatchString(c.path) }) {
		t.Errorf("the program asked for %s %s, which it does not need", c.method, c.path)
	}
}

func load(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func connect(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(load(t, kubeconfig), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
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

// program is an executable called kubernetes-reloader.
func program(t *testing.T) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "kubernetes-reloader")
	if err := os.Symlink(lockstep(t), link); err != nil {
		t.Fatal(err)
	}
	return link
}

// run starts the program and waits until it hears of everything: what happens
// from now on happens before its eyes.
func (s *site) run(t *testing.T, more ...string) *labtest.Running {
	t.Helper()
	return following(t, s.start(t, more...))
}

// runProcess does the same with the built program, which can be killed.
func (s *site) runProcess(t *testing.T, more ...string) *labtest.Running {
	t.Helper()
	return following(t, labtest.StartCommand(t, labtest.Command{Path: program(t), Args: s.args(more...)}))
}

func following(t *testing.T, r *labtest.Running) *labtest.Running {
	t.Helper()
	for _, resource := range []string{"configmaps in", "secrets in", "deployments in", "daemonsets in", "statefulsets in", "configmap " + stateName} {
		awaitLog(t, r, `msg=following resource="`+resource)
	}
	return r
}

// start starts the program as the original's manifest does, through the gate.
func (s *site) start(t *testing.T, more ...string) *labtest.Running {
	t.Helper()
	return inprocess.Start(t, inprocess.Command{Program: "kubernetes-reloader", Args: s.args(more...)})
}

func (s *site) args(more ...string) []string {
	return append([]string{
		"--port=0", "--namespace=" + s.namespace, "--configmap=" + stateName,
		"--server", "http://" + s.gate.line.Address(), "--token", s.config.BearerToken, period,
	}, more...)
}

func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *site) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		o.SetNamespace(s.namespace)
		if err := s.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// update writes the object as it is here, whatever controllers wrote meanwhile.
func (s *site) update(t *testing.T, o client.Object) {
	t.Helper()
	o.SetResourceVersion("")
	if err := s.admin.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// set writes another value into a ConfigMap.
func (s *site) set(t *testing.T, cm *corev1.ConfigMap, value string) {
	t.Helper()
	cm.Data["key"] = value
	s.update(t, cm)
}

func (s *site) remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := s.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// configMap is one with a single key; its SHA-1 is sum of the value.
func (s *site) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: s.meta(name), Data: map[string]string{"key": value}}
}

func (s *site) secret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: s.meta(name), Data: map[string][]byte{"key": []byte(value)}}
}

// sum is what the original made of an object with this value under "key".
func sum(value string) string {
	digest := sha1.Sum([]byte("key=" + value))
	return hex.EncodeToString(digest[:])
}

func (s *site) createState(t *testing.T, data map[string]string) {
	t.Helper()
	s.create(t, &corev1.ConfigMap{ObjectMeta: s.meta(stateName), Data: data})
}

func (s *site) state(t *testing.T) map[string]string {
	t.Helper()
	cm := &corev1.ConfigMap{}
	if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: stateName}, cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data
}

// awaitState waits until the state has these digests and their strong forms.
func (s *site) awaitState(t *testing.T, want map[string]string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		got := s.state(t)
		for key, value := range want {
			if got[key] != value || !strings.HasSuffix(got[key+".sha256"], " "+value) {
				return false, fmt.Sprintf("the state is %v, want %s=%s and its strong form", got, key, value)
			}
		}
		return true, ""
	})
}

// deployment is a workload that names the ConfigMaps.
func (s *site) deployment(name, configMaps string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: s.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: selector(name), Template: template(name),
	}}
	d.Annotations = map[string]string{configMapAnnotation: configMaps}
	return d
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}}},
	}
}

// podSpec is the workload's template as it is now.
func (s *site) podSpec(t *testing.T, o client.Object) corev1.PodSpec {
	t.Helper()
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return o.Spec.Template.Spec
	}
	t.Fatalf("unexpected %T", o)
	return corev1.PodSpec{}
}

// variables are the reloader's variables of the workload's containers, as
// "container/NAME": value.
func variables(spec corev1.PodSpec) map[string]string {
	found := map[string]string{}
	for _, c := range append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...) {
		for _, e := range c.Env {
			if strings.HasPrefix(e.Name, "_RELOADER_") && e.ValueFrom == nil {
				found[c.Name+"/"+e.Name] = e.Value
			}
		}
	}
	return found
}

// awaitRolled waits until the workload shows exactly these variables, and checks
// how many patches that took since the workload was made.
func (s *site) awaitRolled(t *testing.T, o client.Object, patches int, want map[string]string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		got := variables(s.podSpec(t, o))
		return maps.Equal(got, want), fmt.Sprintf("%s shows %v, want %v", o.GetName(), got, want)
	})
	s.mustHave(t, o, patches)
}

// mustHave checks how often the program has patched the workload.
func (s *site) mustHave(t *testing.T, o client.Object, patches int) {
	t.Helper()
	kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."))
	var got int
	// The gate learns of an answer a little later than the API server acts.
	labtest.Eventually(t, patience, func() (bool, string) {
		got = len(s.gate.seen(func(c call) bool {
			return c.method == http.MethodPatch && c.status == http.StatusOK && strings.HasSuffix(c.path, "/"+kind+"s/"+o.GetName())
		}))
		return got >= patches, fmt.Sprintf("%s %s was patched %d times, want %d", kind, o.GetName(), got, patches)
	})
	if got != patches {
		t.Errorf("%s %s was patched %d times, want %d; it shows %v", kind, o.GetName(), got, patches, variables(s.podSpec(t, o)))
	}
}

// fence waits until the program has dealt with everything that happened before:
// a change that is made now is delivered, and it waits longer than any before it.
func (s *site) fence(t *testing.T) {
	t.Helper()
	name := "fence-" + strings.ToLower(rand.Text()[:6])
	cm := s.configMap(name, "before")
	d := s.deployment(name, name)
	s.create(t, cm, d)
	s.set(t, cm, "after")
	s.awaitRolled(t, d, 1, map[string]string{"main/" + variable("CONFIGMAP", name): sum("after")})
}

// variable is the name of a source's variable.
func variable(kind, name string) string {
	return "_RELOADER_" + kind + "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// awaitLog waits until the program has written a text.
func awaitLog(t *testing.T, r *labtest.Running, text string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(r.Stdout(), text), "the log does not contain " + text
	})
}

// awaitStrong waits until the strong digest of an entry is another one than
// before, and returns the part of it that a template shows.
func (s *site) awaitStrong(t *testing.T, key, before string) string {
	t.Helper()
	digest := regexp.MustCompile(`^[^ ]*:([0-9a-f]{10})[0-9a-f]* `)
	var short string
	labtest.Eventually(t, patience, func() (bool, string) {
		now := s.state(t)[key+".sha256"]
		match := digest.FindStringSubmatch(now)
		if match != nil {
			short = match[1]
		}
		return match != nil && now != before, fmt.Sprintf("%s.sha256 is %q", key, now)
	})
	return short
}

// awaitNoState waits until the state has neither the entry nor its strong form.
func (s *site) awaitNoState(t *testing.T, key string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		state := s.state(t)
		return state[key] == "" && state[key+".sha256"] == "", fmt.Sprintf("the state is %v", state)
	})
}

// awaitVariables waits until the workload has that many variables of ours, by
// one rollout each.
func (s *site) awaitVariables(t *testing.T, d *appsv1.Deployment, count int) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		spec := s.podSpec(t, d)
		return len(variables(spec)) == count, fmt.Sprintf("%v", variables(spec))
	})
	s.mustHave(t, d, count)
}

// awaitStateExists waits until somebody has made the state.
func (s *site) awaitStateExists(t *testing.T) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: stateName}, &corev1.ConfigMap{})
		return err == nil, fmt.Sprintf("the state: %v", err)
	})
}
