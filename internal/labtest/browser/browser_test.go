package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browser.CloseShared()
	os.Exit(code)
}

// serve serves one page.
func serve(t *testing.T, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" { // an answer that doesn't end
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: came later\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
		fmt.Fprintf(w, "<!doctype html><title>page</title><link rel=icon href=data:,><p>Cookies: %q.</p>%s", r.Header.Get("Cookie"), body)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // one of them doesn't end by itself
		server.Close()
	})
	return server.URL
}

// TestTab: what a page shows, what it does when keys are pressed, and what went wrong in it.
func TestTab(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	address := serve(t, `<input id=a><div id=out></div><script>
		const out = document.getElementById("out")
		document.getElementById("a").oninput = e => out.textContent = "typed " + e.target.value
		new EventSource("/live").onmessage = e => document.body.append(e.data)
	</script>`)
	tab.Go(address)
	tab.AwaitText("came later", `Cookies: "".`)
	tab.Click("#a")
	tab.Press("web")
	tab.AwaitText("typed web")
	if got := browser.Eval[int](tab, "Promise.resolve(1 + 2)"); got != 3 {
		t.Errorf("a promise became %d", got)
	}
	if troubles := tab.Troubles(); len(troubles) > 0 {
		t.Errorf("nothing went wrong, and it reports %q", troubles)
	}
	tab.Go(address)
	tab.AwaitText(`Cookies: "seen=1".`)

	other := browser.Open(t)
	other.Go(address)
	other.AwaitText(`Cookies: "".`) // each tab has its own
}

// TestTroubles: a dialog, an exception and a refused script are noticed; other hosts aren't reached.
func TestTroubles(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	tab.Go(serve(t, `<script>alert("from " + "a script")</script><script>missing()</script><script src="http://192.0.2.1.example/x.js"></script>`))
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		all := tab.Troubles()
		for _, want := range []string{"dialog: from a script", "missing is not defined", "ERR_NAME_NOT_RESOLVED"} {
			if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, want) }) {
				return false, fmt.Sprintf("no %q in %q", want, all)
			}
		}
		return true, ""
	})
}

// TestPreferences: the size of the window and the colours that a user prefers.
func TestPreferences(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	tab.Go(serve(t, ""))
	const dark = "matchMedia('(prefers-color-scheme: dark)').matches"
	if browser.Eval[bool](tab, dark) || browser.Eval[int](tab, "innerWidth") != 1280 {
		t.Error("a tab is not light and 1280 wide")
	}
	tab.Scheme("dark")
	tab.Size(400, 800)
	if !browser.Eval[bool](tab, dark) || browser.Eval[int](tab, "innerWidth") != 400 {
		t.Error("a tab is not dark and 400 wide")
	}
	if picture := tab.Picture(); !strings.HasPrefix(string(picture), "\x89PNG") {
		t.Errorf("a picture of %d bytes isn't a PNG file", len(picture))
	}
}
