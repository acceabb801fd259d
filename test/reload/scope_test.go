package reload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// beside is a second stage with the same controller's namespace.
func (s *stage) beside(t testing.TB, manifest string) *stage {
	t.Helper()
	other := newStage(t, manifest)
	other.Own = s.Own
	return other
}

// describe changes labels or annotations of the stage's namespace.
func (s *stage) describe(t testing.TB, patch string) {
	t.Helper()
	ns := &corev1.Namespace{}
	ns.Name = s.Namespace
	if err := s.Client.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// TestNamespaces: one or several, also one that is named twice, and nothing of the
// others.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	second, outside := s.beside(t, simple()), s.beside(t, simple())
	s.run(t, "--namespaces", second.Namespace+","+s.Namespace)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	second.awaitKnown(t, deploy, "web", "configmap/app")
	for _, each := range []*stage{outside, second, s} {
		each.change(t, "configmap/app", "{data: {key: two}}")
	}
	s.awaitRollouts(t, web, 1)
	second.awaitRollouts(t, web, 1)
	second.checkRollouts(t, "a namespace that is watched", 1, web)
	if got := outside.rollouts(t, web); got != 0 || outside.remembered(t, deploy, "web") != "" {
		t.Errorf("a namespace that is not watched: %d rollouts, record %q", got, outside.remembered(t, deploy, "web"))
	}
}

// TestNamespaceSelector: each chosen namespace is watched by itself, so that an
// account which may read only those is enough; labels are followed as they come
// and go.
func TestNamespaceSelector(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	other := s.beside(t, simple())
	team := strings.ToLower(s.Own)
	s.describe(t, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
	// The account may list namespaces, and read what is in the two chosen ones.
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules(), testkit.FollowRules(), testkit.SecretRules())...)
	for _, each := range []*stage{s, other} {
		each.bind(t, account)
	}
	s.AwaitRecordPermission(t, account, true)
	testkit.AwaitListing(t, account, true, &corev1.NamespaceList{})
	c := s.runSelected(t, account.Kubeconfig, "team="+team)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	if text := other.remembered(t, deploy, "web"); text != "" {
		t.Errorf("a namespace without the label is followed: %s", text)
	}

	other.describe(t, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
	other.awaitKnown(t, deploy, "web", "configmap/app")
	other.change(t, "configmap/app", "{data: {key: two}}")
	other.awaitRollouts(t, web, 1)
	other.awaitKnown(t, deploy, "web", versionOf("two"))

	other.describe(t, `{"metadata":{"labels":{"team":null}}}`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, text := c.Probe(t, "/readyz?verbose")
		return !strings.Contains(text, " in "+other.Namespace), "the namespace is still watched:\n" + text
	})
	other.change(t, "configmap/app", "{data: {key: three}}")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 2)
	if got := other.rollouts(t, web); got != 1 {
		t.Errorf("%d rollouts without the label, want the one from before", got)
	}
	other.describe(t, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
	other.awaitRollouts(t, web, 2)
	other.checkRollouts(t, "the label is back: what was missed is delivered", 2, web)
	if log := c.Stderr(); strings.Contains(log, "forbidden") {
		t.Errorf("more was asked for than the chosen namespaces:\n%s", log)
	}
}

// TestRevisionsInSelectedNamespaces: revisioned objects are attached where the labels
// choose, and nothing of the other namespaces is read. Labels are followed as they come
// and go.
func TestRevisionsInSelectedNamespaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, revisioned("first"))
	other := s.beside(t, revisioned("first"))
	team := strings.ToLower(s.Own)
	s.describe(t, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules(), testkit.FollowRules(), testkit.SecretRules())...)
	attach := `
- {apiGroups: [""], resources: [configmaps, secrets], verbs: [patch]}
- {apiGroups: [apps], resources: [replicasets, controllerrevisions], verbs: [watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [list, watch]}`
	for _, each := range []*stage{s, other} {
		each.bind(t, account, attach)
	}
	s.AwaitRecordPermission(t, account, true)
	testkit.AwaitListing(t, account, true, &corev1.NamespaceList{})
	c := s.runSelected(t, account.Kubeconfig, "team="+team)
	s.awaitOwner(t, "first")
	if owners := other.owners(t, "first"); owners != "" {
		t.Errorf("attached to %s in a namespace without the label", owners)
	}

	other.describe(t, `{"metadata":{"labels":{"team":"`+team+`"}}}`)
	other.awaitOwner(t, "first")

	// What it asks for with the same change can no longer be read.
	other.describe(t, `{"metadata":{"labels":{"team":null},"annotations":{"`+settings.Observe+`":"true"}}}`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, text := c.Probe(t, "/readyz?verbose")
		return !strings.Contains(text, " in "+other.Namespace), "the namespace is still watched:\n" + text
	})
	other.make(t, revisioned("second"))
	s.make(t, revisioned("second"))
	s.awaitOwner(t, "second")
	if owners := other.owners(t, "second"); owners != "" {
		t.Errorf("attached to %s after the label was gone", owners)
	}
	other.describe(t, `{"metadata":{"labels":{"team":"`+team+`"},"annotations":{"`+settings.Observe+`":null}}}`)
	other.awaitOwner(t, "second")
	if log := c.Stderr(); strings.Contains(log, "forbidden") {
		t.Errorf("more was asked for than the chosen namespaces:\n%s", log)
	}
}

// revisioned is a revisioned ConfigMap and a Deployment of the same name that uses it.
func revisioned(name string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s: \"true\"}}, data: {key: one}}\n", name, settings.Revisioned) +
		deployment(name, "a: b", uses("configmap/"+name))
}

// owners are the owners of a ConfigMap: "ReplicaSet/first-6f4d".
func (s *stage) owners(t testing.TB, configMap string) string {
	t.Helper()
	var names []string
	for _, o := range s.read(t, "configmap/"+configMap).GetOwnerReferences() {
		names = append(names, o.Kind+"/"+o.Name)
	}
	return strings.Join(names, " ")
}

func (s *stage) awaitOwner(t testing.TB, configMap string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		owners := s.owners(t, configMap)
		return strings.HasPrefix(owners, "ReplicaSet/"+configMap+"-"), fmt.Sprintf("%s in %s is owned by %q", configMap, s.Namespace, owners)
	})
}

// bind lets an account follow workloads in this namespace.
func (s *stage) bind(t testing.TB, account *labtest.Account, more ...string) {
	t.Helper()
	s.make(t, fmt.Sprintf(`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: follow}
rules:
- {apiGroups: [""], resources: [configmaps, secrets], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments, statefulsets, daemonsets], verbs: [list, watch, patch]}
- {apiGroups: [apps], resources: [replicasets, controllerrevisions], verbs: [list]}
- {apiGroups: [batch], resources: [cronjobs], verbs: [list, watch]}
- {apiGroups: [argoproj.io], resources: [rollouts], verbs: [list, watch]}%s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: follow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: follow}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]
`, strings.Join(more, ""), account.Name, account.Namespace))
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
}

// runSelected runs the controller on the namespaces with the labels.
func (s *stage) runSelected(t testing.TB, kubeconfig, selector string) *testkit.Controller {
	t.Helper()
	c := inprocess.StartControllerAs(t, s.World, kubeconfig, "--namespace-selector", selector, "--quiet", testkit.Quiet)
	c.AwaitReady(t, true)
	s.witness.AwaitKnown(t)
	return c
}

// TestDefaultsAndRefusals: who decides about a workload, from the whole controller
// to a single source.
func TestDefaultsAndRefusals(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+configMap("refusing", "key: one")+configMap("asking", "key: one")+
		deployment("silent", "a: b", uses("configmap/app"))+
		deployment("refusing", settings.Reload+": never", uses("configmap/app"))+
		deployment("named", settings.Reload+": configmap/refusing", uses("configmap/refusing"))+
		deployment("refused", "a: b", uses("configmap/refusing"))+
		deployment("asked", "a: b", uses("configmap/asking")))
	s.annotate(t, "configmap/refusing", settings.Reload, "never")
	s.annotate(t, "configmap/asking", settings.Reload, "auto")
	c := s.run(t)
	turn := 0
	changeAll := func() {
		turn++
		for _, name := range []string{"app", "refusing", "asking"} {
			s.change(t, "configmap/"+name, fmt.Sprintf("{data: {key: turn-%d}}", turn))
		}
	}
	changeAll()
	s.awaitRollouts(t, "deployment/named", 1)
	s.awaitRollouts(t, "deployment/asked", 1)
	s.checkRollouts(t, "nobody asks for it", 0, "deployment/silent", "deployment/refusing", "deployment/refused")

	s.describe(t, `{"metadata":{"annotations":{"`+settings.Reload+`":"auto"}}}`)
	s.awaitKnown(t, deploy, "silent", "configmap/app")
	s.checkRollouts(t, "a new default restarts nobody", 0, "deployment/silent", "deployment/refusing", "deployment/refused")
	changeAll()
	s.awaitRollouts(t, "deployment/silent", 1)
	s.checkRollouts(t, "a refusal wins over the default", 0, "deployment/refusing", "deployment/refused")

	s.describe(t, `{"metadata":{"annotations":{"`+settings.Reload+`":null}}}`)
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.run(t, "--auto")
	s.awaitKnown(t, deploy, "silent", "configmap/app")
	changeAll()
	s.awaitRollouts(t, "deployment/silent", 2)
	s.checkRollouts(t, "and over the controller's", 0, "deployment/refusing", "deployment/refused")

	// Who refuses is forgotten, and who follows again takes a baseline.
	s.annotate(t, "deployment/silent", settings.Reload, "never")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.remembered(t, deploy, "silent")
		return entry == "", "deployment/silent opted out and is still on record: " + entry
	})
	changeAll()
	s.witness.Pass(t) // it is seen before anybody asks for it
	s.annotate(t, "deployment/silent", settings.Reload, "auto")
	s.checkRollouts(t, "followed again from now on", 2, "deployment/silent")
}

// TestSourceThatAsks: one that begins to ask for its users restarts none of them, and
// is followed from then on, also while it is gone.
func TestSourceThatAsks(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+deployment("web", "a: b", uses("configmap/app")))
	s.run(t)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.witness.Pass(t)
	s.annotate(t, "configmap/app", settings.Reload, "auto")
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "it asks after its change", 0, web)
	s.delete(t, "configmap/app")
	s.witness.Pass(t)
	s.make(t, strings.Replace(configMap("app", "key: three"), "{name: app}", "{name: app, annotations: {"+auto+"}}", 1))
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "it came back with other content", 1, web)
}

// TestObserve: decided and told, and nothing written to a workload; switching it
// off restarts nobody, whether there was a record before or not.
func TestObserve(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		flags   []string
		on, off func(*testing.T, *stage)
	}{
		"Controller": {flags: []string{"--observe"}},
		"Namespace": {
			on: func(t *testing.T, s *stage) {
				t.Helper()
				s.describe(t, `{"metadata":{"annotations":{"lockstep.dev/observe":"true"}}}`)
				s.awaitObserving(t, true)
			},
			off: func(t *testing.T, s *stage) {
				t.Helper()
				s.describe(t, `{"metadata":{"annotations":{"lockstep.dev/observe":null}}}`)
				s.awaitObserving(t, false)
			},
		},
		"Workload": {
			on: func(t *testing.T, s *stage) {
				t.Helper()
				s.annotate(t, web, settings.Observe, "true")
			},
			off: func(t *testing.T, s *stage) {
				t.Helper()
				s.annotate(t, web, settings.Observe)
				// The next pass needs what this one writes, and so has seen the annotation.
				s.witness.Pass(t)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, simple())
			s.observedPass(name != "Workload")
			c := s.run(t)
			s.awaitKnown(t, deploy, "web", "configmap/app")
			s.change(t, "configmap/app", "{data: {key: two}}")
			s.awaitRollouts(t, web, 1)
			s.awaitKnown(t, deploy, "web", versionOf("two"))
			if tc.on == nil {
				c.Stop(t)
				c = s.run(t, tc.flags...)
			} else {
				tc.on(t, s)
			}
			before := s.read(t, web).GetGeneration() // its status is written by others
			s.change(t, "configmap/app", "{data: {key: three}}")
			s.AwaitEvent(t, "web", "Normal WouldReload", "configmap/app", "observe mode")
			s.awaitKnown(t, deploy, "web", versionOf("three"))
			if after := s.read(t, web); after.GetGeneration() != before || s.rollouts(t, web) != 1 {
				t.Errorf("the Deployment was written to: %d rollouts, generation %d, was %d", s.rollouts(t, web), after.GetGeneration(), before)
			}
			if tc.off == nil {
				c.Stop(t)
				s.run(t)
			} else {
				tc.off(t, s)
			}
			s.pass = s.witness.Pass
			s.checkRollouts(t, "switched off", 1, web)
			s.change(t, "configmap/app", "{data: {key: four}}")
			s.awaitRollouts(t, web, 2)
		})
	}
}

// awaitObserving changes the witness until a change of it is only told of, or is
// delivered again: then the controller knows what the namespace asks for.
func (s *stage) awaitObserving(t testing.TB, want bool) {
	t.Helper()
	turn := 0
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		turn++
		value := fmt.Sprintf("observing-%t-%d", want, turn)
		before := s.shown(t, "deployment/witness")
		s.change(t, "configmap/witness", "{data: {key: "+value+"}}")
		s.awaitKnown(t, deploy, "witness", versionOf(value))
		observed := s.shown(t, "deployment/witness") == before
		return observed == want, fmt.Sprintf("the witness is observed: %t, want %t", observed, want)
	})
}

// observedPass is for a stage whose witness is observed too.
func (s *stage) observedPass(witness bool) {
	if witness {
		s.pass = func(testing.TB) {}
	}
}
