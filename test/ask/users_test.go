package ask_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const web = "deployment/" + testkit.Web

// readers is what a person may read who sees everything but Secrets.
func readers() []labtest.Rule {
	read := []string{"get", "list", "watch"}
	return []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps", "events", "namespaces"}, Verbs: read},
		{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: read},
		{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: read},
		{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: read},
		{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: read},
	}
}

// held is a stage with a Deployment whose change is held, and a controller that leads.
func held(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.CreateApp(t)
	s.Annotate(t, testkit.Web, settings.Hold, "release freeze")
	s.run(t, "--leader-elect=true", "--lease-duration", "1m")
	s.awaitOnRecord(t, web, "configmap/app", "secret/db")
	s.touch(t, "app")
	s.awaitOnRecord(t, web, string(input.Held))
	s.AwaitEvent(t, testkit.Web, string(input.Held))
	return s
}

// as is the stage as another person sees it.
func (s *stage) as(account *labtest.Account) *stage {
	other := *s
	other.kubeconfig = account.Kubeconfig
	return &other
}

// TestUsers: what a person may not read is named, and the rest is answered.
func TestUsers(t *testing.T) {
	t.Parallel()
	s := held(t)
	all := s.explain(t, web)
	if all.Controller.State != "running" || all.Controller.Note != "" || all.Controller.Version != labtest.Version || all.State.Reason != string(input.Held) {
		t.Errorf("the one who may read all sees %+v", all)
	}

	for _, source := range []string{"configmap/app", "secret/db"} {
		if users, stderr, code := s.ask(t, "explain", source, "-o", "name"); code != 0 || users != web+"\n" {
			t.Errorf("explain %s ended with %d and lists %q, want %s: %s", source, code, users, web, stderr)
		}
	}

	t.Run("NoSecrets", func(t *testing.T) {
		t.Parallel()
		account := labtest.NewAccount(t, s.Cluster, s.Own)
		account.AllowEverywhere(t, readers()...)
		testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{})
		reader := s.as(account)
		e := reader.explain(t, web)
		got, want := e.input("secret/db"), all.input("secret/db")
		if got.Hidden == "" || got.Delivered != want.Delivered || got.Current != want.Delivered || want.Hidden != "" {
			t.Errorf("the Secret is %+v, want it hidden, with the digest on record of %+v", got, want)
		}
		if e.State.Reason != string(input.Held) || e.State.Message != all.State.Message || e.Estimate != nil {
			t.Errorf("the state is %+v, estimate %+v, want what the controller said: %+v", e.State, e.Estimate, all.State)
		}
		text, _, code := reader.ask(t, "explain", web)
		if code != 0 || !strings.Contains(text, want.Delivered+" (on record; not visible to you)") {
			t.Errorf("exit code %d and\n%s", code, text)
		}
		text, _, code = reader.ask(t, "explain", "secret/db")
		if code != 0 || !strings.Contains(text, want.Delivered+" (on record; not visible to you)") {
			t.Errorf("of the Secret, exit code %d and\n%s", code, text)
		}
		if row := reader.status(t, web); row.Message != all.State.Message {
			t.Errorf("status says %+v", row)
		}
	})

	t.Run("OneNamespace", func(t *testing.T) {
		t.Parallel()
		account := labtest.NewAccount(t, s.Cluster, s.Namespace)
		account.Allow(t, readers()...)
		testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
		reader := s.as(account)
		e := reader.explain(t, web)
		if e.State.Reason != string(input.Held) || e.State.From != "event" || !strings.Contains(e.State.Message, all.State.Message) || len(e.Notes) == 0 || !strings.Contains(e.Notes[0], "not visible to you") {
			t.Errorf("without the record the state is %+v with the notes %q", e.State, e.Notes)
		}
		if row := reader.status(t, web); row.Reason != e.State.Reason || row.Message != e.State.Message || row.From != "event" {
			t.Errorf("status says %+v, and explain %+v", row, e.State)
		}
		_, stderr, code := reader.ask(t, "status", "-A")
		if code != 1 || !strings.Contains(stderr, `cannot list resource "deployments"`) || !strings.Contains(stderr, "cluster scope") {
			t.Errorf("status -A ended with %d: %s", code, stderr)
		}
	})

	t.Run("NoRights", func(t *testing.T) {
		t.Parallel()
		reader := s.as(labtest.NewAccount(t, s.Cluster, s.Own))
		for command, missing := range map[string]string{"explain " + web: `cannot get resource "deployments"`, "status": `cannot list resource "deployments"`} {
			stdout, stderr, code := reader.ask(t, strings.Fields(command)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, missing) {
				t.Errorf("%s ended with %d: %s%s", command, code, stdout, stderr)
			}
		}
	})
}

// TestControllerIsDown: since when, and what changed meanwhile as an estimate; then a
// controller of another version.
func TestControllerIsDown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	s.run(t, "--leader-elect=true", "--lease-duration", "1m")
	s.awaitOnRecord(t, web, "configmap/app", "secret/db")
	began := s.explain(t, web)
	if code := s.controller.Stop(t); code != 0 {
		t.Fatalf("the controller ended with %d", code)
	}
	s.touch(t, "app")
	e := s.explain(t, web)
	if e.Controller.State != "down" || e.Controller.Since == nil || e.Controller.Since.Before(*began.State.Since) {
		t.Errorf("the controller is %+v, want it down since after %v", e.Controller, began.State.Since)
	}
	got := e.input("configmap/app")
	if e.State.Reason != string(input.InStep) || e.Estimate == nil || e.Estimate.From != "estimate" || !strings.Contains(e.Estimate.Message, "configmap/app "+got.Delivered+" -> "+got.Current) {
		t.Errorf("the state is %+v with the estimate %+v", e.State, e.Estimate)
	}
	text, _, code := s.ask(t, "explain", web)
	if code != 0 || !strings.Contains(text, "the controller hasn't decided yet") || !strings.Contains(text, "down for") {
		t.Errorf("exit code %d and\n%s", code, text)
	}
	text, _, code = s.ask(t, "explain", "configmap/app")
	if row := strings.Join(strings.Fields(text[strings.LastIndex(text, web):]), " "); code != 0 || !strings.HasPrefix(row, web+" Changed (an estimate) - "+got.Delivered+" "+got.Current) {
		t.Errorf("of the ConfigMap, exit code %d and\n%s", code, text)
	}
	if _, stderr, _ := s.ask(t, "status"); !strings.Contains(stderr, "controller: down for") {
		t.Errorf("status says %s", stderr)
	}

	for _, shard := range s.shards(t) {
		shard.Annotations[settings.Version] = "9.9.9"
		if err := s.Client.Update(t.Context(), &shard); err != nil {
			t.Fatal(err)
		}
	}
	if e = s.explain(t, web); e.Controller.Version != "9.9.9" || !strings.Contains(e.Controller.Note, "the controller is version 9.9.9, and this program is "+labtest.Version) {
		t.Errorf("of another version it says %+v", e.Controller)
	}
}

// TestNoControllerEver: an estimate is marked as one, and the namespace is named in which no
// controller was found.
func TestNoControllerEver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	s.awaitObserved(t, web)
	e := s.explain(t, web)
	if e.State.Reason != "NotOnRecord" || e.Estimate == nil || e.Estimate.Reason != "Baseline" {
		t.Errorf("before the first look it says %+v and estimates %+v", e.State, e.Estimate)
	}
	if e.State.From != "estimate" || !strings.Contains(e.Controller.Note, "no controller has run in namespace "+s.Own) {
		t.Errorf("it says %+v and %+v", e.State, e.Controller)
	}
	if hidden := e.input("secret/db").Hidden; !strings.Contains(hidden, "installation key") {
		t.Errorf("a Secret has no digest without the installation key, and it says %q", hidden)
	}
	if row := s.status(t, web); row.Reason != "NotOnRecord" || row.From != "estimate" {
		t.Errorf("status says %+v", row)
	}
}

// TestUnknownWorkload ends with 1.
func TestUnknownWorkload(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	if stdout, stderr, code := s.ask(t, "explain", "deployment/wbe"); code != 1 || stdout != "" || !strings.Contains(stderr, "deployment/wbe in namespace "+s.Namespace+" not found; did you mean deployment/web?") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// TestStatusOrder: what is not in step comes first, and a selector leaves others out.
func TestStatusOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.make(t, configMap("a")+deployment("a", auto, reads("a"))+configMap("z")+deployment("z", auto+", "+settings.Hold+": ''", reads("z"))+deployment("stranger", "", reads("a")))
	s.change(t, "deployment/z", "{metadata: {labels: {team: last}}}")
	s.run(t)
	s.awaitOnRecord(t, "deployment/a")
	s.awaitOnRecord(t, "deployment/z")
	s.touch(t, "z")
	s.awaitOnRecord(t, "deployment/z", string(input.Held))
	names := func(args ...string) []string {
		var all []string
		for _, row := range answer[status](t, s, append([]string{"status"}, args...)...).Workloads {
			all = append(all, row.Workload)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"deployment/z", "deployment/a"}) {
		t.Errorf("the order is %q", got)
	}
	if got := names("-l", "team=last"); !slices.Equal(got, []string{"deployment/z"}) {
		t.Errorf("with a selector it lists %q", got)
	}
	stdout, _, code := s.ask(t, "status", "-A", "-o", "wide")
	if code != 0 || !strings.Contains(stdout, "NAMESPACE") || !strings.Contains(stdout, s.Namespace) {
		t.Errorf("exit code %d and\n%s", code, stdout)
	}
}
