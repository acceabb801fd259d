// Package doctor_test makes the defects that "lockstep doctor" looks for on a real API server,
// beside the controller, and sees that it finds them.
package doctor_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func TestMain(m *testing.M) {
	inprocess.Main(m, 4)
}

// installation is an installation that a person would have: a Deployment with its service
// account and its permissions, and the controller that leads.
type installation struct {
	*testkit.World
	account    *labtest.Account
	controller *testkit.Controller
}

// check is one of the answer.
type check struct {
	Check, Result, Found, Do string
	Details                  []string
}

// text is all that a check says.
func (c check) text() string {
	return strings.Join(append([]string{c.Result, c.Found, c.Do}, c.Details...), "\n")
}

// leases let the controller elect a leader.
func leases() labtest.Rule {
	return labtest.Rule{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}}
}

// install runs the controller. Its Deployment is there too, with its arguments; the
// test stands in for the kubelet that no pod has here, and says where its probes are.
func install(t *testing.T) *installation {
	t.Helper()
	labtest.In(t, labtest.TierAll)
	w := testkit.NewWorldOn(t, labtest.Shared(t))
	i := &installation{World: w, account: labtest.NewAccount(t, w.Cluster, w.Own)}
	i.account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	i.account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules(), []labtest.Rule{leases()})...)
	w.AwaitRecordPermission(t, i.account, true)
	i.CreateApp(t)
	ip := address(t)
	i.controller = inprocess.StartControllerAs(t, w, i.account.Kubeconfig, "--revisions=false", "--leader-elect=true", "--lease-duration", "1m", "--probe-addr", net.JoinHostPort(ip, "0"))
	i.controller.AwaitReady(t, true)
	i.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	i.deploy(t, ip)
	return i
}

// address is one of this machine to which the API server connects for a pod: it refuses the
// loopback.
func address(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no address but the loopback")
	return ""
}

// deploy makes the Deployment, and its pod ready.
func (i *installation) deploy(t *testing.T, ip string) {
	t.Helper()
	i.own().Make(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: lockstep}
spec:
  replicas: 1
  selector: {matchLabels: {app: lockstep}}
  template:
    metadata: {labels: {app: lockstep}}
    spec:
      schedulerName: none # the test is this pod's kubelet: no other one is to have it
      serviceAccountName: %s
      containers:
      - {name: lockstep, image: registry.example/lockstep, command: [/lockstep], args: [controller, --revisions=false, --namespaces=%s, "--probe-addr=:%s"]}
`, i.account.Name, i.Namespace, i.controller.ProbePort(t)))
	var pods corev1.PodList
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		if err := i.Client.List(t.Context(), &pods, client.InNamespace(i.Own), client.MatchingLabels{"app": "lockstep"}); err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == 1, fmt.Sprintf("the Deployment controller has made %d pods, want 1", len(pods.Items))
	})
	pod := &pods.Items[0]
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := i.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatalf("say that the pod is ready: %v", err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		c := i.examine(t).checks["controller"]
		return c.Result == "ok", c.text()
	})
}

// own is the world in which the installation's namespace is that of an application.
func (i *installation) own() *testkit.World {
	w := *i.World
	w.Namespace = i.Own
	return &w
}

// answer is what a run of the command says.
type answer struct {
	checks map[string]check
	stdout string
	stderr string
	code   int
}

// examine runs "lockstep doctor" as the administrator.
func (i *installation) examine(t *testing.T, args ...string) answer {
	t.Helper()
	return i.examineAs(t, i.Cluster.Kubeconfig(), args...)
}

func (i *installation) examineAs(t *testing.T, kubeconfig string, args ...string) answer {
	t.Helper()
	all := slices.Concat([]string{"doctor", "--kubeconfig", kubeconfig, "--controller-namespace", i.Own, "-o", "json"}, args)
	a := answer{checks: map[string]check{}}
	a.stdout, a.stderr, a.code = inprocess.Run(t, all...)
	var got struct{ Checks []check }
	if a.stdout != "" {
		if err := json.Unmarshal([]byte(a.stdout), &got); err != nil {
			t.Fatalf("doctor wrote %s: %v", a.stdout, err)
		}
	}
	for _, c := range got.Checks {
		a.checks[c.Check] = c
	}
	return a
}

// expect compares the result of a check, unless it is empty, and what the check says.
func (a answer) expect(t *testing.T, name, result string, texts ...string) {
	t.Helper()
	c := a.checks[name]
	if result != "" && c.Result != result {
		t.Errorf("%s is %s, want %s:\n%s", name, c.Result, result, c.text())
	}
	for _, text := range texts {
		if !strings.Contains(c.text(), text) {
			t.Errorf("%s does not say %q:\n%s", name, text, c.text())
		}
	}
}
