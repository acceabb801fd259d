package monitoring_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRevisionsOnly: an installation that only attaches revisioned objects, and may not list
// ConfigMaps, attaches nothing. An alert says so.
func TestRevisionsOnly(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "prometheus") // before anything is started
	w, metrics := testkit.NewWorld(t), freeAddress(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	account.AllowEverywhere(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"apps", "batch"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
	)
	testkit.AwaitListing(t, account, true, &appsv1.ReplicaSetList{})
	w.StartControllerAs(t, account.Kubeconfig, "--reload=false", "--revisions-secret-namespaces=elsewhere", "--metrics-addr", metrics)
	p := startPrometheus(t, w.Own, []string{metrics})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var active []string
		for _, r := range p.rules(t) {
			if r.State != "inactive" {
				active = append(active, r.Name)
			}
		}
		found, err := p.query(t, `ALERTS{alertname="LockstepResourceNotFollowed"}`)
		if err != nil {
			t.Fatal(err)
		}
		ok := len(active) == 1 && len(found) == 1 && found[0].Metric["resource"] == "revisioned configmaps in "+w.Namespace
		return ok, "alerts that begin: " + strings.Join(active, ", ") + fmt.Sprint(found)
	})
}
