package reload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestBadSettings: each is told on its workload with what would be accepted,
// counted once, and harms nobody else; a corrected one is followed again.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ key, value, says string }{
		"unknown":  {settings.Reload, "sometimes", "auto, search, never"},
		"half":     {settings.Reload, "auto, configmap", "auto, search, never"},
		"pattern":  {settings.Reload, "configmap/[", "auto, search, never"},
		"empty":    {settings.Reload, "", "auto, search, never"},
		"soon":     {settings.Quiet, "soon", "duration such as"},
		"negative": {settings.Quiet, "-5s", "duration such as"},
		"strategy": {settings.Strategy, "restart", "template, evict or refresh"},
		"observe":  {settings.Observe, "yes", "true or false"},
	}
	manifest := simple()
	for name, tc := range cases {
		annotations := auto + ", "
		if tc.key == settings.Reload {
			annotations = ""
		}
		manifest += deployment(name, annotations+fmt.Sprintf("%s: %q", tc.key, tc.value), uses("configmap/app"))
	}
	s := newStage(t, manifest)
	_, metric := s.runMeasured(t)
	for name, tc := range cases {
		s.AwaitEvent(t, name, "Warning InvalidAnnotation", tc.key, tc.says, "leaves the workload alone")
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	for name := range cases {
		s.change(t, "deployment/"+name, "{metadata: {labels: {touched: twice}}}")
		s.change(t, "deployment/"+name, "{spec: {minReadySeconds: 1}}")
	}
	s.witness.Pass(t)
	for name := range cases {
		if got := s.rollouts(t, "deployment/"+name); got != 0 {
			t.Errorf("%s: rolled out %d times in spite of its setting", name, got)
		}
	}
	series := fmt.Sprintf(`lockstep_invalid_settings_total{kind="Deployment",namespace=%q,reason="InvalidAnnotation"}`, s.Namespace)
	if got := metric(series); got != float64(len(cases)) {
		t.Errorf("%v invalid settings, want %d: each once", got, len(cases))
	}
	for name, tc := range cases {
		if tc.key == settings.Reload {
			s.annotate(t, "deployment/"+name, tc.key, "auto")
			continue
		}
		s.annotate(t, "deployment/"+name, tc.key)
	}
	s.change(t, "configmap/app", "{data: {key: three}}")
	for name := range cases {
		s.awaitRollouts(t, "deployment/"+name, 1)
	}
}

// TestNamesAndSettingsWithoutEffect: a name that does not exist, and settings of
// a source or a namespace that cannot be understood, are told and stop nobody.
func TestNamesAndSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+
		deployment("hopeful", settings.Reload+": \"auto, configmap/nobody, secret/nothing\"", uses("configmap/app")))
	s.annotate(t, "configmap/app", settings.Reload, "often")
	s.describe(t, `{"metadata":{"annotations":{"`+settings.Reload+`":"configmap/app"}}}`)
	s.make(t, deployment("silent", settings.Prefix+"relaod: auto", uses("configmap/app")))
	s.run(t)
	s.AwaitEvent(t, "hopeful", "Warning SourceUnknown", "configmap/nobody", "secret/nothing")
	s.AwaitEvent(t, "web", "Warning InvalidAnnotation", "configmap/app", `"often"`, "auto, match or never", "no effect")
	s.AwaitEvent(t, "silent", "Warning InvalidAnnotation", "lockstep.dev/relaod is unknown", "lockstep.dev/reload")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitRollouts(t, "deployment/hopeful", 1)
	s.checkRollouts(t, "the namespace says nothing that is understood", 0, "deployment/silent")
	s.make(t, configMap("nobody", "key: one"))
	s.awaitRollouts(t, "deployment/hopeful", 2)
}

// TestUnclearWishToObserve: a namespace that says so badly is observed, and told.
func TestUnclearWishToObserve(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.describe(t, `{"metadata":{"annotations":{"`+settings.Observe+`":"yes"}}}`)
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.AwaitEvent(t, "web", "Warning InvalidAnnotation", settings.Observe, `"yes"`, "true or false", "counts as true")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Normal WouldReload", "configmap/app")
	if got := s.rollouts(t, web); got != 0 {
		t.Errorf("%d rollouts, want none", got)
	}
}

// TestMissingPermissionForAKind: the others are followed, the gap is shown and counted,
// and a grant is picked up. What changed before it is nothing to a workload that was
// not followed then.
func TestMissingPermissionForAKind(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+deployment("web", auto, uses("configmap/app"))+workload("StatefulSet", "db", auto, uses("configmap/app")))
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	rules := slices.Concat(testkit.FollowRules(), testkit.SecretRules())
	var fewer []labtest.Rule
	for _, rule := range rules {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == "statefulsets" })
		fewer = append(fewer, rule)
	}
	// With nothing else written to it, its own resource version is older than the change.
	s.awaitObserved(t, "statefulset/db")
	account.AllowEverywhere(t, fewer...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	s.AwaitRecordPermission(t, account, true)
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
	address := freeAddress(t)
	c := inprocess.StartControllerAs(t, s.World, account.Kubeconfig, "--quiet", testkit.Quiet, "--metrics-addr", address)
	c.AwaitReady(t, true)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	c.AwaitVerbose(t, "[-] statefulsets in "+s.Namespace+": permission is missing")
	series := `lockstep_resource_followed{resource="statefulsets in ` + s.Namespace + `"}`
	if text := scrape(t, address); !strings.Contains(text, series+" 0\n") {
		t.Errorf("the metrics do not show %s 0", series)
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "its kind cannot be seen", 0, "statefulset/db")
	if n := strings.Count(c.Stderr(), "cannot follow"); n != 1 {
		t.Errorf("the log tells of the gap %d times, want once", n)
	}

	account.AllowEverywhere(t, rules...)
	s.awaitKnown(t, "StatefulSet.apps", "db", "configmap/app")
	s.checkRollouts(t, "beginning to follow restarts nobody", 0, "statefulset/db")
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, "statefulset/db", 1)
	s.awaitRollouts(t, web, 2)
	s.checkRollouts(t, "each change is one rollout", 1, "statefulset/db")
}
