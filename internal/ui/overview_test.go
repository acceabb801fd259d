package ui

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

func before(d time.Duration) *time.Time {
	t := clock().Add(-d)
	return &t
}

// shop is a status with a workload that waits and others that are in step.
func shop(inStep int) ask.Status {
	status := ask.Status{Controller: ask.Controller{State: ask.Running}, Workloads: []ask.Summary{{
		Namespace: "shop", Workload: "deployment/web",
		State: ask.Report{
			Reason: string(input.QuietWindow), Message: "configmap/web changed", Since: before(5 * time.Second), PendingSince: before(90 * time.Second),
			Ends: input.Ends(input.QuietWindow), From: ask.FromRecord,
		},
		Inputs: []ask.InputStatus{
			{Input: "configmap/common", Delivered: "aaaa000000", Current: "aaaa000000"},
			{Input: "configmap/web", Delivered: "3f2a000000", Current: "77ab000000"},
			{Input: "secret/db", Delivered: "bbbb000000", Current: "bbbb000000"},
		},
	}}}
	for i := range inStep {
		status.Workloads = append(status.Workloads, ask.Summary{
			Namespace: fmt.Sprintf("team-%02d", i%40), Workload: fmt.Sprintf("statefulset/app-%04d", i),
			State:  ask.Report{Reason: string(input.InStep), Since: before(3 * time.Hour), From: ask.FromRecord},
			Inputs: []ask.InputStatus{{Input: fmt.Sprintf("configmap/app-%04d", i), Delivered: fmt.Sprintf("%010x", i*7919), Current: fmt.Sprintf("%010x", i*7919)}},
		})
	}
	return status
}

func overviewOf(status ask.Status, query string) string {
	values, _ := url.ParseQuery(query)
	return string(overviewPage(newSnapshot(status, nil), filterOf(values), ask.Scope{}.NoWorkload(), clock()))
}

func mustShow(t *testing.T, html string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q: %.3000s", want, html)
		}
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	html := overviewOf(shop(3), "")
	mustShow(t, html,
		`href="/workload/shop/deployment/web">web</a><small>deployment</small>`,
		`>QuietWindow</a></span><small>configmap/web changed</small>`,
		`>5s</time>`, `>90s</time>`,
		`href="/source/shop/configmap/web">configmap/web</a> <code>3f2a000000 → 77ab000000</code>`,
		"and 1 more",
		"4 workloads",
		`<th scope="col">Oldest change</th>`,
	)
	if strings.Index(html, "configmap/web</a>") > strings.Index(html, "configmap/common</a>") {
		t.Error("an input that is in step comes before one that isn't")
	}
	if strings.Contains(html, `id="controller"`) {
		t.Error("a controller that runs isn't worth a note")
	}
	for _, g := range ask.Groups() {
		mustShow(t, html, "state="+strings.ReplaceAll(string(g), " ", "+"))
	}
}

// TestOverviewIsHonest: what isn't sure is said, and isn't green.
func TestOverviewIsHonest(t *testing.T) {
	t.Parallel()
	status := shop(1)
	status.Controller = ask.Controller{State: ask.Down, Since: before(time.Hour), Note: "the states are its last decisions"}
	status.Stops = []ask.Stop{{Namespace: "shop", Reason: "stocktaking"}}
	status.Notes = []string{"the record is not visible to you"}
	html := overviewOf(status, "")
	mustShow(t, html, "Controller: down for 60m", "stocktaking", "the record is not visible to you")
	if strings.Contains(html, "badge in-step") {
		t.Error("a workload is green while the controller is down")
	}
	for _, state := range []string{ask.Down, ask.Unknown} {
		status.Controller.State, status.Workloads[1].State.From = state, ask.FromEvent
		html = overviewOf(status, "")
		mustShow(t, html, `<rect class="unsure"`)
		for _, green := range []string{"badge in-step", `"dot in-step"`, `rect class="in-step"`} {
			if strings.Contains(html, green) {
				t.Errorf("%s is green while the controller is %s", green, state)
			}
		}
	}
	mustShow(t, overviewOf(shop(1), ""), "badge in-step", `"dot in-step"`, `rect class="in-step"`)
}

func TestOverviewWithoutWorkloads(t *testing.T) {
	t.Parallel()
	mustShow(t, overviewOf(ask.Status{}, ""), "Lockstep doesn&#39;t follow any workload, and no workload requests it", "0 workloads")
	mustShow(t, overviewOf(shop(2), "q=nothing-like-it"), "No workload matches", "0 of 3 workloads")
}

func TestFilter(t *testing.T) {
	t.Parallel()
	known := newSnapshot(shop(100), nil)
	waiting := string(ask.Report{Reason: string(input.QuietWindow), Ends: "x"}.Group())
	for query, want := range map[string]int{
		"":                                    101,
		"q=WEB":                               1,
		"q=+shop++web+":                       1,
		"q=shop+app-0001":                     0,
		"q=shop%2Fdeployment%2Fweb":           1,
		"q=quietwindow":                       1,
		"q=secret%2Fdb":                       1,
		"ns=team-01":                          3,
		"ns=team-0":                           0,
		"state=in+step":                       100,
		"state=" + waiting:                    1,
		"state=nonsense":                      0,
		"source=configmap%2Fapp-0042":         1,
		"source=CONFIGMAP":                    101,
		"source=secret":                       1,
		"ns=team-02&q=app-0042&state=in+step": 1,
		"q=" + strings.Repeat("x", 100_000):   0,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		passed, _ := filterOf(values).apply(known.entries)
		if len(passed) != want {
			t.Errorf("%.60s: %d workloads, not %d", query, len(passed), want)
		}
	}
	_, counts := filterOf(url.Values{"state": {"in step"}, "ns": {"team-01"}}).apply(known.entries)
	if diff := cmp.Diff(map[ask.Group]int{ask.InStep: 3}, counts); diff != "" {
		t.Errorf("the bar counts what the other filters leave (-want +got)\n%s", diff)
	}
}

func TestFilterKeepsItsAddress(t *testing.T) {
	t.Parallel()
	const query = "all=1&ns=a%26b&q=x+y&source=configmap%2Fc&state=in+step"
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	if got := filterOf(values).address(); got != "/?"+query {
		t.Errorf("the address of a filter is %s", got)
	}
	html := overviewOf(shop(3), query)
	mustShow(t, html, `value="x y"`, `value="a&amp;b" selected`, `value="in step" selected`, `value="configmap/c"`)
}

// TestOverviewIsBounded: a page has so many rows, whatever the cluster has.
func TestOverviewIsBounded(t *testing.T) {
	t.Parallel()
	status := shop(6000)
	few := overviewOf(status, "")
	if n := strings.Count(few, `<th scope="row">`); n != fewRows {
		t.Errorf("%d rows", n)
	}
	mustShow(t, few, `href="/?all=1">Show all 6,001</a>`)
	all := overviewOf(status, "all=1")
	if n := strings.Count(all, `<th scope="row">`); n != mostRows {
		t.Errorf("%d rows of all", n)
	}
	mustShow(t, all, "The first 5,000 of 6,001 workloads")
	var compressed bytes.Buffer
	to, err := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = to.Write([]byte(few))
	_ = to.Close()
	if compressed.Len() > 100<<10 || len(few) > 400<<10 {
		t.Errorf("the page has %d bytes, %d compressed", len(few), compressed.Len())
	}
	t.Logf("%d bytes, %d compressed; all rows: %d bytes", len(few), compressed.Len(), len(all))
}

// TestOverviewEscapes: whatever a workload is called, it stays a text, and a short one.
func TestOverviewEscapes(t *testing.T) {
	t.Parallel()
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(2)>` + "\x00\x1b[31m\u202e" + strings.Repeat("A", 200_000)
	at := clock()
	status := ask.Status{
		Controller: ask.Controller{State: hostile, Note: hostile, Version: hostile},
		Stops:      []ask.Stop{{Namespace: hostile, Reason: hostile}},
		Notes:      []string{hostile},
		Workloads: []ask.Summary{{
			Namespace: hostile, Workload: hostile + "/" + hostile,
			State:  ask.Report{Reason: hostile, Message: hostile, Ends: hostile, From: hostile, Since: &at},
			Inputs: []ask.InputStatus{{Input: hostile, Delivered: hostile, Current: "x" + hostile}, {Input: "configmap/" + hostile, Delivered: hostile, Current: hostile}},
		}},
	}
	for _, query := range []string{"", "q=" + url.QueryEscape(hostile), "ns=" + url.QueryEscape(hostile), "source=" + url.QueryEscape(hostile), "state=" + url.QueryEscape(hostile)} {
		html := overviewOf(status, query)
		for _, bad := range []string{"<script", "<img", "\x00", "\x1b", "\u202e"} {
			if strings.Contains(html, bad) {
				t.Errorf("%.20s: %q gets through", query, bad)
			}
		}
		if len(html) > 64<<10 {
			t.Errorf("%.20s: the page has %d bytes", query, len(html))
		}
	}
}

// TestInputLinks: a source and an image lead to their pages, and what has none is a text.
func TestInputLinks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ input, image, want string }{
		{"configmap/app", "", `<a href="/source/shop/configmap/app">configmap/app</a>`},
		{"image/web", "registry.example/web:1.x", `<a href="/image/shop?ref=registry.example%2Fweb%3A1.x&amp;annotation=image.lockstep.dev%2Fweb">image/web</a>`},
		{"image/web", "", "image/web"},
	} {
		if got := inputLink("shop", ask.InputStatus{Input: tc.input, Image: tc.image}); string(got) != tc.want {
			t.Errorf("%s of %q is %s, want %s", tc.input, tc.image, got, tc.want)
		}
	}
}
