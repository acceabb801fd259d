package e2e_test

import (
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestReloadIsSwitchedOff: without --reload no ConfigMap and no Secret is read and no key is
// made, so that the rights to them are not needed. What is on record of them stays: switched
// on again, the controller delivers what changed meanwhile, once.
func TestReloadIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	first := w.StartReady(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	first.Stop(t)
	known := w.Record(t, testkit.Web)

	account := labtest.NewAccount(t, w.Cluster, w.Own)
	rules := testkit.FollowRules()
	rules[0].Resources = []string{"namespaces"}
	account.AllowEverywhere(t, rules...)
	account.Allow(t, slices.Concat([]labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "get"}},
	}, testkit.RecordRules())...)
	w.AwaitRecordRight(t, account, true)
	w.SetConfig(t, "app", "key", "2")
	off := w.StartControllerAs(t, account.Kubeconfig, "--reload=false", "--images", "--revisions=false", "--image-platforms=linux/amd64")
	off.AwaitReady(t, true)
	w.AwaitEvent(t, testkit.Web, "Warning ReloadOff", settings.Reload, "--reload")
	off.Stop(t)
	if got := w.Record(t, testkit.Web); got != known {
		t.Errorf("on record is\n%s\nwant it as it was:\n%s", got, known)
	}

	w.StartReady(t)
	w.AwaitRollout(t, testkit.Web, "")
	if got := w.Revisions(t, testkit.Web); got != 2 {
		t.Errorf("%d revisions after one change, want 2", got)
	}
}

// TestEverythingIsSwitchedOff: the controller is ready, and does nothing.
func TestEverythingIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own) // it has no right at all
	c := w.StartControllerAs(t, account.Kubeconfig, "--reload=false", "--revisions=false")
	c.AwaitReady(t, true)
	c.AwaitVerbose(t, "[+] rights")
	if got := w.Record(t, testkit.Web); got != "" {
		t.Errorf("on record is %s", got)
	}
}
