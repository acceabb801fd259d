package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPermissionsAreUsedAndSuffice runs the controller with exactly the roles that the chart
// renders: each capability alone, none and all, also only observed, cluster-wide and in one
// namespace, which is named or has a label. All of them follow a further kind, too. The API
// server's log has every request: none is denied, and no permission is without a request.
//
// Those that follow one namespace run together. Of those that follow all of them, the ones
// that move different things run together.
func TestPermissionsAreUsedAndSuffice(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := lab{cluster: labtest.Private(t, labtest.Options{
		With: []labtest.Component{labtest.KWOK, labtest.ArgoRollouts},
		// Without streams a list is a list, and shows as one in the log.
		APIServerFlags: []string{"--audit-policy-file=" + auditPolicy(t), "--audit-log-path=" + audit, "--feature-gates=WatchList=false"},
	})}
	l.registry = testkit.ServeRegistry(t, registrylab.Options{})
	l.authority = testkit.Authority(t, l.registry)
	l.installWorkers(t)
	none, reload, images := switches{}, switches{reload: true}, switches{images: true}
	listed := switches{images: true, listed: true}
	named := switches{images: true, listed: true, anyPlatform: true}
	revisions := switches{revisions: true, secrets: []string{}}
	pods := switches{reload: true, pods: true}
	few := switches{reload: true, images: true, only: []string{"StatefulSet"}}
	all := switches{reload: true, revisions: true, images: true, pods: true, secrets: []string{}, workers: true}
	observed := all
	observed.observe = true
	selected := all
	selected.selector = "followed-by"
	for _, phase := range []struct {
		name     string
		one      bool
		together []switches
	}{
		{"one namespace", true, []switches{none, reload, images, listed, named, revisions, pods, few, all, observed, selected}},
		{"cluster-wide", false, []switches{none, reload, images, revisions}},
		{"cluster-wide, pods", false, []switches{pods, listed}},
		{"cluster-wide, all", false, []switches{all}},
		{"cluster-wide, observed", false, []switches{observed}},
	} {
		// Namespaces stay until the end: in one that is being deleted nobody may create events.
		var installations []*installed
		for _, s := range phase.together {
			installations = append(installations, l.install(t, s, phase.one))
		}
		t.Run(phase.name, func(t *testing.T) {
			for _, i := range installations {
				t.Run(i.switches.String(), func(t *testing.T) {
					t.Parallel()
					i.play(t, audit)
				})
			}
		})
	}
}

// play uses everything that is switched on, and compares.
func (i *installed) play(t *testing.T, audit string) {
	t.Helper()
	s := i.switches
	c := i.start(t)
	i.createWorkloads(t)
	stop(t, c)
	// Changes that no process watched: the next one looks at the revisions, and at the pods of what
	// another tool has rolled out.
	i.edit(t)
	i.changeInputs(t)
	c = i.start(t)
	i.awaitMoved(t)
	if s.pods && !s.observe {
		i.useStrategies(t)
	}
	if s.revisions {
		i.attach(t)
	}
	// Some permissions are used without anybody asking: a leader renews its lease.
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		log := requests(t, audit, i.account())
		var unused []permission
		for _, r := range granted(t, i.objects) {
			if !slices.ContainsFunc(log, r.covers) && !rare(r, i.Own) {
				unused = append(unused, r)
			}
		}
		return len(unused) == 0, fmt.Sprintf("granted and never used: %q", words(unused))
	})
	stop(t, c)
	requests(t, audit, i.account())
}

// rare are the permissions whose use this test cannot bring about at will.
func rare(r permission, own string) bool {
	return slices.Contains([]string{
		"patch events",               // an event that repeats within minutes: the client library counts it up
		"patch events.events.k8s.io", // the same for ours
		"get configmaps",             // when two processes write the same part of the record at once
	}, r.what()) ||
		// A part of the record that cannot be written is told on its ConfigMap.
		r.what() == "create events.events.k8s.io" && r.namespace == own
}

// createWorkloads makes what is followed, and waits until it is known, and pinned.
func (i *installed) createWorkloads(t *testing.T) {
	t.Helper()
	s := i.switches
	if s.reload {
		i.Create(t, testkit.ConfigMap("app", "key", "1"), testkit.Secret("db", "key", "1"))
		for _, kind := range i.switches.kinds() {
			i.Make(t, workload(kind, "reloaded", "lockstep.dev/reload: auto",
				"containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}, {secretRef: {name: db}}]}]", 0))
		}
		i.Make(t, workload(s.kinds()[0], "edited", "lockstep.dev/reload: auto", "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]", 0))
		for _, kind := range i.switches.kinds() {
			i.awaitRecord(t, kind, "reloaded")
		}
		i.awaitRecord(t, s.kinds()[0], "edited")
	}
	if s.images {
		i.push(t, "one")
		image := i.lab.registry.Address + "/" + i.Own + ":1"
		i.Make(t, i.lab.pullSecret())
		for _, kind := range i.switches.kinds() {
			i.Make(t, workload(kind, "pulled", "image.lockstep.dev/app: '"+image+"'",
				"serviceAccountName: puller, containers: [{name: app, image: '"+image+"'}]", 0))
		}
		if s.observe {
			i.AwaitEvent(t, "pulled", "WouldReload", "image/app")
			return
		}
		i.awaitPinned(t, "@sha256:")
	}
}

// push gives the tag of the installation's image other content, and returns its digest.
func (i *installed) push(t *testing.T, content string) string {
	t.Helper()
	digest, err := i.lab.registry.PushIndex(t.Context(), i.Own, "1", content)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// gvk is the kind with its group and version.
func gvk(kind string) schema.GroupVersionKind {
	switch kind {
	case "CronJob":
		return schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: kind}
	case "Worker":
		return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
	case "Rollout":
		return schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: kind}
	}
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

func (i *installed) awaitRecord(t *testing.T, kind, name string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return i.RecordOf(t, gvk(kind).GroupKind(), name) != "", kind + " " + name + " is not on record"
	})
}

// template is the pod template of a workload, as text.
func (i *installed) template(t *testing.T, kind, name string) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk(kind))
	i.Get(t, name, o)
	path := []string{"spec", "template"}
	if kind == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(template)
}

func (i *installed) awaitPinned(t *testing.T, digest string) {
	t.Helper()
	for _, kind := range i.switches.kinds() {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			text := i.template(t, kind, "pulled")
			return strings.Contains(text, digest), kind + " has " + text
		})
	}
}

// edit is another tool's rollout, and waits until there is a revision of it.
func (i *installed) edit(t *testing.T) {
	t.Helper()
	if !i.switches.reload {
		return
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk(i.switches.kinds()[0]))
	i.Patch(t, o, "edited", `{"spec":{"template":{"metadata":{"annotations":{"edited":"1"}}}}}`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		i.Get(t, "edited", o)
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return observed == o.GetGeneration(), fmt.Sprintf("generation %d of %d was observed", observed, o.GetGeneration())
	})
}

func (i *installed) changeInputs(t *testing.T) {
	t.Helper()
	if i.switches.reload {
		i.SetConfig(t, "app", "key", "2")
		i.SetSecret(t, "db", "key", "2")
	}
	if i.switches.images {
		i.pushed = i.push(t, "two")
	}
}

// awaitMoved waits until everything that rolls shows what it was given. A CronJob starts its
// pods by itself, and is not written.
func (i *installed) awaitMoved(t *testing.T) {
	t.Helper()
	if i.switches.observe {
		i.AwaitEvent(t, "reloaded", "WouldReload", "configmap/app")
		return
	}
	if i.switches.images {
		i.awaitPinned(t, i.pushed)
	}
	if !i.switches.reload {
		return
	}
	shows := settings.Inputs
	if i.switches.env {
		shows = settings.InputsVariable
	}
	for _, kind := range i.switches.kinds() {
		if kind == "CronJob" {
			continue
		}
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			text := i.template(t, kind, "reloaded")
			return strings.Contains(text, shows), kind + " has " + text
		})
	}
}

// useStrategies has one pod evicted and one refreshed.
func (i *installed) useStrategies(t *testing.T) {
	t.Helper()
	for name, mount := range map[string]string{
		"evict":   "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: evict}}]}]",
		"refresh": "containers: [{name: app, image: app, volumeMounts: [{name: c, mountPath: /c}]}], volumes: [{name: c, configMap: {name: refresh}}]",
	} {
		i.Create(t, testkit.ConfigMap(name, "key", "1"))
		i.Make(t, workload("Deployment", name, "lockstep.dev/reload: auto, lockstep.dev/strategy: "+name, mount, 1))
		i.awaitRecord(t, "Deployment", name)
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			ready := i.Deployment(t, name).Status.ReadyReplicas
			return ready == 1, fmt.Sprintf("%d pods of %s are ready", ready, name)
		})
	}
	before := i.pod(t, "evict")
	i.SetConfig(t, "evict", "key", "2")
	i.SetConfig(t, "refresh", "key", "2")
	i.AwaitEvent(t, "refresh", "Normal Refreshed")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		pod := i.pod(t, "evict")
		return pod != before, fmt.Sprintf("Lockstep hasn't evicted pod %s; the events are %q", pod, i.Events(t, "evict"))
	})
}

// pod identifies the pods of an application.
func (i *installed) pod(t *testing.T, app string) string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := i.Client.List(t.Context(), pods, client.InNamespace(i.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range pods.Items {
		all = append(all, string(p.UID))
	}
	return strings.Join(sorted(all), " ")
}

// attach makes a ConfigMap and a Secret that a Deployment's pods load, and waits until they
// belong to its revision.
func (i *installed) attach(t *testing.T) {
	t.Helper()
	objects := []client.Object{testkit.ConfigMap("web-3fa9c1d2e4", "key", "1")}
	from := "{configMapRef: {name: web-3fa9c1d2e4}}"
	if len(i.switches.secrets) > 0 {
		objects = append(objects, testkit.Secret("web-3fa9c1d2e4", "key", "1"))
		from += ", {secretRef: {name: web-3fa9c1d2e4}}"
	}
	for _, o := range objects {
		o.SetLabels(map[string]string{settings.Revisioned: "true"})
		i.Create(t, o)
	}
	i.Make(t, workload("Deployment", "revisioned", "", "containers: [{name: app, image: app, envFrom: ["+from+"]}]", 0))
	if i.switches.observe {
		i.AwaitEvent(t, "web-3fa9c1d2e4", "WouldAttach")
		return
	}
	for _, o := range objects {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			i.Get(t, o.GetName(), o)
			return len(o.GetOwnerReferences()) == 1, fmt.Sprintf("%T has the owners %v", o, o.GetOwnerReferences())
		})
	}
}

func auditPolicy(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	policy := `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
		"rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}]}`
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// requests lists what an account has asked for. None of it may have been denied.
func requests(t *testing.T, audit, account string) []permission {
	t.Helper()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	var all []permission
	for line := range bytes.Lines(text) {
		var e struct {
			Verb           string
			User           struct{ Username string }
			ObjectRef      struct{ Namespace, Name, Resource, Subresource, APIGroup string }
			ResponseStatus struct{ Code int }
		}
		if json.Unmarshal(line, &e) != nil || e.User.Username != account || e.ObjectRef.Resource == "" {
			continue
		}
		r := permission{e.ObjectRef.Namespace, e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Name}
		if e.ObjectRef.Subresource != "" {
			r.resource += "/" + e.ObjectRef.Subresource
		}
		if e.ResponseStatus.Code == 403 {
			t.Fatalf("denied: %s", r)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		t.Errorf("the log has no request of %s", account)
	}
	return all
}
