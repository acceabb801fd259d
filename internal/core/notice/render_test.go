package notice_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
)

var update = flag.Bool("update", false, "write the golden payloads of testdata anew")

func at() time.Time { return time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC) }

// change is a rollout of that many Deployments for one ConfigMap.
func change(count int) notice.Message {
	var all []notice.Notice
	for i := range count {
		all = append(all, notice.Notice{
			At: at().Add(time.Duration(i) * time.Second), Reason: input.Reloaded, Severity: notice.Info, Namespace: "shop", Kind: "Deployment", Name: fmt.Sprintf("web-%02d", i),
			Text: "rolled out configmap/app 3fa9c1d2e4 -> 77ab01c9de", Change: "configmap/app 77ab01c9de",
		})
	}
	return notice.Join(all, 0)
}

// mistakes are warnings without a change, with texts that would be links and mentions in a chat.
func mistakes() notice.Message {
	of := func(kind, name, text string) notice.Notice {
		return notice.Notice{At: at(), Reason: input.InvalidAnnotation, Severity: notice.Warning, Namespace: "shop", Kind: kind, Name: name, Text: text}
	}
	return notice.Join([]notice.Notice{
		of("Deployment", "web", "annotation lockstep.dev/quiet: \"<!channel> & <users/all> @everyone\""),
		of("Deployment", "api", "annotation lockstep.dev/quiet: \"<!channel> & <users/all> @everyone\""),
		of("StatefulSet", "db", "annotation lockstep.dev/strategy: [x](https://evil.example) ```"),
	}, 0)
}

// TestPayloads: what each kind of target gets, in the form that its maker documents.
func TestPayloads(t *testing.T) {
	t.Parallel()
	targets := parsed(t, everyKind).Targets
	targets["json"] = notice.Target{Name: "json", Kind: notice.Webhook}
	for _, name := range []string{"ops", "team-a", "room", "discord", "am", "oncall", "audit", "json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue, dropped := []notice.Message{change(40), mistakes()}, 3
			var bodies []json.RawMessage
			for len(queue) > 0 {
				request, taken := notice.Render(targets[name], queue, dropped, at())
				bodies = append(bodies, request.Body)
				queue, dropped = queue[taken:], 0
				if request.Header["Content-Type"] != "application/json" {
					t.Errorf("headers %v", request.Header)
				}
			}
			golden(t, name+".json", bodies)
		})
	}
}

// golden compares JSON documents with those in testdata, indented for people.
func golden(t *testing.T, name string, documents []json.RawMessage) {
	t.Helper()
	text, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteString("\n")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, indented.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

// TestLimits: a request is as large as its receiver takes, whatever the messages contain, and all
// messages are sent.
func TestLimits(t *testing.T) {
	t.Parallel()
	long := func(i int) notice.Message {
		return notice.Join([]notice.Notice{{
			At: at(), Reason: input.ReloadFailed, Severity: notice.Error, Namespace: strings.Repeat("n", 63), Kind: "Deployment",
			Name: fmt.Sprint(strings.Repeat("w", 250), i), Text: strings.Repeat("<ü&\"\x01", 1200), Change: strings.Repeat("c", 300),
		}}, 0)
	}
	limits := map[notice.Kind]int{notice.Slack: 40000, notice.Teams: 28000, notice.GoogleChat: 4096, notice.Discord: 2000, notice.PagerDuty: 512 << 10}
	for kind, limit := range limits {
		var queue []notice.Message
		for i := range 30 {
			queue = append(queue, long(i))
		}
		requests := 0
		for len(queue) > 0 {
			request, taken := notice.Render(notice.Target{Kind: kind, Prefix: "[prod]"}, queue, 7, at())
			queue = queue[taken:]
			requests++
			var body struct {
				Text, Content string
				DedupKey      string `json:"dedup_key"`
				Payload       struct{ Summary string }
			}
			if err := json.Unmarshal(request.Body, &body); err != nil {
				t.Fatal(err)
			}
			size := utf8.RuneCountInString(body.Text + body.Content)
			if kind == notice.Teams || kind == notice.PagerDuty {
				size = len(request.Body)
			}
			if size > limit || len(body.DedupKey) > 255 || len(body.Payload.Summary) > 1024 {
				t.Errorf("%s: %d, of %d; dedup key %d, summary %d", kind, size, limit, len(body.DedupKey), len(body.Payload.Summary))
			}
		}
		if requests == 1 {
			t.Errorf("%s takes all in one request", kind)
		}
	}
}

// TestTexts: what people read.
func TestTexts(t *testing.T) {
	t.Parallel()
	several := change(2)
	several.Notices[1].Namespace = "blog"
	many := change(100)
	many = notice.Join(many.Notices, 20)
	texts := change(12)
	for i := range texts.Notices {
		texts.Notices[i].Text = fmt.Sprint("text ", i)
	}
	for name, tc := range map[string]struct {
		reason  string
		message notice.Message
		want    string
	}{
		"One":        {"an object", change(1), "Reloaded in namespace shop for configmap/app 77ab01c9de\ndeployment/web-00: rolled out configmap/app 3fa9c1d2e4 -> 77ab01c9de"},
		"Several":    {"of two namespaces", notice.Join(several.Notices, 0), "Reloaded for configmap/app 77ab01c9de: 2 objects\nshop/deployment/web-00, blog/deployment/web-01: rolled out configmap/app 3fa9c1d2e4 -> 77ab01c9de"},
		"Many":       {"ten names, and how many more", many, "Reloaded in namespace shop for configmap/app 77ab01c9de: 120 objects\n" + names(10) + " and 110 more: rolled out configmap/app 3fa9c1d2e4 -> 77ab01c9de"},
		"ManyTexts":  {"ten texts, and how many more", texts, "Reloaded in namespace shop for configmap/app 77ab01c9de: 12 objects\n" + lines(10) + "and 2 more"},
		"Mistakes":   {"a line for each text", mistakes(), "InvalidAnnotation in namespace shop: 3 objects\ndeployment/web, deployment/api: annotation lockstep.dev/quiet: \"<!channel> & <users/all> @everyone\"\nstatefulset/db: annotation lockstep.dev/strategy: [x](https://evil.example) ```"},
		"TestTarget": {"says what it is", notice.Test("ops", at()), "Test in namespace test\ntarget/ops: a test message, sent with \"lockstep notify test\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.message.Text()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func names(count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("deployment/web-%02d", i)
	}
	return strings.Join(all, ", ")
}

func lines(count int) (all string) {
	for i := range count {
		all += fmt.Sprintf("deployment/web-%02d: text %d\n", i, i)
	}
	return all
}

// TestTemplates: a text that isn't JSON is sent as it is; in JSON a quote can't end a value.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, template, want, kind string }{
		{"JSON", `{"a": "{{severity}}", "b": "{{message}}"}`, `{"a": "warning", "b": "InvalidAnnotation in namespace shop\ndeployment/web: say \"hi\""}`, "application/json"},
		{"a list", `["{{objects}}", {{count}}, "{{change}}"]`, `["deployment/web", 1, ""]`, "application/json"},
		{"not JSON", "{{ reason }} {{namespace}} {{time}} {{title}}: {{message}}", "InvalidAnnotation shop 2026-11-15T03:00:00Z InvalidAnnotation in namespace shop: InvalidAnnotation in namespace shop\ndeployment/web: say \"hi\"", "text/plain; charset=utf-8"},
		{"braces of its own", "a {b} {{reason}", "a {b} {{reason}", "text/plain; charset=utf-8"},
	} {
		m := notice.Join([]notice.Notice{{At: at(), Reason: input.InvalidAnnotation, Severity: notice.Warning, Namespace: "shop", Kind: "Deployment", Name: "web", Text: `say "hi"`}}, 0)
		request, _ := notice.Render(notice.Target{Kind: notice.Webhook, Template: tc.template}, []notice.Message{m}, 0, at())
		if got := string(request.Body); got != tc.want || request.Header["Content-Type"] != tc.kind {
			t.Errorf("%s: %s as %s, want %s", tc.reason, got, request.Header["Content-Type"], tc.want)
		}
	}
}

// TestHeaders: the signature is that of
//
//	printf '1794711600.hello' | openssl dgst -sha256 -hmac 0123456789abcdef
func TestHeaders(t *testing.T) {
	t.Parallel()
	target := notice.Target{
		Kind: notice.Webhook, Template: "hello", HMAC: "0123456789abcdef", Token: "t0ken", Headers: map[string]notice.Hidden{"X-Team": "platform"},
	}
	request, _ := notice.Render(target, []notice.Message{change(1)}, 0, at())
	want := map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Team": "platform", "Authorization": "Bearer t0ken",
		"X-Lockstep-Signature": "t=1794711600,v1=51bc156716abf21087d30aa66a85efb8be643b61f31a20ed9a5cf401ee41f157",
	}
	if diff := cmp.Diff(want, request.Header); diff != "" {
		t.Error(diff)
	}
}
