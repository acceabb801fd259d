package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// path is the secret part of the webhook.
const path = "/services/T0/B0/secret"

// webhook stands in for Slack.
type webhook struct {
	*httptest.Server
	mu     sync.Mutex
	posts  []string
	answer func(w http.ResponseWriter, post int)
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	h := &webhook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != path {
			t.Errorf("a request to %s of type %s: %v", r.URL.Path, r.Header.Get("Content-Type"), err)
		}
		h.mu.Lock()
		h.posts = append(h.posts, body.Text)
		n, answer := len(h.posts), h.answer
		h.mu.Unlock()
		if answer != nil {
			answer(w, n)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *webhook) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.posts...)
}

// problems collects what is reported.
type problems struct {
	mu   sync.Mutex
	said []string
}

func (p *problems) report(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, err.Error())
}

func (p *problems) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

func newPlain(h *webhook, p *problems) *notify.Notifier {
	return plainAt(h, p, func() time.Time { return time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC) })
}

func plainAt(h *webhook, p *problems, now func() time.Time) *notify.Notifier {
	config := notice.Plain(notice.Hidden(h.URL+path), "[prod]")
	return notify.New(notify.Options{Config: &config, Now: now, Report: p.report})
}

func event(reason input.Reason, note string) announce.Event {
	return announce.Event{
		About:  &corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"},
		Reason: string(reason), Warning: reason != input.Reloaded && reason != input.Following, Note: note,
	}
}

// TestMessages: what people see, several messages in one request.
func TestMessages(t *testing.T) {
	t.Parallel()
	h, p := newWebhook(t), &problems{}
	a := newPlain(h, p)
	a.Announce(event(input.Following, "follows image/web"))
	a.Announce(event(input.Reloaded, "rolled out image/web 1 -> 2"))
	a.Announce(event(input.Unresolved, "annotation <!channel> & ```x"))
	a.Announce(event(input.InvalidAnnotation, "a mistake"))
	a.Announce(event(input.ReloadFailed, "refused"))
	a.Flush(t.Context())
	want := "```[prod][2026-11-15T03:00:00Z][info] Deployment shop/web: rolled out image/web 1 -&gt; 2\n```" +
		"```[prod][2026-11-15T03:00:00Z][error] Deployment shop/web: annotation &lt;!channel&gt; &amp; '''x\n```" +
		"```[prod][2026-11-15T03:00:00Z][warn] Deployment shop/web: a mistake\n```" +
		"```[prod][2026-11-15T03:00:00Z][error] Deployment shop/web: refused\n```"
	if got := h.seen(); len(got) != 1 || got[0] != want {
		t.Errorf("posts %q, want one:\n%s", got, want)
	}
	a.Flush(t.Context())
	if n := len(h.seen()); n != 1 || p.all() != "" {
		t.Errorf("%d posts, problems %q", n, p.all())
	}
}

// TestLongMessages: Slack cuts what is too long, so it is sent in parts.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	h, p := newWebhook(t), &problems{}
	a := newPlain(h, p)
	for i := range 600 {
		a.Announce(event(input.ReloadFailed, fmt.Sprintf("%d %s", i, strings.Repeat("ü", 3000))))
	}
	a.Flush(t.Context())
	posts := h.seen()
	for _, text := range posts {
		if len(text) > 35000 {
			t.Errorf("a post of %d bytes", len(text))
		}
	}
	all := strings.Join(posts, "")
	if n := strings.Count(all, "Deployment shop/web"); n != 500 {
		t.Errorf("%d messages, want the last 500", n)
	}
	if !strings.HasPrefix(all, "100 messages were dropped\n") || strings.Count(all, "were dropped") != 1 || !strings.Contains(all, ": 599 ") {
		t.Errorf("it begins with %.100q", all)
	}
}

// TestRepeats: what Slack could not take is sent again, in order, and told once.
func TestRepeats(t *testing.T) {
	t.Parallel()
	h, p := newWebhook(t), &problems{}
	announced := make(chan struct{}) // closed when both messages are there
	h.answer = func(w http.ResponseWriter, post int) {
		<-announced
		if post <= 2 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	a := plainAt(h, p, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	a.Announce(event(input.ReloadFailed, "first"))
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		return len(h.seen()) >= 1, "Slack hasn't received a post; problems: " + p.all()
	})
	a.Announce(event(input.ReloadFailed, "second"))
	close(announced)
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		posts := h.seen()
		return len(posts) >= 3, fmt.Sprintf("it is not sent again; the posts are %q", posts)
	})
	cancel()
	<-done
	last := h.seen()[2]
	if first, second := strings.Index(last, "first"), strings.Index(last, "second"); first < 0 || second < first {
		t.Errorf("the last post is %q", last)
	}
	if said := p.all(); strings.Count(said, "429") != 1 {
		t.Errorf("it is told %q, want once", said)
	}
}

// TestRefused: what Slack refuses for good is dropped. No failure shows the webhook.
func TestRefused(t *testing.T) {
	t.Parallel()
	h, p := newWebhook(t), &problems{}
	h.answer = func(w http.ResponseWriter, post int) {
		if post == 1 {
			w.WriteHeader(http.StatusNotFound)
		}
	}
	a := newPlain(h, p)
	a.Announce(event(input.ReloadFailed, "first"))
	a.Flush(t.Context())
	a.Announce(event(input.ReloadFailed, "second"))
	a.Flush(t.Context())
	if posts := h.seen(); len(posts) != 2 || strings.Contains(posts[1], "first") {
		t.Errorf("posts %q", posts)
	}
	if said := p.all(); !strings.Contains(said, "404 Not Found; the messages are dropped") {
		t.Errorf("it is told %q", said)
	}
	h.Close()
	a.Announce(event(input.ReloadFailed, "third"))
	a.Flush(t.Context())
	said := p.all()
	if !strings.Contains(said, "connection refused") || strings.Contains(said, "secret") {
		t.Errorf("it is told %q", said)
	}
}

// TestRedirect: the messages are for the webhook only.
func TestRedirect(t *testing.T) {
	t.Parallel()
	h, p := newWebhook(t), &problems{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.report(errors.New("elsewhere was asked")) }))
	t.Cleanup(elsewhere.Close)
	h.answer = func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	a := newPlain(h, p)
	a.Announce(event(input.ReloadFailed, "first"))
	a.Flush(t.Context())
	if said := p.all(); !strings.Contains(said, "307") || strings.Contains(said, "elsewhere") {
		t.Errorf("it is told %q", said)
	}
}
