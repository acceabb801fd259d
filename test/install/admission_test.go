package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestWordsInPolicies: the policies know kube-image-deployer's annotations only where the
// controller reads them.
func TestWordsInPolicies(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for name, tc := range map[string]struct {
		values string
		knows  bool
	}{
		"none":           {"", false},
		"other tool":     {"extraArgs: [--read-annotations=stakater]", false},
		"this tool":      {"extraArgs: [--read-annotations=kube-image-deployer]", true},
		"two arguments":  {"extraArgs: [--read-annotations, kube-image-deployer]", true},
		"both tools":     {"extraArgs: ['--read-annotations=stakater,kube-image-deployer']", true},
		"other variable": {"extraEnv: [{name: LOCKSTEP_READ_ANNOTATIONS, value: stakater}]", false},
		"variable":       {"extraEnv: [{name: LOCKSTEP_READ_ANNOTATIONS, value: kube-image-deployer}]", true},
		"from elsewhere": {"extraEnv: [{name: LOCKSTEP_READ_ANNOTATIONS, valueFrom: {configMapKeyRef: {name: a, key: b}}}]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := "image: {repository: registry.example/lockstep}\nimages: {enabled: true}\nadmissionPolicy: {enabled: true}\n" + tc.values + "\n"
			policies, knows := 0, false
			for _, o := range render(t, h, "lockstep", "own", values) {
				if o.GetKind() == "ValidatingAdmissionPolicy" {
					policies++
					knows = knows || strings.Contains(fmt.Sprint(o.Object), "kube-image-deployer/")
				}
			}
			if policies == 0 || knows != tc.knows {
				t.Errorf("%d policies, and they know its annotations: %t, want %t", policies, knows, tc.knows)
			}
		})
	}
}

// TestAdmissionPolicies: with the policies the controller does everything that is switched on,
// in both forms, and somebody else with its token can't do more.
func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	l := lab{cluster: labtest.Private(t, labtest.Options{With: []labtest.Component{labtest.KWOK, labtest.ArgoRollouts}})}
	l.registry = testkit.ServeRegistry(t, registrylab.Options{})
	l.authority = testkit.Authority(t, l.registry)
	l.installWorkers(t)
	all := switches{reload: true, revisions: true, images: true, pods: true, secrets: []string{}, workers: true, admission: true}
	i := l.install(t, all, false)
	env := l.install(t, switches{reload: true, workers: true, admission: true, env: true}, true)
	i.awaitPolicies(t)
	env.awaitPolicies(t)
	// One after the other: the second follows all namespaces.
	t.Run("the controller, as a variable", env.playAdmitted)
	t.Run("the controller", i.playAdmitted)
	t.Run("a stolen token", i.playThief)
	t.Run("a stolen token without images", func(t *testing.T) {
		env.Make(t, workload("Deployment", "asks", "image.lockstep.dev/app: 'registry.example/app:1'", "containers: [{name: app, image: 'registry.example/app:1'}]", 0))
		body := `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/app@sha256:` + strings.Repeat("0", 64) + `"}]`
		env.wantDenied(t, theft{"Deployment", "asks", body, "because images.enabled is off"})
	})
}

// awaitPolicies waits until the policies are in force, and the API server has checked their types.
func (i *installed) awaitPolicies(t *testing.T) {
	t.Helper()
	i.Make(t, workload("Deployment", "first", "", "containers: [{name: app, image: app}]", 0))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := i.steal(t, theft{kind: "Deployment", name: "first", body: `[{"op": "add", "path": "/spec/replicas", "value": 0}]`})
		if err == nil {
			err = i.steal(t, theft{kind: "Deployment", name: "first", body: `[{"op": "add", "path": "/spec/replicas", "value": 1}]`})
		}
		return apierrors.IsForbidden(err), fmt.Sprintf("nothing is denied yet: %v", err)
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		policies := &admissionv1.ValidatingAdmissionPolicyList{}
		if err := i.Client.List(t.Context(), policies); err != nil {
			t.Fatal(err)
		}
		for _, p := range policies.Items {
			if p.Status.TypeChecking == nil {
				return false, p.Name + " is not checked"
			}
			for _, w := range p.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", p.Name, w.FieldRef, w.Warning)
			}
		}
		return len(policies.Items) > 0, "there are no policies"
	})
}

// playAdmitted uses everything that is switched on; each part waits for what is written.
func (i *installed) playAdmitted(t *testing.T) {
	c := i.start(t)
	i.createWorkloads(t)
	i.changeInputs(t)
	i.awaitMoved(t)
	if i.switches.images {
		i.playOtherWords(t)
	}
	if i.switches.pods {
		i.useStrategies(t)
	}
	if i.switches.revisions {
		i.attach(t)
		i.playDeniedNamespace(t)
	}
	stop(t, c)
}

// playOtherWords: an image that is asked for in the words of kube-image-deployer is pinned.
func (i *installed) playOtherWords(t *testing.T) {
	t.Helper()
	image := i.lab.registry.Address + "/" + i.Own + ":1"
	i.Make(t, labelled(workload("Deployment", "other", "kube-image-deployer/app: '"+image+"'", "serviceAccountName: puller, containers: [{name: app, image: '"+image+"'}]", 0)))
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text := i.template(t, "Deployment", "other")
		return strings.Contains(text, i.pushed), fmt.Sprintf("it has %s; the events are %q", text, i.Events(t, "other"))
	})
}

// labelled is a workload that kube-image-deployer would follow.
func labelled(manifest string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {labels: {kube-image-deployer: ''}, ", 1)
}

// playDeniedNamespace: whoever annotates kube-system or a workload in it is warned, and the workload
// gets one event that names the way out.
func (i *installed) playDeniedNamespace(t *testing.T) {
	t.Helper()
	system, warned := *i.World, &warnings{}
	system.Namespace, system.Client = metav1.NamespaceSystem, warningClient(t, i.World, warned)
	system.Create(t, testkit.ConfigMap("proxy", "key", "1"))
	system.Make(t, workload("Deployment", "proxy", "lockstep.dev/reload: auto", "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: proxy}}]}]", 0))
	warned.want(t, "a workload")
	system.Make(t, labelled(workload("Deployment", "other", "kube-image-deployer/app: 'registry.example/app:1'", "containers: [{name: app, image: app}]", 0)))
	warned.want(t, "a workload of kube-image-deployer")
	annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"lockstep.dev/reload": "auto"}}}`))
	if err := system.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system.Namespace}}, annotation, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	warned.want(t, "the namespace")
	system.AwaitRecord(t, "proxy", "configmap/proxy")
	system.SetConfig(t, "proxy", "key", "2")
	system.AwaitEvent(t, "proxy", "Warning ReloadFailed Lockstep can't write in this namespace: remove it from the chart value admissionPolicy.deniedNamespaces")
	system.AwaitRecord(t, "proxy", "ReloadFailed", "remove it from the chart value admissionPolicy.deniedNamespaces, or remove Lockstep's annotations and labels")
	if shown := system.Shown(t, "proxy"); shown != "" {
		t.Errorf("it was rolled out: %s", shown)
	}
}

// warnings are those of the API server.
type warnings struct{ text string }

// HandleWarningHeader keeps the warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.text += text }

// want forgets the warnings that it has compared.
func (w *warnings) want(t *testing.T, annotated string) {
	t.Helper()
	if want := "Lockstep can't roll out workloads in this namespace, because the chart value admissionPolicy.deniedNamespaces lists it"; !strings.Contains(w.text, want) {
		t.Errorf("for %s: warned with %q, want %q", annotated, w.text, want)
	}
	w.text = ""
}

func warningClient(t *testing.T, w *testkit.World, to *warnings) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = to
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// theft is a JSON patch by somebody who has the controller's token, and what the API server says.
type theft struct{ kind, name, body, says string }

// steal sends the patch. It stores nothing, but is admitted like one that does.
func (i *installed) steal(t *testing.T, what theft) error {
	t.Helper()
	o := &unstructured.Unstructured{}
	switch what.kind {
	case "ConfigMap", "Secret", "Pod":
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(what.kind))
	default:
		o.SetGroupVersionKind(gvk(what.kind))
	}
	namespace, name, named := strings.Cut(what.name, "/")
	if !named {
		namespace, name = i.Namespace, what.name
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	return testkit.NewClient(t, i.kubeconfig).Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(what.body)), client.DryRunAll)
}

func (i *installed) wantDenied(t *testing.T, what theft) {
	t.Helper()
	err := i.steal(t, what)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+i.Own+"-") || !strings.Contains(err.Error(), what.says) {
		t.Errorf("%s %s: %s\nthe API server answers %v\nwant that %s", what.kind, what.name, what.body, err, what.says)
	}
}

// playThief tries what the controller never does, after it has done its work.
func (i *installed) playThief(t *testing.T) {
	i.makeLoot(t)
	pod := i.podOf(t, "refresh")
	const (
		outside    = "can't change a workload's fields outside of its pod template"
		containers = "can't add or remove containers, or change fields of one, except"
		image      = "can't change a container's image, except to a digest from the repository"
		variable   = "can't change environment variables, except LOCKSTEP_INPUTS"
		spec       = "can't change a pod template's spec, except in its containers"
	)
	digest := "@sha256:" + strings.Repeat("0", 64)
	set := func(path, value string) string {
		return fmt.Sprintf(`[{"op": "add", "path": %q, "value": %s}]`, path, value)
	}
	template := "/spec/template/spec"
	all := []theft{
		{"Deployment", "loot", set("/spec/replicas", "5"), outside},
		{"Deployment", "loot", set("/spec/paused", "true"), outside},
		{"Deployment", "loot", set(template+"/containers/0/command", `["sh"]`), containers},
		{"Deployment", "loot", set(template+"/containers/0/volumeMounts", `[{"name": "v", "mountPath": "/v"}]`), containers},
		{"Deployment", "loot", set(template+"/containers/-", `{"name": "more", "image": "app"}`), containers},
		{"Deployment", "loot", `[{"op": "remove", "path": "` + template + `/containers/1"}]`, containers},
		{"Deployment", "loot", set(template+"/initContainers", `[{"name": "more", "image": "app"}]`), "can't add or remove init containers"},
		{"Deployment", "loot", set(template+"/containers/1/image", `"app`+digest+`"`), image},
		{"Deployment", "loot", set(template+"/containers/0/image", `"evil`+digest+`"`), image},
		{"Deployment", "loot", set(template+"/containers/0/image", `"registry.example:5000/appx:1`+digest+`"`), image},
		{"Deployment", "loot", set(template+"/containers/0/image", `"registry.example:5000/app:2"`), image},
		{"Deployment", "unlabelled", set(template+"/containers/0/image", `"registry.example/old`+digest+`"`), image},
		{"Deployment", "both", set(template+"/containers/0/image", `"registry.example/old`+digest+`"`), image},
		{"Deployment", "loot", set(template+"/containers/0/env", `[{"name": "LD_PRELOAD", "value": "/x"}]`), variable},
		{"Deployment", "loot", set(template+"/containers/0/env", `[{"name": "LOCKSTEP_INPUTS", "valueFrom": {"secretKeyRef": {"name": "db", "key": "key"}}}]`), variable},
		{"Deployment", "loot", set(template+"/hostNetwork", "true"), spec},
		{"Deployment", "loot", set(template+"/serviceAccountName", `"admin"`), spec},
		{"Deployment", "loot", set("/spec/template/metadata/labels/more", `"1"`), "can't change a pod template's metadata, except its own annotation"},
		{"Deployment", "loot", set("/spec/template/metadata/annotations", `{"sidecar.example/inject": "true"}`), "can't change a pod template's annotations, except lockstep.dev/inputs"},
		{"Deployment", "loot", set("/metadata/annotations/image.lockstep.dev~1app", `"evil:1"`), "can't change a workload's annotations, except lockstep.dev/moved-by"},
		{"Deployment", "loot", set("/metadata/labels", `{"more": "1"}`), "can't change a workload's metadata, except its own annotation"},
		{"Deployment", "loot", set("/metadata/finalizers", `["example.com/stay"]`), "can't change a workload's metadata, except its own annotation"},
		{"Deployment", "kube-system/proxy", set("/spec/template/metadata/annotations", `{"lockstep.dev/inputs": "1"}`), "can't write in this namespace"},
		{"StatefulSet", "pulled", set(template+"/containers/0/command", `["sh"]`), containers},
		{"DaemonSet", "pulled", set(template+"/containers/0/command", `["sh"]`), containers},
		{"Rollout", "pulled", set(template+"/containers/0/command", `["sh"]`), containers},
		{"Worker", "pulled", set(template+"/containers/0/command", `["sh"]`), containers},
		{"Worker", "pulled", set("/spec/replicas", "5"), outside},
		{"CronJob", "pulled", set("/spec/jobTemplate"+template+"/containers/0/command", `["sh"]`), containers},
		{"CronJob", "pulled", set("/spec/schedule", `"* * * * *"`), outside},
		{"CronJob", "pulled", set("/spec/jobTemplate/spec/parallelism", "9"), outside},
		{"ConfigMap", "app", set("/metadata/labels", `{"lockstep.dev/revisioned": "true"}`), "can't change ConfigMaps and Secrets without the label"},
		{"ConfigMap", "web-3fa9c1d2e4", set("/data/key", `"2"`), "can't change the content of ConfigMaps and Secrets"},
		{"Secret", "db", set("/data/key", `"Mg=="`), "can't change ConfigMaps and Secrets without the label"},
		{"Secret", "web-3fa9c1d2e4", set("/data/key", `"Mg=="`), "can't change the content of ConfigMaps and Secrets"},
		{"Secret", "web-3fa9c1d2e4", set("/metadata/annotations", `{"more": "1"}`), "can't change the metadata of ConfigMaps and Secrets, except owner references"},
		{"Secret", "web-3fa9c1d2e4", `[{"op": "remove", "path": "/metadata/ownerReferences"}]`, "can't remove owner references"},
		{"Pod", pod, set("/spec/containers/0/image", `"evil"`), "can't change a pod's fields, except its own annotation"},
		{"Pod", pod, set("/metadata/labels/app", `"other"`), "can't change a pod's metadata, except its own annotation"},
		{"Pod", pod, set("/metadata/annotations/more", `"1"`), "can't change a pod's annotations, except lockstep.dev/inputs"},
	}
	for _, what := range append(all, theftOfThePage(t)) {
		i.wantDenied(t, what)
	}
	i.wantDeniedObjects(t)
	// What the controller does, by the same means: the denials above are no accident of theirs.
	for _, what := range []theft{
		{"Deployment", "loot", set("/spec/template/metadata/annotations", `{"lockstep.dev/inputs": "1"}`), ""},
		{"Deployment", "loot", set(template+"/containers/0/env", `[{"name": "LOCKSTEP_INPUTS", "value": "1"}]`), ""},
		{"Deployment", "loot", set(template+"/containers/0/image", `"registry.example:5000/app:1.2`+digest+`"`), ""},
		{"Deployment", "both", set(template+"/containers/0/image", `"registry.example/new:1`+digest+`"`), ""},
		{"Pod", pod, set("/metadata/annotations/lockstep.dev~1inputs", `"1"`), ""},
	} {
		if err := i.steal(t, what); err != nil {
			t.Errorf("%s: %v", what.body, err)
		}
	}
}

// theftOfThePage is the one that the chart's page shows.
func theftOfThePage(t *testing.T) theft {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "charts", "lockstep", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s) -d '([^']+)' \| grep [^\n]+\n.* denied request: ([^"]+)",`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no such session")
	}
	return theft{"Deployment", "loot", string(found[1]), string(found[2])}
}

// makeLoot makes a workload of which the image of one container is followed, one without the label
// of kube-image-deployer, and one whose own annotation wins.
func (i *installed) makeLoot(t *testing.T) {
	t.Helper()
	i.Make(t, workload("Deployment", "loot", "image.lockstep.dev/app: ' registry.example:5000/app:^1'",
		"volumes: [{name: v, emptyDir: {}}], containers: [{name: app, image: 'registry.example:5000/app:1'}, {name: beside, image: beside}]", 0))
	const old, pod = "kube-image-deployer/app: 'registry.example/old:1'", "containers: [{name: app, image: app}]"
	i.Make(t, workload("Deployment", "unlabelled", old, pod, 0)+labelled(workload("Deployment", "both", old+", image.lockstep.dev/app: 'registry.example/new:1'", pod, 0)))
}

// podOf is the name of an application's pod.
func (i *installed) podOf(t *testing.T, app string) string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := i.Client.List(t.Context(), pods, client.InNamespace(i.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	running := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil })
	if running < 0 {
		t.Fatalf("%s has no pod", app)
	}
	return pods.Items[running].Name
}

// wantDeniedObjects tries to make objects: in its own namespace the controller may create any by
// its role, also a token for another account.
func (i *installed) wantDeniedObjects(t *testing.T) {
	t.Helper()
	thief := testkit.NewClient(t, i.kubeconfig)
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	token := &corev1.Secret{ObjectMeta: in(i.Own, "token"), Type: corev1.SecretTypeServiceAccountToken}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
	key := &corev1.Secret{ObjectMeta: in(i.Own, "lockstep-installation-key"), Type: corev1.SecretTypeServiceAccountToken}
	key.Annotations = token.Annotations
	state := &corev1.ConfigMap{ObjectMeta: in(i.Own, "lockstep-state-000")}
	state.Labels = map[string]string{settings.StateLabel: "true"}
	for name, o := range map[string]client.Object{"token": token, "key": key, "state": state} {
		err := thief.Create(t.Context(), o, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "can't create ConfigMaps, Secrets and Leases, except") {
			t.Errorf("%s: %v", name, err)
		}
	}
	system := &corev1.Pod{ObjectMeta: in(metav1.NamespaceSystem, "proxy"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	if err := i.Client.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	err := thief.SubResource("eviction").Create(t.Context(), system, &policyv1.Eviction{ObjectMeta: in(metav1.NamespaceSystem, "proxy")})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "can't write in this namespace") {
		t.Errorf("an eviction in kube-system: %v", err)
	}
}
