package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func key(s *stage, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Namespace, Name: name}
}

// act fills in a form, and confirms the command that the page shows.
func (c *screen) act(t testing.TB, verb, reason, command string) {
	t.Helper()
	c.Click("#reason-" + verb)
	c.Press(reason + kb.Enter)
	c.Await("#confirm")
	if asks := browser.Eval[string](c.Tab, `document.getElementById("confirm").innerText`); !strings.Contains(asks, command) || !strings.Contains(asks, reason) {
		t.Errorf("the confirmation doesn't show %s and the reason %q: %s", command, reason, asks)
	}
	c.Click("#confirm button[type=submit]")
	c.Await("#answer.done")
}

// TestActions: hold, release and roll change the cluster after a confirmation, and the page shows it.
func TestActions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	s.run(t)
	s.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	v := s.open(t)
	v.workload(s, web)

	v.Click("#reason-hold")
	v.Press("not yet" + kb.Enter)
	v.Await("#confirm")
	if _, held := s.heldFor(t); held {
		t.Error("it was held before the confirmation")
	}
	v.Press(kb.Escape) // no
	v.workload(s, web)

	v.act(t, "hold", "wait for the migration", "hold "+web)
	if reason, _ := s.heldFor(t); reason != "wait for the migration" {
		t.Fatalf("after the confirmation it is held for %q", reason)
	}
	v.AwaitText("wait for the migration")
	s.SetConfig(t, "app", "key", "2")
	v.AwaitText(string(input.Held))

	v.act(t, "release", "the migration is done", "release "+web)
	if reason, held := s.heldFor(t); held {
		t.Fatalf("after the release it is held for %q", reason)
	}
	shown := s.AwaitRollout(t, testkit.Web, "")
	v.AwaitText("Revision 2")
	s.awaitNote(t, "the migration is done")

	digest, _, _ := strings.Cut(strings.TrimPrefix(shown, "configmap/app~"), ",")
	s.AwaitRecord(t, testkit.Web, digest)
	if code := s.controller.Stop(t); code != 0 {
		t.Fatalf("the controller ended with %d", code)
	}
	s.SetConfig(t, "app", "key", "3") // nobody delivers it
	v.workload(s, web)
	v.act(t, "roll", "it is urgent", "roll "+web)
	s.AwaitRollout(t, testkit.Web, shown)
	v.AwaitText("Revision 3")
	s.awaitNote(t, "it is urgent")
}

// awaitNote waits for an event with the reason that a user gave.
func (s *stage) awaitNote(t testing.TB, reason string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &eventsv1.EventList{}
		if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace)); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == testkit.Web && e.Note == reason }), "no event says " + reason
	})
}

// TestSourceActions: a ConfigMap is held and released on its own page.
func TestSourceActions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	v := s.open(t)
	page := "/source/" + s.Namespace + "/configmap/app"
	holds := func() string {
		t.Helper()
		o := testkit.Blank(t, "configmap/app")
		s.Get(t, "app", o)
		return o.GetAnnotations()[settings.Hold]
	}
	v.visit(page)
	v.act(t, "hold", "wait for the database", "hold configmap/app")
	if got := holds(); got != "wait for the database" {
		t.Errorf("it is held for %q", got)
	}
	v.AwaitText("wait for the database")
	v.act(t, "release", "the database is there", "release configmap/app")
	if got := holds(); got != "" {
		t.Errorf("it is still held for %q", got)
	}
}

// readers is what a user may read who sees everything but Secrets.
func readers() []labtest.Rule {
	read := []string{"get", "list", "watch"}
	return []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"configmaps", "events", "namespaces"}, Verbs: read},
		{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"}, Verbs: read},
		{Groups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: read},
		{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: read},
		{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: read},
	}
}

// heldApp is a stage with a workload whose change is held.
func heldApp(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.CreateApp(t)
	s.Annotate(t, testkit.Web, settings.Hold, "release freeze")
	s.run(t)
	s.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	s.SetConfig(t, "app", "key", "2")
	s.AwaitRecord(t, testkit.Web, string(input.Held))
	s.AwaitEvent(t, testkit.Web, string(input.Held))
	return s
}

// TestForbidden: an action that the user may not do is a command with the missing permission; a form
// that is sent nevertheless does nothing, and says why.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s := heldApp(t)
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t, readers()...)
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{})
	v := s.openAs(t, account.Kubeconfig)
	v.row(web, string(input.Held), "release freeze")
	v.workload(s, web)
	v.AwaitText("patch deployments.apps/web in "+s.Namespace, "hold "+web, "release "+web, "roll "+web, "not visible to you")
	if forms := browser.Eval[int](v.Tab, `document.querySelectorAll("main form").length`); forms != 0 {
		t.Errorf("the page has %d forms for what is forbidden", forms)
	}

	form := url.Values{"verb": {"hold"}, "target": {web}, "namespace": {s.Namespace}, "reason": {"forced"}, "overwrite": {"true"}}
	status, body := newVisitor(t, v.site).post(t, "/do", form)
	if status != http.StatusOK || !strings.Contains(body, "cannot patch resource") {
		t.Errorf("a form without the permission is answered by %d: %s", status, body)
	}
	if reason, _ := s.heldFor(t); reason != "release freeze" {
		t.Errorf("it is held for %q", reason)
	}
}

// post sends a form as our own page would, and follows the answer.
func (v *visitor) post(t testing.TB, page string, form url.Values) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.site.at(page), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", v.site.at(""))
	response, body := v.send(t, request)
	return response.status, body
}

// TestReadOnly: with --read-only nothing can be done, and everything is still a command.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := heldApp(t)
	v := s.open(t, "--read-only")
	for _, page := range []string{"/workload/" + s.Namespace + "/" + web, "/source/" + s.Namespace + "/configmap/app", "/workload/" + s.Namespace + "/" + web + "?do=release&reason=please"} {
		v.visit(page)
		v.AwaitText("hold ")
		if forms := browser.Eval[int](v.Tab, `document.querySelectorAll("main form, dialog").length`); forms != 0 {
			t.Errorf("%s has %d forms", page, forms)
		}
	}
	form := url.Values{"verb": {"release"}, "target": {web}, "namespace": {s.Namespace}, "reason": {"forced"}}
	if status, body := newVisitor(t, v.site).post(t, "/do", form); status != http.StatusForbidden {
		t.Errorf("a form is answered by %d: %s", status, body)
	}
	if reason, held := s.heldFor(t); !held {
		t.Errorf("it was released: %q", reason)
	}
}

// TestWithoutTheRecord: a user of one namespace sees states from events, and what is missing.
func TestWithoutTheRecord(t *testing.T) {
	t.Parallel()
	s := heldApp(t)
	account := labtest.NewAccount(t, s.Cluster, s.Namespace)
	account.Allow(t, readers()...)
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
	v := s.openAs(t, account.Kubeconfig)
	v.row(web, string(input.Held), "release freeze")
	v.AwaitText("not visible to you", "event")
	v.workload(s, web)
	v.AwaitText(string(input.Held), "not visible to you", "event")
}

// TestNoPermission: a user who may read nothing is told which permissions are missing, and of a smaller scope.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	site := s.serve(t, account.Kubeconfig, "-A")
	v := &screen{Tab: browser.Open(t), site: site}
	v.Go(site.entrance.String())
	v.AwaitText("-n NAMESPACE")
	for _, kind := range []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch"} {
		v.Until(`[...document.querySelectorAll("main .note")].filter(e => e.innerText.startsWith(%s) && !e.innerText.includes("\n")).length === 1`, kind+" is forbidden: ")
	}
	v.workload(s, web)
	v.AwaitText("deployments", fmt.Sprintf("%q", testkit.Web))
}
