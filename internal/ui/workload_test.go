package ui

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) *time.Time {
	t := noon().Add(-d)
	return &t
}

// waitingWeb is a Deployment that waits for its turn with one of two inputs.
func waitingWeb() ask.Explanation {
	return ask.Explanation{
		Namespace: "shop", Workload: "deployment/web", Controller: ask.Controller{State: ask.Running},
		State: ask.Report{
			Reason: "AwaitsTurn", Message: "number 2 in line", Since: ago(5 * time.Minute), PendingSince: ago(6 * time.Minute),
			Ends: "its turn", From: ask.FromRecord,
		},
		Meaning:  "It waits for `others`.",
		Flow:     ask.Flow{Spread: []ask.Spreading{{Input: "configmap/app", Users: 5, Healthy: 1, Rolling: 1, Waiting: 3, InLine: 3, Place: 2}}},
		Window:   &ask.Window{Text: "Mon-Fri 09:00-17:00", On: "on its namespace"},
		Settings: []ask.Setting{{Key: settings.Reload, Value: "auto", On: "workload"}, {Key: settings.ImagePrefix + "web", Value: "registry.example/web:1.x", On: "workload"}},
		Inputs: []ask.Use{
			{
				InputStatus: ask.InputStatus{Input: "configmap/app", Delivered: "aaa111", Current: "bbb222"}, Followed: true,
				Places: []string{"envFrom of web"}, WrittenBy: "kubectl-edit", WrittenAt: ago(6 * time.Minute),
			},
			{InputStatus: ask.InputStatus{Input: "image/web", Delivered: "ccc333", Current: "ccc333", Image: "registry.example/web:1.x"}, Followed: true, Note: "Quarantined"},
		},
		Events: []ask.Event{{At: *ago(time.Minute), Reason: "AwaitsTurn", Note: "it waits", By: "lockstep"}},
		Notes:  []string{"the namespace is not visible to you"},
	}
}

func viewOf(e ask.Explanation) *workloadView {
	s := shell{program: "lockstep --context lab"}
	return &workloadView{
		Explanation: e, Kind: kube.Deployment(), Now: noon(), Shell: s,
		Actions: actionsView{All: possible(workloadActions(kube.Deployment(), e.Namespace, e.Workload, s), e.OwnHold, e.IsReleasable()), Shell: s, Address: workloadAddress(e.Namespace, e.Workload)},
	}
}

// shows checks that a page has all of the wanted parts.
func shows(t *testing.T, page node, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the page is:\n%s", strings.ReplaceAll(string(page), "><", ">\n<"))
	}
}

func lacks(t *testing.T, page node, unwanted ...string) {
	t.Helper()
	for _, not := range unwanted {
		if strings.Contains(string(page), not) {
			t.Errorf("the page has %q:\n%s", not, strings.ReplaceAll(string(page), "><", ">\n<"))
		}
	}
}

// TestWorkloadPage: everything that explain says is on the page, with links to what it names.
func TestWorkloadPage(t *testing.T) {
	t.Parallel()
	page := workloadPage(viewOf(waitingWeb()))
	shows(t, page,
		`<h1>deployment/web<span class="place"> in namespace shop</span></h1>`,
		`<span class="badge waiting">waiting</span>`,
		`#awaitsturn" rel="noreferrer">AwaitsTurn</a> for 5m: number 2 in line`,
		"It waits for others.", "the oldest pending change was seen ", "6m ago", "the workload waits for its turn",
		"configmap/app: 1 of 5 healthy with it, 1 rolling, 3 waiting; this one is number 2 of 3 in line",
		"open: Mon-Fri 09:00-17:00, on its namespace",
		`<li class="input behind" id="input-configmap/app"><h3><a href="/source/shop/configmap/app">configmap/app</a>`,
		`<code class="digest">aaa111</code>`, `<code class="digest">bbb222</code>`, "6m ago by kubectl-edit", "envFrom of web",
		`<li class="input in-step" id="input-image/web"><h3><a href="/image/shop?ref=registry.example%2Fweb%3A1.x&amp;annotation=image.lockstep.dev%2Fweb">image/web</a>`,
		`<code class="digest">ccc333</code> Quarantined`,
		"the namespace is not visible to you", "the workload</td>",
		`<a href="/image/shop?ref=registry.example%2Fweb%3A1.x&amp;annotation=image.lockstep.dev%2Fweb">registry.example/web:1.x</a>`,
		`<div class="command"><code>lockstep explain deployment/web -n shop --context lab</code>`,
		`<div class="command"><code>lockstep history deployment/web -n shop -o wide --context lab</code>`,
		`<div class="command"><code>lockstep hold deployment/web REASON -n shop --context lab</code>`,
		`<div class="command"><code>lockstep roll deployment/web -n shop --reason REASON --context lab</code>`,
		`<div class="command"><code>kubectl rollout undo deployment/web -n shop --context lab</code>`,
		`<form class="action" id="action-hold" method="get" action="/workload/shop/deployment/web">`,
	)
	lacks(t, page, "<dialog", "badge held", `<p><span class="badge in-step`, "lockstep release")
}

// TestNoGreenWhileTheControllerIsDown: what it decided before is an estimate.
func TestNoGreenWhileTheControllerIsDown(t *testing.T) {
	t.Parallel()
	e := waitingWeb()
	e.State = ask.Report{Reason: "InStep", From: ask.FromRecord}
	shows(t, workloadPage(viewOf(e)), `<span class="badge in-step">in step</span>`)
	e.Controller.State = ask.Down
	page := workloadPage(viewOf(e))
	shows(t, page, `<span class="badge">in step, an estimate</span>`)
	lacks(t, page, "badge in-step")
	e.Controller.State, e.State.From = ask.Running, ask.FromEstimate
	lacks(t, workloadPage(viewOf(e)), "badge in-step")
	e.State.From, e.Inputs[1].Hidden = ask.FromRecord, "get it is forbidden"
	shows(t, workloadPage(viewOf(e)), "get it is forbidden", `<li class="input " id="input-image/web">`)
	e.Inputs[1].Hidden, e.Inputs[1].Delivered = "", ""
	shows(t, workloadPage(viewOf(e)), "no version is on record")
	e.Estimate = &ask.Report{Reason: "QuietWindow", Message: "soon", Ends: "quiet", From: ask.FromEstimate}
	page = workloadPage(viewOf(e))
	shows(t, page, "waiting, an estimate", "soon; the controller hasn&#39;t decided yet", "the workload waits for quiet")
	lacks(t, page, "badge in-step")
}

// TestHeldWithoutAChange: a hold shows although the workload is in step.
func TestHeldWithoutAChange(t *testing.T) {
	t.Parallel()
	e := waitingWeb()
	e.State = ask.Report{Reason: "InStep", From: ask.FromRecord}
	e.Settings, e.OwnHold = []ask.Setting{{Key: settings.Hold, Value: "release freeze", On: "workload"}}, true
	page := workloadPage(viewOf(e))
	shows(t, page, `<p><span class="badge held">held</span> <span class="badge in-step">in step</span></p>`, "release freeze</td>",
		"lockstep hold deployment/web REASON -n shop --overwrite --context lab", "lockstep release deployment/web -n shop --reason REASON --context lab")
	e.Settings[0].On, e.OwnHold = "namespace", false
	page = workloadPage(viewOf(e))
	shows(t, page, `<span class="badge held">held</span>`, "lockstep release namespace/shop --context lab")
	lacks(t, page, "--overwrite", "lockstep release deployment/web")
	e.Settings, e.OwnHold, e.Inputs[0].Held = nil, true, true // an undo removed the annotation
	page = workloadPage(viewOf(e))
	shows(t, page, `<span class="badge held">held</span>`, "lockstep release deployment/web", "lockstep release configmap/app -n shop --context lab")
}

// TestTimeline: each revision says what it was given, by whom, and how many pods run it.
func TestTimeline(t *testing.T) {
	t.Parallel()
	v, pods := viewOf(waitingWeb()), 3
	v.History = &ask.History{Notes: []string{"events cannot be read"}}
	v.History.Revisions = append(v.History.Revisions, ask.Revision{
		Number: 99, Name: "web-1", Started: ago(time.Hour), Current: true, Pods: &pods, By: "Lockstep", Outcome: "healthy",
		Inputs: map[string]string{"configmap/app": "aaa111"}, Images: map[string]string{"web": "registry.example/web:1.2"},
		Changed: []ask.Change{{What: "configmap/app", From: "000000", To: "aaa111"}},
	})
	again := v.History.Revisions[0]
	again.Again, again.Current = true, false
	v.History.Revisions = append(v.History.Revisions, again)
	for i := range 23 {
		v.History.Revisions = append(v.History.Revisions, ask.Revision{Number: int64(50 - i), By: "not known"})
	}
	page := workloadPage(v)
	shows(t, page, `<li class="revision current" id="revision-99-web-1">`, "3 pods run it", "60m ago", "configmap/app 000000 -&gt; aaa111", "<dd>Lockstep</dd>", "<dd>healthy</dd>",
		"image of web", "registry.example/web:1.2", "5 older revisions aren&#39;t shown", "events cannot be read")
	if n := strings.Count(string(page), `id="revision-99-web-1"`); n != 1 {
		t.Errorf("%d elements have the same id", n)
	}
	if n := strings.Count(string(page), `<li class="revision`); n != mostRevisions {
		t.Errorf("%d revisions are shown, want %d", n, mostRevisions)
	}
}

// TestEventsAreBounded: the newest are shown, and the rest is counted.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	v := viewOf(waitingWeb())
	v.Events = nil
	for i := range 60 {
		v.Events = append(v.Events, ask.Event{At: noon(), Reason: "Reloaded", Note: fmt.Sprintf("number %d.", i)})
	}
	page := workloadPage(v)
	shows(t, page, "number 59.", "number 10.", "Older events aren&#39;t shown.")
	lacks(t, page, "number 9.")
	if strings.Index(string(page), "number 59.") > strings.Index(string(page), "number 10.") {
		t.Error("the newest event isn't the first")
	}
}

// TestHostileTexts: what others wrote shows as text, and is cut.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	hostile := `"><script>alert(1)</script>` + "\u202e\x00" + strings.Repeat("x", 200_000)
	e := waitingWeb()
	e.Workload, e.Namespace, e.State.Message, e.Meaning = "deployment/"+hostile, hostile, hostile, hostile
	e.State.Reason = hostile
	e.Settings = []ask.Setting{{Key: settings.Hold, Value: hostile, On: "workload"}, {Key: settings.ImagePrefix + "web", Value: hostile, On: "workload"}}
	e.Inputs[0].Input, e.Inputs[0].Current, e.Inputs[0].Note, e.Inputs[0].Places, e.Inputs[0].WrittenBy = "configmap/"+hostile, hostile, hostile, []string{hostile}, hostile
	e.Events[0].Note, e.Events[0].Reason, e.Notes = hostile, hostile, []string{hostile}
	e.Stops, e.Window.Text = []ask.Stop{{Namespace: hostile, Reason: hostile}}, hostile
	v := viewOf(e)
	v.History = &ask.History{Revisions: []ask.Revision{{By: hostile, Inputs: map[string]string{hostile: hostile}, Images: map[string]string{hostile: hostile}, Changed: []ask.Change{{What: hostile}}}}}
	v.Actions.Answer = &answer{asked: asked{Verb: verbHold, Reason: hostile}, Problem: hostile, Command: hostile}
	v.Actions.All[1].Missing = []access.Permission{{Verb: hostile, Resource: schema.GroupResource{Resource: hostile}}}
	page := workloadPage(v)
	lacks(t, page[:min(len(page), 200_000)], "<script", "\x00", "\u202e")
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// TestQuoting: a command does in a shell what it says.
func TestQuoting(t *testing.T) {
	t.Parallel()
	s := shell{program: "kubectl lockstep --context 'my lab' --kubeconfig /a/b"}
	for _, c := range []struct {
		reason string
		got    string
		want   string
	}{
		{"plain words", s.lockstep("hold", "deployment/web", "freeze", "-n", "shop"), "kubectl lockstep hold deployment/web freeze -n shop --context 'my lab' --kubeconfig /a/b"},
		{"quotes, dollar and backslash", s.lockstep("hold", "deployment/web", `it's "$HOME" \ !`), `kubectl lockstep hold deployment/web 'it'\''s "$HOME" \ !' --context 'my lab' --kubeconfig /a/b`},
		{"nothing", s.lockstep("hold", ""), "kubectl lockstep hold '' --context 'my lab' --kubeconfig /a/b"},
		{"a tilde would be a directory", quote("~1.2"), "'~1.2'"},
		{"flags end where arguments begin", s.lockstep((&action{Verb: verbHold, Target: "deployment/web", Namespace: "shop"}).arguments("-n x")...), "kubectl lockstep hold -n shop --context 'my lab' --kubeconfig /a/b -- deployment/web '-n x'"},
		{"kubectl has the same cluster", s.kubectl("rollout", "undo"), "kubectl rollout undo --context 'my lab' --kubeconfig /a/b"},
		{"a custom kind is described", strings.Join(kindFlag(customKind(t)), " "), "--kind apps.kruise.io/v1beta1/StatefulSet=spec.template"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.reason, c.got, c.want)
		}
	}
}

func customKind(t *testing.T) kube.Kind {
	t.Helper()
	kind, err := kube.ParseKind("apps.kruise.io/v1beta1/StatefulSet=spec.template")
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// TestConfirmation: a chosen action shows the command that runs, once its reason is good.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	v := viewOf(waitingWeb())
	v.Actions.Asked = askedIn(url.Values{"do": {"roll"}, "reason": {" it's $5 \x1b"}})
	page := workloadPage(v)
	shows(t, page, `<dialog class="confirm" id="confirm" open`, `lockstep roll deployment/web -n shop --reason &#39;it&#39;\&#39;&#39;s $5 `, "Its pods restart",
		`<form method="post" action="/do"><input type="hidden" name="verb" value="roll"><input type="hidden" name="target" value="deployment/web"><input type="hidden" name="namespace" value="shop">`,
		`<input id="reason-roll" name="reason" value="it&#39;s $5 `)
	for _, bad := range []string{"", "  ", strings.Repeat("x", longestReason+1)} {
		v.Actions.Asked = askedIn(url.Values{"do": {"hold"}, "reason": {bad}})
		page = workloadPage(v)
		shows(t, page, `role="alert"`)
		lacks(t, page, "<dialog")
	}
	v.Actions.Asked = askedIn(url.Values{"do": {"delete"}, "reason": {"x"}})
	lacks(t, workloadPage(v), "<dialog", "delete")
	v.Actions.Asked, v.Actions.ReadOnly = askedIn(url.Values{"do": {"hold"}, "reason": {"x"}}), true
	page = workloadPage(v)
	lacks(t, page, "<dialog", "<form", "submit")
	shows(t, page, "lockstep hold deployment/web REASON -n shop")
}

// TestForbidden: what the user may not do is a command with the missing permission.
func TestForbidden(t *testing.T) {
	t.Parallel()
	v := viewOf(waitingWeb())
	v.Actions.All[0].Missing = []access.Permission{{Verb: "patch", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: "shop", Name: "web"}}
	v.Actions.Asked = askedIn(url.Values{"do": {"hold"}, "reason": {"x"}})
	v.Actions.All[1].Unchecked = "no answer"
	page := workloadPage(v)
	shows(t, page, "You lack permission to patch deployments.apps/web in shop", "can&#39;t be checked: no answer", `id="action-roll"`)
	lacks(t, page, `id="action-hold"`, "<dialog")
}

// TestAnswers: success and failure look different, and a reason that may be needed again stays.
func TestAnswers(t *testing.T) {
	t.Parallel()
	v := viewOf(waitingWeb())
	v.Actions.Answer = &answer{asked: asked{verbRoll, "why not"}, Target: "deployment/web", Command: "lockstep roll", Output: "deployment/web in namespace shop rolled out: configmap/app~1\n"}
	page := workloadPage(v)
	shows(t, page, `<section class="answer done"`, "rolled out: configmap/app~1", `<div class="command"><code>lockstep roll</code>`)
	lacks(t, page, "why not")
	v.Actions.Answer.Problem = "it is held"
	page = workloadPage(v)
	shows(t, page, `<section class="answer failed"`, "<p>it is held</p>", "lockstep roll", `value="why not"`)
	lacks(t, page, "answer done")
}
