package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestDoctorMissesNoPermission: what "lockstep doctor" takes for the permissions that the controller's
// flags need, the chart grants, whatever is switched on.
func TestDoctorMissesNoPermission(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t, labtest.ArgoRollouts)
	all := switches{reload: true, revisions: true, images: true, pods: true, secrets: []string{}}
	observed := all
	observed.observe = true
	for n, s := range []switches{
		{},
		{reload: true},
		{images: true},
		{images: true, listed: true},
		{revisions: true, secrets: []string{}},
		{reload: true, pods: true},
		all, observed,
	} {
		for _, scope := range []string{"all", "named", "selected"} {
			t.Run(fmt.Sprint(n, scope), func(t *testing.T) {
				t.Parallel()
				s, w := s, testkit.NewWorldOn(t, cluster)
				switch scope {
				case "named":
					s.namespaces = []string{w.Namespace}
				case "selected":
					s.selector = "team=shop"
				}
				if s.secrets != nil {
					s.secrets = []string{w.Namespace}
				}
				for _, o := range render(t, helmtest.New(t, ""), w.Own, w.Own, s.values()+"replicas: 0\n") {
					w.Create(t, o)
				}
				wantPermissions(t, w, s.String())
			})
		}
	}
}

// check is one of those that the doctor answers with.
type check struct {
	Check, Result, Found string
	Details              []string
}

// wantPermissions asks the doctor until the authorizer has seen the roles.
func wantPermissions(t *testing.T, w *testkit.World, about string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		doctor := labtest.StartCommand(t, labtest.Command{
			Path: labtest.Binary(t, "./cmd/lockstep"),
			Args: []string{"doctor", "--kubeconfig", w.Cluster.Kubeconfig(), "--controller-namespace", w.Own, "-n", w.Namespace, "-o", "json"},
		})
		doctor.ExitCode(t, testkit.Patience)
		var answer struct{ Checks []check }
		if err := json.Unmarshal([]byte(doctor.Stdout()), &answer); err != nil {
			t.Fatalf("%v: %s%s", err, doctor.Stdout(), doctor.Stderr())
		}
		at := slices.IndexFunc(answer.Checks, func(c check) bool { return c.Check == "permissions" })
		if at < 0 {
			t.Fatalf("no check of permissions: %s", doctor.Stdout())
		}
		return answer.Checks[at].Result == "ok", fmt.Sprintf("with %s: %+v", about, answer.Checks[at])
	})
}
