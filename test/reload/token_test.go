package reload_test

import (
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRotatedToken: the token in the controller's file is replaced, and the API server rejects the
// one before. The controller writes, lists and watches with the new one, without a restart.
func TestRotatedToken(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	account.RotateToken(t)
	s.AwaitRecordPermission(t, account, true)
	line, kubeconfig := testkit.NewLine(t, account.Kubeconfig, s.Cluster.Server())
	c := inprocess.StartControllerAs(t, s.World, kubeconfig, "--quiet", testkit.Quiet)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.witness.AwaitKnown(t)

	account.RotateToken(t)
	s.change(t, "configmap/app", "{data: {key: two}}") // an open watch outlives its token
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	line.Cut()
	line.Mend()
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, web, 2)
	s.checkRollouts(t, "once for each change", 2, web)
	s.AwaitEvent(t, "web", "Normal Reloaded", "configmap/app")
	c.AwaitReady(t, true)
}
