package notice_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
)

// marker is part of every secret in these files.
const marker = "5ecre7"

const everyKind = `
targets:
  ops:     {slack: https://hooks.slack.com/services/T0/B0/5ecre7, prefix: "[prod]"}
  team-a:  {teams: https://example.webhook.office.com/5ecre7, namespaces: [shop, "blog-*"]}
  room:    {googleChat: "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=5ecre7"}
  discord: {discord: https://discord.com/api/webhooks/1/5ecre7}
  am:      {alertmanager: http://alertmanager.monitoring:9093/am, token: 5ecre7-token}
  oncall:  {pagerduty: 5ecre7-key}
  europe:  {pagerduty: 5ecre7-key, url: https://events.eu.pagerduty.com/v2/enqueue, namespaces: [shop], severity: [error]}
  audit:
    webhook: https://audit.example/lockstep
    headers: {X-Team: 5ecre7-header}
    hmac: 5ecre7-0123456789
    template: '{"text": "{{severity}} {{message}}", "who": "{{ objects }}"}'
routes:
- {to: [ops], severity: [info, warning, error]}
- {to: [oncall], reason: [VersionStopped, Reloaded]}
- {to: [am, audit], namespace: ["shop-*"]}
batch: 2s
`

func parsed(t *testing.T, text string) notice.Config {
	t.Helper()
	c, err := notice.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	t.Parallel()
	c := parsed(t, everyKind)
	usual := []notice.Severity{notice.Warning, notice.Error}
	want := notice.Config{
		Targets: map[string]notice.Target{
			"ops":     {Name: "ops", Kind: notice.Slack, URL: "https://hooks.slack.com/services/T0/B0/5ecre7", Prefix: "[prod]", Severities: usual},
			"team-a":  {Name: "team-a", Kind: notice.Teams, URL: "https://example.webhook.office.com/5ecre7", Namespaces: []string{"shop", "blog-*"}, Severities: usual},
			"room":    {Name: "room", Kind: notice.GoogleChat, URL: "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=5ecre7", Severities: usual},
			"discord": {Name: "discord", Kind: notice.Discord, URL: "https://discord.com/api/webhooks/1/5ecre7", Severities: usual},
			"am":      {Name: "am", Kind: notice.Alertmanager, URL: "http://alertmanager.monitoring:9093/am/api/v2/alerts", Token: "5ecre7-token", Severities: usual},
			"oncall":  {Name: "oncall", Kind: notice.PagerDuty, URL: "https://events.pagerduty.com/v2/enqueue", Key: "5ecre7-key", Severities: usual},
			"europe":  {Name: "europe", Kind: notice.PagerDuty, URL: "https://events.eu.pagerduty.com/v2/enqueue", Key: "5ecre7-key", Namespaces: []string{"shop"}, Severities: []notice.Severity{notice.Error}},
			"audit": {
				Name: "audit", Kind: notice.Webhook, URL: "https://audit.example/lockstep", Headers: map[string]notice.Hidden{"X-Team": "5ecre7-header"},
				HMAC: "5ecre7-0123456789", Template: `{"text": "{{severity}} {{message}}", "who": "{{ objects }}"}`, Severities: usual,
			},
		},
		Routes: []notice.Route{
			{To: []string{"ops"}, Severities: notice.Severities()},
			{To: []string{"oncall"}, Reasons: []input.Reason{input.VersionStopped, input.Reloaded}, Severities: notice.Severities()},
			{To: []string{"am", "audit"}, Severities: usual, Namespaces: []string{"shop-*"}},
		},
		Batch: 2 * time.Second,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Targets["ops"].URL); strings.Contains(shown, marker) {
		t.Errorf("a secret is shown: %s", shown)
	}
}

// TestParseMistakes: what a file does wrong is named by line, target or field. What it says there
// may be a secret.
func TestParseMistakes(t *testing.T) {
	t.Parallel()
	one := func(fields string) string { return "targets:\n  ops: {" + fields + "}\n" }
	slack := "slack: https://example/5ecre7"
	for name, c := range map[string]struct{ reason, text, want string }{
		"Empty":          {"a Secret that is still empty", "", "targets: list at least one"},
		"NotYAML":        {"a line that isn't YAML", "targets:\n  ops: [https://5ecre7\n", "isn't YAML"},
		"Anchor":         {"the library quotes anchors", "targets: *5ecre7\n", "isn't YAML"},
		"Text":           {"the library quotes values", "targets: https://5ecre7\n", "line 1 has a value of the wrong type"},
		"List":           {"a list for a text", one("slack: [https://5ecre7]"), "line 2 has a value of the wrong type"},
		"Field":          {"a misspelled field", one(slack + ", 5ecre7: x"), "line 2 has an unknown field"},
		"Twice":          {"the second would win", "targets:\n  ops: {" + slack + "}\n  ops: {" + slack + "}\n", "line 3 sets a field twice"},
		"Name":           {"the name is a label of metrics", "targets:\n  Ops_5ecre7: {" + slack + "}\n", "targets: a name consists of up to 63 lower-case letters"},
		"NoKind":         {"nowhere to send it to", one("prefix: a"), "target ops: set exactly one of slack"},
		"TwoKinds":       {"which one is meant?", one(slack + ", discord: https://example/5ecre7"), "target ops: set exactly one of slack"},
		"Scheme":         {"not over HTTP", one("slack: ftp://example/5ecre7"), "target ops: slack: want a URL that begins with https://"},
		"NoHost":         {"a path alone", one("teams: /5ecre7"), "target ops: teams: want a URL"},
		"BadURL":         {"the library quotes URLs", one(`webhook: "https://5ecre7:x y"`), "target ops: webhook: want a URL"},
		"RegionURL":      {"the field is named", one("pagerduty: 5ecre7, url: nowhere-5ecre7"), "target ops: url: want a URL"},
		"HMACOnChat":     {"a chat doesn't check it", one(slack + ", hmac: 5ecre7-0123456789"), "target ops: hmac has no effect with slack"},
		"TokenOnChat":    {"the URL is the key", one(slack + ", token: 5ecre7"), "target ops: token has no effect with slack"},
		"TemplateOnChat": {"a chat has its own form", one(slack + ", template: 5ecre7"), "target ops: template has no effect with slack"},
		"PrefixOnPager":  {"nobody would see it", one("pagerduty: 5ecre7, prefix: a"), "target ops: prefix has no effect with pagerduty"},
		"SeverityAlone":  {"routes say it for shared targets", one(slack + ", severity: [info]"), "target ops: severity without namespaces has no effect"},
		"ShortHMAC":      {"it can be guessed", one("webhook: https://example, hmac: 5ecre7"), "target ops: hmac: want at least 16 characters"},
		"CA":             {"not a certificate", one("alertmanager: https://example, ca: 5ecre7"), "target ops: ca: want certificates in PEM form"},
		"Header":         {"it would end the header", one(`webhook: https://example, headers: {X-A: "5ecre7\nX-B: b"}`), "target ops: headers: one entry isn't a header"},
		"HeaderName":     {"the client sets it itself", one(`webhook: https://example, headers: {content-length: "5ecre7"}`), "target ops: headers: one entry isn't a header"},
		"Token":          {"it would end the header", one(`webhook: https://example, token: "5ecre7\n"`), "target ops: token: it contains characters"},
		"Template":       {"a field that no message has", one(`webhook: https://example, template: "{{5ecre7}}"`), "target ops: template: it uses an unknown field; known fields: change, count"},
		"Pattern":        {"a pattern that isn't one", one(slack + `, namespaces: ["[5ecre7"]`), "target ops: namespaces: one entry isn't a valid pattern"},
		"EmptyPattern":   {"an empty one stands for nothing", one(slack + `, namespaces: [""]`), "target ops: namespaces: one entry isn't a valid pattern"},
		"Severity":       {"a severity that isn't one", one(slack+", namespaces: [a], severity: [5ecre7]") + "", "target ops: severity: want info, warning or error"},
		"NoTo":           {"nowhere to send it to", one(slack) + "routes: [{severity: [info]}]", "route 1: to: list at least one target"},
		"To":             {"a target that isn't there", one(slack) + "routes: [{to: [ops]}, {to: [5ecre7]}]", "route 2: to: one entry isn't the name of a target"},
		"Reason":         {"a misspelled reason", one(slack) + "routes: [{to: [ops], reason: [5ecre7]}]", "route 1: reason: one entry isn't a Lockstep reason, such as VersionStopped"},
		"RouteSeverity":  {"a misspelled severity", one(slack) + "routes: [{to: [ops], severity: [5ecre7]}]", "route 1: severity: want info"},
		"RouteNamespace": {"a pattern that isn't one", one(slack) + `routes: [{to: [ops], namespace: ["[5ecre7"]}]`, "route 1: namespace: one entry isn't a valid pattern"},
		"Batch":          {"not a duration", one(slack) + "batch: 5ecre7", "batch: want a duration"},
		"LongBatch":      {"messages would come too late", one(slack) + "batch: 1h", "batch: want a duration of at most 10m0s"},
		"TooMany":        {"a bound", manyTargets(65), "at most 64 targets and 256 routes are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := notice.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: error %v, want %q", c.reason, err, c.want)
			}
			if strings.Contains(err.Error(), marker) {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

// TestPage: the targets files of the guide can be read.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guides/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?s)```yaml\n(targets:.*?)```").FindAllSubmatch(page, -1)
	if len(files) < 4 {
		t.Errorf("%d files are in the page", len(files))
	}
	for _, file := range files {
		if _, err := notice.Parse(file[1]); err != nil {
			t.Errorf("%v:\n%s", err, file[1])
		}
	}
}

func manyTargets(count int) string {
	text := "targets:\n"
	for i := range count {
		text += fmt.Sprintf("  t%d: {slack: https://example}\n", i)
	}
	return text
}

func FuzzParse(f *testing.F) {
	f.Add(everyKind)
	f.Add("targets: {a: {webhook: 'http://x', template: '{{}}'}}")
	f.Add("targets: &a {a: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := notice.Parse([]byte(text))
		if err != nil {
			return
		}
		at := time.Unix(1763175600, 0)
		for name, target := range c.Targets {
			request, taken := notice.Render(target, []notice.Message{notice.Test(name, at)}, 0, at)
			if taken != 1 || len(request.Body) == 0 && target.Template == "" {
				t.Errorf("%s takes %d messages in %d bytes", target.Kind, taken, len(request.Body))
			}
		}
		c.For(notice.Notice{Namespace: "shop", Severity: notice.Error}, "a")
	})
}
