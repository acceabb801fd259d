package notice_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
)

func TestFor(t *testing.T) {
	t.Parallel()
	unrouted := `
targets:
  ops:    {slack: https://example/1}
  team-a: {teams: https://example/2, namespaces: [shop, "blog-*"]}
  all-a:  {teams: https://example/2, namespaces: [shop], severity: [info, error]}
`
	routed := unrouted + `
routes:
- {to: [ops], reason: [Reloaded, VersionStopped]}
- {to: [ops, team-a], severity: [error], namespace: ["shop-*"]}
`
	rollout := notice.Notice{Reason: input.Reloaded, Severity: notice.Info}
	warning := notice.Notice{Reason: input.Held, Severity: notice.Warning}
	failure := notice.Notice{Reason: input.ReloadFailed, Severity: notice.Error}
	stopped := notice.Notice{Reason: input.VersionStopped, Severity: notice.Error}
	for name, c := range map[string]struct {
		reason, config    string
		of                notice.Notice
		namespace, chosen string
		want              string
	}{
		"Default":          {"warnings go to every target that isn't for tenants", unrouted, warning, "shop", "", "ops"},
		"DefaultError":     {"errors too", unrouted, failure, "shop", "", "ops"},
		"DefaultInfo":      {"rollouts are wanted by few", unrouted, rollout, "shop", "", ""},
		"Chosen":           {"besides the administrator's", unrouted, warning, "shop", "team-a", "ops team-a"},
		"ChosenPattern":    {"by a pattern", unrouted, warning, "blog-en", "team-a", "ops team-a"},
		"ChosenInfo":       {"warnings and errors, unless the target says otherwise", unrouted, rollout, "shop", "team-a", ""},
		"ChosenSeverity":   {"what the target says", unrouted, rollout, "shop", "all-a", "all-a"},
		"ChosenSeverity2":  {"and nothing else", unrouted, warning, "shop", "all-a", "ops"},
		"NotAllowed":       {"another tenant's target", unrouted, warning, "other", "team-a", "ops"},
		"NotForTenants":    {"a target without namespaces can't be chosen", routed, warning, "shop", "ops", ""},
		"Unknown":          {"no such target", unrouted, warning, "shop", "nobody", "ops"},
		"Reason":           {"a reason without a severity means all severities", routed, rollout, "shop", "", "ops"},
		"OtherReason":      {"routes replace the default", routed, warning, "shop", "", ""},
		"RouteNamespace":   {"only these namespaces", routed, failure, "shop-1", "", "ops team-a"},
		"RouteNamespace2":  {"and no others", routed, failure, "shop", "", ""},
		"TwiceOnce":        {"two routes and a choice are one message", routed, stopped, "shop-1", "", "ops team-a"},
		"ChosenWithRoutes": {"a choice doesn't need a route", routed, failure, "shop", "team-a", "team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := c.of
			n.Namespace = c.namespace
			if got := strings.Join(parsed(t, c.config).For(n, c.chosen), " "); got != c.want {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
targets:
  ops:    {slack: https://example/1}
  team-a: {teams: https://example/2, namespaces: [shop, "blog-*"]}
  team-b: {teams: https://example/2, namespaces: [shop]}
`)
	for _, tc := range []struct{ reason, namespace, target, want string }{
		{"allowed", "shop", "team-a", ""},
		{"by a pattern", "blog-en", "team-a", ""},
		{"misspelled", "shop", "team-c", "this namespace is allowed to choose the notification target team-a or team-b"},
		{"the administrator's", "blog-en", "ops", "this namespace is allowed to choose the notification target team-a"},
		{"other tenants' targets are not listed", "other", "team-a", "this namespace isn't allowed to choose a notification target"},
	} {
		if got := c.Problem(tc.namespace, tc.target); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestSeverityOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why     string
		reason  input.Reason
		warning bool
		want    notice.Severity
		is      bool
	}{
		{"a rollout", input.Reloaded, false, notice.Info, true},
		{"a series of evictions that is done", input.Evicted, false, notice.Info, true},
		{"a refresh", input.Refreshed, false, notice.Info, true},
		{"the start of a series is followed by its end", input.Evicting, false, "", false},
		{"a user has to act", input.Held, true, notice.Warning, true},
		{"a pause is a user's own", input.Paused, false, "", false},
		{"a reason that is also a normal event", input.Undone, true, notice.Warning, true},
		{"something broke", input.VersionStopped, true, notice.Error, true},
		{"a rollout failed, and was reverted", input.PutBack, true, notice.Error, true},
		{"the API server refused", input.ReloadFailed, true, notice.Error, true},
		{"a stop by an operator is no failure", input.Stopped, true, notice.Warning, true},
		{"the kill switch itself", input.Stopped, false, notice.Warning, true},
		{"nobody is notified of each new workload", input.Following, false, "", false},
		{"a warning of a newer part", "Unheard", true, notice.Warning, true},
	} {
		got, is := notice.SeverityOf(tc.reason, tc.warning)
		if is != tc.is || is && got != tc.want {
			t.Errorf("%s: %s is %s, %t", tc.why, tc.reason, got, is)
		}
	}
}
