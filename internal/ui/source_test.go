package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

func sourceViewOf(e ask.SourceExplanation) *sourceView {
	s := shell{program: "lockstep", installed: ask.Own{Namespace: "tools", Key: "k"}}
	return &sourceView{
		SourceExplanation: e, Now: noon(), Shell: s,
		Actions: actionsView{All: possible(sourceActions(e.Namespace, e.Source), ask.HoldIn(e.Settings) != nil, ask.HoldIn(e.Settings) != nil), Shell: s, Address: sourceAddress(e.Namespace, e.Source)},
	}
}

// TestSourcePage: who uses a source, with which version, who waits and why.
func TestSourcePage(t *testing.T) {
	t.Parallel()
	e := ask.SourceExplanation{
		Namespace: "shop", Source: "configmap/app", Controller: ask.Controller{State: ask.Running}, ChangedBy: "kubectl-edit", ChangedAt: ago(time.Minute),
		Owners: []string{"deployment/web"},
		Flow: ask.Flow{
			StoppedVersions: []ask.VersionStop{{Input: "configmap/app", Version: "bbb222", FailedOn: []string{"deployment/canary"}, Waiting: 2}},
			Stops:           []ask.Stop{{Namespace: "shop", Reason: "incident 42"}},
		},
		Settings: []ask.Setting{{Key: settings.Hold, Value: "migration", On: "configmap"}},
		Users: []ask.SourceUser{
			{Workload: "deployment/web", State: ask.Report{Reason: "Held", Message: "held by a user", Ends: "a release", From: ask.FromRecord}, Delivered: "aaa111", Current: "bbb222"},
			{Workload: "cronjob/night", State: ask.Report{Reason: "InStep", From: ask.FromRecord}, Delivered: "bbb222", Current: "bbb222"},
		},
		Events: []ask.Event{{At: noon(), Reason: "VersionStopped", Note: "it failed"}},
		Notes:  []string{"events are not visible to you"},
	}
	page := sourcePage(sourceViewOf(e))
	shows(t, page, "<h1>configmap/app", "60s ago by kubectl-edit", "<dd>deployment/web</dd>", "configmap/app bbb222 failed on deployment/canary", "incident 42",
		`<td data-label="Value">migration</td>`,
		`<a href="/workload/shop/deployment/web">deployment/web</a>`, `<span class="badge held">held</span></td><td data-label="Delivered"><code class="digest">aaa111</code>`, "held by a user",
		`<span class="badge in-step">in step</span></td><td data-label="Delivered"><code class="digest">bbb222</code>`,
		"it failed", "events are not visible to you",
		"lockstep explain configmap/app -n shop --controller-namespace tools", "lockstep resume -n shop --controller-namespace tools", "lockstep resume configmap/app -n shop --controller-namespace tools",
		"lockstep hold configmap/app REASON -n shop --overwrite", "lockstep release configmap/app -n shop --reason REASON", `action="/source/shop/configmap/app"`)
	lacks(t, page, "lockstep roll")
	e.Controller.State = ask.Down
	lacks(t, sourcePage(sourceViewOf(e)), "badge in-step")
	e.Hidden = "secrets is forbidden"
	shows(t, sourcePage(sourceViewOf(e)), `<td data-label="Current"><code class="digest">bbb222</code> (on record; not visible to you)</td>`)
	e.Settings = nil
	lacks(t, sourcePage(sourceViewOf(e)), "No annotation")
}

// TestSourceUsersAreBounded: a source of thousands of workloads has a page of bounded size.
func TestSourceUsersAreBounded(t *testing.T) {
	t.Parallel()
	e := ask.SourceExplanation{Namespace: "shop", Source: "secret/db"}
	shows(t, sourcePage(sourceViewOf(e)), "the record doesn&#39;t list a workload that follows it")
	e.RecordHidden = true
	shows(t, sourcePage(sourceViewOf(e)), "the list of workloads that follow it is not visible to you")
	for i := range 2000 {
		e.Users = append(e.Users, ask.SourceUser{Workload: fmt.Sprintf("deployment/w%d", i)})
	}
	page := sourcePage(sourceViewOf(e))
	shows(t, page, "deployment/w499<", "1500 further workloads aren&#39;t shown")
	if n := strings.Count(string(page), "<tr>"); n != mostUsers+1 {
		t.Errorf("%d rows, want %d and the head", n, mostUsers)
	}
}
