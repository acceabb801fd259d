package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestMissingRightForSecrets: the rest works, the gap is shown, and a grant is
// picked up without a restart.
func TestMissingRightForSecrets(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t, testkit.FollowRules()...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	w.AwaitRecordRight(t, account, true)

	c := w.StartControllerAs(t, account.Kubeconfig)
	c.AwaitReady(t, true)
	_, text := c.Probe(t, "/readyz?verbose")
	for _, want := range []string{
		"[-] secrets in " + w.Namespace + ": permission is missing",
		`cannot list resource "secrets"`,
		"[+] configmaps in " + w.Namespace,
		"[+] deployments in " + w.Namespace,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/readyz?verbose does not say %q:\n%s", want, text)
		}
	}
	w.AwaitRecord(t, testkit.Web, "configmap/app")
	w.SetConfig(t, "app", "key", "2")
	shown := w.AwaitRollout(t, testkit.Web, "")
	if strings.Contains(shown, "secret/") {
		t.Errorf("the template shows %q of a Secret that cannot be read", shown)
	}

	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	w.AwaitRecord(t, testkit.Web, "secret/db")
	w.SetSecret(t, "db", "key", "2")
	w.AwaitRollout(t, testkit.Web, shown)
	if got := w.Revisions(t, testkit.Web); got != 3 {
		t.Errorf("%d revisions after two changes, want 3: the grant itself restarts nobody", got)
	}
}
