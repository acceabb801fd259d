package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestGates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<10)
	names := func(n int) string { return strings.TrimSuffix(strings.Repeat("deployment/db,", n), ",") }
	cases := map[string]struct {
		reason              string
		workload, namespace map[string]string
		want                settings.Gates
		ignored, warned     string // the annotation
	}{
		"Nothing":            {reason: "nothing is asked for"},
		"NamespaceHold":      {reason: "the namespace's hold isn't the workload's", namespace: on(settings.Hold, "freeze"), want: settings.Gates{NamespaceHeld: true, NamespaceHeldBy: "freeze"}},
		"NamespaceHoldEmpty": {reason: "a hold needs no text", namespace: on(settings.Hold, ""), want: settings.Gates{NamespaceHeld: true}},
		"Window": {
			reason: "the workload's own comes first", workload: on(settings.Window, " always "), namespace: on(settings.Window, "0 2 * * * 2h"),
			want: settings.Gates{Windows: []settings.Placed{{On: settings.OnWorkload, Text: "always"}, {On: settings.OnNamespace, Text: "0 2 * * * 2h"}}},
		},
		"WindowLong":      {reason: "a part of a window is another window", workload: on(settings.Window, long), ignored: settings.Window},
		"WindowLongSpace": {reason: "the namespace's too", namespace: on(settings.Window, long), warned: settings.Window},
		"After":           {reason: "in the order in which they are written", workload: on(settings.After, "deployment/db, sts/cache"), want: settings.Gates{After: []string{"deployment/db", "sts/cache"}}},
		"AfterKind":       {reason: "a kind with its group", workload: on(settings.After, "StatefulSet.apps.kruise.io/db"), want: settings.Gates{After: []string{"StatefulSet.apps.kruise.io/db"}}},
		"AfterMost":       {reason: "as many as there may be", workload: on(settings.After, names(8)), want: settings.Gates{After: strings.Split(names(8), ",")}},
		"AfterTooMany":    {reason: "one more", workload: on(settings.After, names(9)), ignored: settings.After},
		"AfterBare":       {reason: "which kind?", workload: on(settings.After, "db"), ignored: settings.After},
		"AfterOther":      {reason: "workloads of other namespaces can't be named", workload: on(settings.After, "deployment/shop/db"), ignored: settings.After},
		"AfterEmpty":      {reason: "after nothing", workload: on(settings.After, ","), ignored: settings.After},
		"AfterHalf":       {reason: "half a list isn't what was meant", workload: on(settings.After, "deployment/db, cache"), ignored: settings.After},
		"AfterLong":       {reason: "a name that was cut is another name", workload: on(settings.After, "deployment/db"+strings.Repeat(" ", 2<<10)), ignored: settings.After},
		"First":           {reason: "it asks", workload: on(settings.First, " true"), want: settings.Gates{First: true}},
		"FirstNot":        {reason: "as without it", workload: on(settings.First, "false")},
		"FirstWord":       {reason: "not a truth", workload: on(settings.First, "yes"), ignored: settings.First},
		"FirstEmpty":      {reason: "not a truth either", workload: on(settings.First, ""), ignored: settings.First},
		"Resume":          {reason: "two stopped versions", workload: on(settings.Resume, "77ab01c9de,0123456789"), want: settings.Gates{Resume: []string{"77ab01c9de", "0123456789"}}},
		"ResumeWord":      {reason: "which version?", workload: on(settings.Resume, "true"), ignored: settings.Resume},
		"MaxRolling":      {reason: "few at a time", namespace: on(settings.MaxRolling, " 3 "), want: settings.Gates{MaxRolling: 3}},
		"MaxRollingNone":  {reason: "it can only lower the limit", namespace: on(settings.MaxRolling, "0"), warned: settings.MaxRolling},
		"MaxRollingWord":  {reason: "not a number", namespace: on(settings.MaxRolling, "few"), warned: settings.MaxRolling},
		"Notify":          {reason: "a target", namespace: on(settings.Notify, " team-a"), want: settings.Gates{Notify: "team-a"}},
		"Misplaced": {
			reason:   "what is on the wrong object has no meaning",
			workload: map[string]string{settings.MaxRolling: "3", settings.Notify: "ops"}, namespace: map[string]string{settings.After: "deployment/db", settings.First: "true", settings.Resume: "77ab01c9de"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settings.ForWorkload(tc.workload, tc.namespace, settings.Defaults{})
			if diff := cmp.Diff(tc.want, in.Gates); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(in.Mistakes.Problems) > 0 {
				t.Errorf("%s: the workload would be left alone: %v", tc.reason, in.Mistakes.Problems)
			}
			for _, c := range []struct {
				key string
				got []settings.Problem
			}{{tc.ignored, in.Mistakes.Ignored}, {tc.warned, in.Mistakes.Warnings}} {
				if (len(c.got) > 0) != (c.key != "") {
					t.Fatalf("%s: problems %v, want %q", tc.reason, c.got, c.key)
				}
				for _, p := range c.got {
					if p.Key != c.key || !strings.Contains(p.String(), c.key) || len(p.String()) > 500 {
						t.Errorf("%s: %q isn't short and about %s", tc.reason, p, c.key)
					}
				}
			}
		})
	}
}

func TestParseStop(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		missing bool
		data    map[string]string
		stopped []string // of shop and blog
		by      string   // of shop
	}{
		"Missing":   {reason: "nobody stopped anything", missing: true},
		"Empty":     {reason: "kubectl create configmap lockstep-stop", stopped: []string{"shop", "blog"}},
		"All":       {reason: "lockstep stop --all", data: on("all", "incident 42"), stopped: []string{"shop", "blog"}, by: "incident 42"},
		"Namespace": {reason: "lockstep stop -n shop", data: on("namespace.shop", " freeze\n"), stopped: []string{"shop"}, by: "freeze"},
		"NoReason":  {reason: "a reason isn't needed", data: on("namespace.shop", ""), stopped: []string{"shop"}},
		"Other":     {reason: "another namespace", data: on("namespace.other", "freeze")},
		"Both":      {reason: "the wider one counts", data: map[string]string{"all": "incident 42", "namespace.shop": "freeze"}, stopped: []string{"shop", "blog"}, by: "incident 42"},
		"Unknown":   {reason: "an operator who writes another key means everything", data: on("reason", "incident 42"), stopped: []string{"shop", "blog"}, by: "incident 42"},
		"Unnamed":   {reason: "which namespace? then all", data: on("namespace.", "why"), stopped: []string{"shop", "blog"}, by: "why"},
		"AllWins":   {reason: "the reason is that of the known key", data: map[string]string{"a": "x", "all": "incident 42", "b": "y"}, stopped: []string{"shop", "blog"}, by: "incident 42"},
		"Long":      {reason: "a long reason is cut", data: on("all", strings.Repeat("x", 1<<20)), stopped: []string{"shop", "blog"}, by: strings.Repeat("x", 80) + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stop := settings.ParseStop(tc.data, !tc.missing)
			for _, namespace := range []string{"shop", "blog"} {
				if _, stopped := stop.For(namespace); stopped != slices.Contains(tc.stopped, namespace) {
					t.Errorf("%s: %s is stopped: %t", tc.reason, namespace, stopped)
				}
			}
			if by, _ := stop.For("shop"); by != tc.by {
				t.Errorf("%s: the reason is %q, want %q", tc.reason, by, tc.by)
			}
		})
	}
}

// TestStopKey: what is written is what is read.
func TestStopKey(t *testing.T) {
	t.Parallel()
	if _, stopped := settings.ParseStop(on(settings.StopKey("shop"), "x"), true).For("shop"); !stopped {
		t.Error("the key for a namespace doesn't stop it")
	}
	if stop := settings.ParseStop(on(settings.StopKey(""), "x"), true); stop.All == nil || *stop.All != "x" {
		t.Error("the key for everything doesn't stop everything")
	}
}
