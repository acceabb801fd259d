package cli_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// everyone runs a command that isn't about one namespace.
func (s shop) everyone(t *testing.T, args ...string) said {
	t.Helper()
	return saying(t, "lockstep", append(args, "--controller-namespace", s.Own, "--kubeconfig", s.Cluster.Kubeconfig()))
}

// stops is the content of lockstep-stop, nil when it doesn't exist.
func (s shop) stops(t *testing.T) map[string]string {
	t.Helper()
	found := &corev1.ConfigMap{}
	err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Own, Name: settings.StopName}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if found.Data == nil {
		return map[string]string{}
	}
	return found.Data
}

// TestStopAndResume: stops of everything and of namespaces are set and ended independently, and no
// command ends or widens a stop that it isn't about.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ns, stop := s.Namespace, []string{"stop", "--timeout", "0"}
	key := settings.StopKey(ns)
	steps := []struct {
		reason string
		args   []string
		before map[string]string // what kubectl writes
		code   int
		says   []string
		left   map[string]string
	}{
		{"everything", append(stop, "--all", " incident 42 "), nil, 0, []string{`every automatic change is stopped: incident 42; end it with "lockstep resume --all --controller-namespace `}, map[string]string{"all": "incident 42"}},
		{"again", append(stop, "--all", "incident 42"), nil, 0, []string{"stopped already for this reason"}, map[string]string{"all": "incident 42"}},
		{"another reason", append(stop, "--all", "incident 43"), nil, 0, []string{`incident 43 (before: "incident 42")`}, map[string]string{"all": "incident 43"}},
		{"one namespace too", append(stop, "-n", ns, "freeze"), nil, 0, []string{"in namespace " + ns + " is stopped: freeze"}, map[string]string{"all": "incident 43", key: "freeze"}},
		{"the wider stop stays", []string{"resume", "-n", ns}, nil, 1, []string{`removed the stop "freeze"`, "every automatic change stays stopped", "lockstep resume --all"}, map[string]string{"all": "incident 43"}},
		{"not stopped by itself", []string{"resume", "-n", ns}, nil, 1, []string{"was not stopped for the controller in namespace", "every automatic change stays stopped"}, map[string]string{"all": "incident 43"}},
		{"the last one", []string{"resume", "--all"}, nil, 0, []string{`every automatic change is resumed: removed the stop "incident 43"`}, nil},
		{"nothing is stopped", []string{"resume", "--all"}, nil, 0, []string{"every automatic change was not stopped"}, nil},
		{"a namespace that doesn't exist is probably misspelt", append(stop, "-n", ns+"x", "freeze"), nil, 0, []string{"Warning: namespace/" + ns + "x not found"}, map[string]string{key + "x": "freeze"}},
		{"kubectl's keys end too", []string{"resume", "--all"}, map[string]string{"why": "incident", key: "freeze"}, 0, []string{`removed the stop "incident"`, "namespace " + ns + ` stays stopped: "freeze"`}, map[string]string{key: "freeze"}},
		{"the last namespace", []string{"resume", "-n", ns}, nil, 0, []string{`removed the stop "freeze"`}, nil},
		{"an empty one stops everything, and goes on doing so", append(stop, "-n", ns, "freeze"), map[string]string{}, 0, []string{"is stopped: freeze"}, map[string]string{"all": "", key: "freeze"}},
		{"it isn't ended by a namespace", []string{"resume", "-n", ns}, map[string]string{}, 1, []string{"lockstep resume --all"}, map[string]string{}},
		{"an empty one ends", []string{"resume", "--all"}, nil, 0, []string{"is resumed"}, nil},
		{"without a reason", append(stop, "--all"), nil, 2, []string{"add a reason"}, nil},
		{"which ones?", append(stop, "incident 42"), nil, 2, []string{"use --all for the whole installation, or --namespace NAME"}, nil},
		{"both?", append(stop, "--all", "-n", ns, "incident 42"), nil, 2, []string{"exclude each other"}, nil},
		{"no namespace has this name", append(stop, "-n", "Shop", "incident 42"), nil, 2, []string{"invalid name"}, nil},
		{"which ones end?", []string{"resume"}, nil, 2, []string{"use --all"}, nil},
		{"a version and everything?", []string{"resume", "--all", "cm/app"}, nil, 2, []string{"omit it"}, nil},
		{"a namespace has no versions", []string{"resume", "ns/" + ns}, nil, 2, []string{"lockstep resume -n " + ns}, nil},
	}
	for _, step := range steps {
		if step.before != nil {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Own, Name: settings.StopName}, Data: step.before}
			if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), o.DeepCopy())); err != nil {
				t.Fatal(err)
			}
			if err := s.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		got := s.everyone(t, step.args...)
		for _, want := range step.says {
			if !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: said %q, want %q", step.reason, got.stdout+got.stderr, want)
			}
		}
		if left := s.stops(t); got.code != step.code || !maps.Equal(left, step.left) || (left == nil) != (step.left == nil) {
			t.Fatalf("%s: exit code %d, want %d; the stops are %v, want %v; said %+v", step.reason, got.code, step.code, left, step.left, got)
		}
	}
}

// TestStopIsConfirmed: the command waits for the controller's event about this version of the
// ConfigMap, and says when there is none. The stop stays.
func TestStopIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if got := s.everyone(t, "stop", "--all", "one", "--timeout", "300ms"); got.code != 1 || !strings.Contains(got.stderr, "no controller has confirmed it") || s.stops(t)["all"] != "one" {
		t.Errorf("without a controller: %+v", got)
	}
	done := make(chan said)
	go func() { done <- s.everyone(t, "stop", "--all", "two", "--timeout", testkit.Patience.String()) }()
	event := func(version string) {
		stop := &corev1.ConfigMap{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Own, Name: settings.StopName}, stop); err != nil {
			t.Fatal(err)
		}
		if version == "" {
			version = stop.ResourceVersion
		}
		if err := s.Client.Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: s.Own, GenerateName: "stop-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.Own, Name: stop.Name, UID: stop.UID, ResourceVersion: version},
			Reason:         "Stopped", Action: "stop", Message: "every automatic change is stopped", ReportingController: "lockstep", ReportingInstance: "lockstep-0",
			EventTime: metav1.NewMicroTime(time.Now()), Type: "Normal",
		}); err != nil {
			t.Fatal(err)
		}
	}
	event("1") // of an earlier version
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { return s.stops(t)["all"] == "two", "the second stop isn't written" })
	select {
	case got := <-done:
		t.Fatalf("an old event confirms it: %+v", got)
	default:
	}
	event("")
	if got := <-done; got.code != 0 || !strings.Contains(got.stdout, "confirmed by the controller after ") {
		t.Errorf("with a confirmation: %+v", got)
	}
}

// TestStopWithoutPermission: who may not write the ConfigMap reads which permission is missing.
func TestStopWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	account := labtest.NewAccount(t, s.Cluster, s.Namespace)
	for _, args := range [][]string{{"stop", "--all", "x"}, {"resume", "--all"}} {
		got := saying(t, "lockstep", append(args, "--controller-namespace", s.Own, "--kubeconfig", account.Kubeconfig))
		if want := "permission is missing to get configmap lockstep-stop in namespace " + s.Own; got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
	got := saying(t, "lockstep", []string{"stop", "--all", "x", "--controller-namespace", "nowhere", "--kubeconfig", s.Cluster.Kubeconfig()})
	if got.code != 1 || !strings.Contains(got.stderr, "--controller-namespace") {
		t.Errorf("in a namespace that doesn't exist: %+v", got)
	}
}

// TestResumeVersion: the annotation names the version that the record lists as stopped.
func TestResumeVersion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	run := func(args ...string) said {
		return saying(t, "lockstep", append(args, "--controller-namespace", s.Own, "--kubeconfig", s.Cluster.Kubeconfig()))
	}
	if got := run("resume", "cm/app", "-n", s.Namespace); got.code != 0 || got.stdout != "configmap/app in namespace "+s.Namespace+": no version is stopped\n" {
		t.Errorf("nothing is stopped: %+v", got)
	}
	shared := "ca-" + s.Namespace // Other tests' namespaces must not have a copy.
	s.Create(t, testkit.Secret(shared, "key", "1"))
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Own, Name: "lockstep-state-07", Labels: map[string]string{settings.StateLabel: "true"}},
		Data: map[string]string{
			"failed.ConfigMap_" + s.Namespace + "_app_77ab01c9de": "77ab01c9de failed:Deployment.apps/" + s.Namespace + "/web,Deployment.apps/" + s.Namespace + "/api of configmap/app",
			"failed.ConfigMap_elsewhere_app_0000000000":           "0000000000 failed:Deployment.apps/elsewhere/web of configmap/app",
			"failed.Secret__" + shared + "_1111111111":            "1111111111 failed:Deployment.apps/elsewhere/web of secret/" + shared,
			"series.ConfigMap_" + s.Namespace + "_calm":           "2222222222 level:6 of configmap/calm",
		},
	}
	if err := s.Client.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if got := run("resume", "cm/app", "-n", s.Namespace); got.code != 0 || !strings.Contains(got.stdout, "version 77ab01c9de (failed on deployment/api, deployment/web) is resumed") {
		t.Errorf("a stopped ConfigMap: %+v", got)
	}
	if got := s.annotations(t, &corev1.ConfigMap{}, "app")[settings.Resume]; got != "77ab01c9de" {
		t.Errorf("the annotation is %q", got)
	}
	if got := run("resume", "secret/"+shared, "-A"); got.code != 0 || s.annotations(t, &corev1.Secret{}, shared)[settings.Resume] != "1111111111" {
		t.Errorf("a shared Secret in all namespaces: %+v", got)
	}
	if got := run("resume", "cm/missing", "-n", s.Namespace); got.code != 1 || !strings.Contains(got.stderr, "configmap/missing in namespace "+s.Namespace+" not found") {
		t.Errorf("an object that doesn't exist: %+v", got)
	}
	account := labtest.NewAccount(t, s.Cluster, s.Namespace)
	account.Allow(t, labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "patch"}})
	current := fingerprint.Hasher{}.Content(map[string]string{"key": "1"}, nil).Version(fingerprint.AllKeys()).Short()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // The authorizer applies role changes with a small delay.
		got := saying(t, "lockstep", []string{"resume", "cm/app", "-n", s.Namespace, "--controller-namespace", s.Own, "--kubeconfig", account.Kubeconfig})
		return got.code == 0 && s.annotations(t, &corev1.ConfigMap{}, "app")[settings.Resume] == current,
			fmt.Sprintf("without the record, the present version is resumed: %+v, want %s", got, current)
	})
	got := saying(t, "lockstep", []string{"resume", "secret/db", "-n", s.Namespace, "--controller-namespace", s.Own, "--kubeconfig", account.Kubeconfig})
	if got.code != 1 || !strings.Contains(got.stderr, "kubectl annotate secret/db") {
		t.Errorf("without the record, the version of a Secret isn't known: %+v", got)
	}
}

// TestHoldOfNamespace: a namespace is held and released by its name, whichever namespace the flags
// name.
func TestHoldOfNamespace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if got := s.run(t, "hold", "ns/"+s.Namespace, "freeze"); got.code != 0 || got.stdout != "namespace/"+s.Namespace+" held: freeze; end it with \"lockstep release namespace/"+s.Namespace+" --kubeconfig "+s.Cluster.Kubeconfig()+"\"\n" {
		t.Errorf("hold: %+v", got)
	}
	held := &corev1.Namespace{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: s.Namespace}, held); err != nil || held.Annotations[settings.Hold] != "freeze" {
		t.Errorf("the annotations are %v, %v", held.Annotations, err)
	}
	if got := s.run(t, "release", "namespace/"+s.Namespace); got.code != 0 || !strings.Contains(got.stdout, `removed the hold "freeze"`) || strings.Contains(got.stdout, "asked") {
		t.Errorf("release: %+v", got)
	}
	if got := s.run(t, "hold", "ns/"+s.Namespace+"x", "freeze"); got.code != 1 || !strings.HasPrefix(got.stderr, "Error: namespace/"+s.Namespace+"x not found") || strings.Contains(got.stderr, "in namespace") {
		t.Errorf("one that doesn't exist: %+v", got)
	}
	if got := s.run(t, "hold", "ns/", "freeze"); got.code != 2 {
		t.Errorf("one without a name: %+v", got)
	}
}
