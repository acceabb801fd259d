package ask_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRoleOfTheExample: with the role of examples/ask.yaml, and "view" in the namespace of the
// workloads, nothing is missing but what is in Secrets.
func TestRoleOfTheExample(t *testing.T) {
	t.Parallel()
	s := held(t)
	account := labtest.NewAccount(t, s.Cluster, s.Namespace)
	user := fmt.Sprintf("{kind: ServiceAccount, name: %s, namespace: %s}", account.Name, account.Namespace)
	s.make(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: view},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [`+user+`]}`)
	own := *s.World
	own.Namespace = s.Own
	own.Make(t, exampleRole(t, s.Own, user))
	// Argo Rollouts adds its kinds to "view" when it is installed as its own manifests do it.
	account.Allow(t, labtest.Rule{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: []string{"list"}})
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Own))

	reader := s.as(account)
	e := reader.explain(t, web)
	if e.State.Reason != string(input.Held) || e.State.From != "record" || e.Controller.State != "running" || e.Controller.Note != "" || len(e.Notes) != 0 {
		t.Errorf("the state is %+v of a controller %+v, with the notes %q", e.State, e.Controller, e.Notes)
	}
	if _, stderr, code := reader.ask(t, "status"); code != 0 || stderr != "" {
		t.Errorf("status ended with %d: %s", code, stderr)
	}
	if code := s.controller.Stop(t); code != 0 { // its arguments are not those of the Deployment
		t.Fatalf("the controller ended with %d", code)
	}
	s.MakeDeployed(t, "lockstep", "--namespaces="+s.Own)
	if row := reader.status(t, web); row.Reason != "NotWatched" {
		t.Errorf("status says %+v, and the Deployment has a namespace that it watches", row)
	}
}

// exampleRole is examples/ask.yaml, for another namespace and for somebody.
func exampleRole(t *testing.T, namespace, subject string) string {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "ask.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role, binding, found := strings.Cut(string(text), "subjects:\n")
	if !found {
		t.Fatalf("the example binds its role to nobody: %s", binding)
	}
	return strings.ReplaceAll(role, "lockstep-system", namespace) + "subjects: [" + subject + "]"
}
