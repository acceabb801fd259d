package ui

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestLive: a page that is open gets what changed, and nothing else.
func TestLive(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(shop(3)))
	page := read(t, o.get(t, "/?q=web").Body)
	_, version, _ := strings.Cut(page, `data-version="`)
	version, _, _ = strings.Cut(version, `"`)
	answer := o.get(t, "/live?at=%2F%3Fq%3Dweb&has="+version)
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" || answer.Header.Get("Content-Encoding") != "" {
		t.Fatalf("headers %v", answer.Header)
	}
	events := bufio.NewReader(answer.Body)

	o.board.publish(newSnapshot(shop(3), nil)) // the same as the browser has
	other := shop(3)
	other.Workloads[0].State.Message = "it is another one"
	o.awaitListeners(t, 1)
	o.board.publish(newSnapshot(other, nil))
	first := nextEvent(t, events)
	if first.name != "page" || !strings.Contains(first.data, "it is another one") || strings.Contains(first.data, `id="team-01/`) {
		t.Errorf("the change was sent as %.200v", first)
	}
	if !strings.HasPrefix(first.data, "<main") || first.id == "" || first.id == version {
		t.Errorf("version %q, after %q: %.80s", first.id, version, first.data)
	}

	// A browser that reconnects has this version already, and hears only of the next one.
	again := bufio.NewReader(o.get(t, "/live?at=%2F%3Fq%3Dweb&has="+version, has("Last-Event-ID", first.id)).Body)
	o.awaitListeners(t, 2)
	other.Workloads[0].State.Message = "the third one"
	o.board.publish(newSnapshot(other, nil))
	if next := nextEvent(t, again); !strings.Contains(next.data, "the third one") {
		t.Errorf("a browser that has the page gets %.200v", next)
	}
}

// awaitListeners waits until so many pages listen: what was published before is not for them.
func (o opened) awaitListeners(t *testing.T, n int) {
	t.Helper()
	labtest.Eventually(t, patient, func() (bool, string) {
		o.board.mu.Lock()
		defer o.board.mu.Unlock()
		return len(o.board.listeners) == n, "nobody listens"
	})
}

// TestLiveSaysThatTheClusterIsGone: and gets a page when it is back, even if it is the same.
func TestLiveSaysThatTheClusterIsGone(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(shop(3)))
	events := bufio.NewReader(o.get(t, "/live?at=%2F").Body)
	before := nextEvent(t, events)
	o.board.setSilence(context.DeadlineExceeded)
	if gone := nextEvent(t, events); gone.name != "gone" || !strings.Contains(gone.data, "doesn't answer") {
		t.Errorf("it says %+v", gone)
	}
	if html := read(t, o.get(t, "/").Body); !strings.Contains(html, `class="gone"`) || !strings.Contains(html, "doesn&#39;t answer") || !strings.Contains(html, "QuietWindow") {
		t.Errorf("a page that is opened now pretends to be fresh: %.500s", html)
	}
	o.board.setSilence(nil)
	if back := nextEvent(t, events); back.name != "page" || back.data != before.data {
		t.Errorf("afterwards it says %.200v", back)
	}
}

// TestLiveCleansWhatTheClusterSays: an error contains what a server or proxy answered.
func TestLiveCleansWhatTheClusterSays(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(shop(1)))
	o.board.setSilence(errors.New("a\u202eb" + strings.Repeat("long ", 1000)))
	gone := nextEvent(t, bufio.NewReader(o.get(t, "/live?at=%2F").Body))
	if gone.name != "gone" || !strings.Contains(gone.data, "a\ufffdb") || len(gone.data) > longest+len("…") {
		t.Errorf("it says %+v", gone)
	}
}

func TestLiveIsLimited(t *testing.T) {
	t.Parallel()
	o := open(t, standIn(shop(0)))
	for range mostLives {
		o.lives <- struct{}{}
	}
	if answer := o.get(t, "/live?at=/"); answer.StatusCode != http.StatusServiceUnavailable {
		t.Error("one too many:", answer.Status)
	}
	<-o.lives
	answer := o.get(t, "/live?at=/")
	if answer.StatusCode != http.StatusOK {
		t.Error("there is room:", answer.Status)
	}
}

// TestLiveFollowsItsNamespace: a page of a workload is made again for changes beside it, not for
// those elsewhere.
func TestLiveFollowsItsNamespace(t *testing.T) {
	t.Parallel()
	b := standInBoard(ask.Status{})
	l, stop := b.listen()
	defer stop()
	woken := func() bool {
		select {
		case <-l.changed:
			return true
		default:
			return false
		}
	}
	b.narrow(l, page{namespace: "shop"})
	for _, c := range []struct {
		namespace string
		want      bool
	}{{"shop", true}, {"other", false}, {"", true}} {
		b.changed(c.namespace, false)
		if woken() != c.want {
			t.Errorf("a change in %q: woken is not %t", c.namespace, c.want)
		}
	}
	b.narrow(l, page{ofBoard: true})
	b.changed("shop", true)
	if woken() {
		t.Error("the overview is made again before there is a new status")
	}
	b.publish(newSnapshot(ask.Status{}, nil))
	if !woken() {
		t.Error("the overview isn't told of a new status")
	}
}
