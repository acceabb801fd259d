package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// patience bounds every wait for a page. It is long because tests share two cores with each
// other; a passing test never waits that long.
const patience = 5 * time.Minute

// Tab is a tab of the shared browser, and what has happened in it.
type Tab struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in its context.

	mu       sync.Mutex
	troubles []string
}

// Open opens a tab for a test, 1280 by 800 pixels, light. It closes with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	ctx, end := Shared(t).Tab()
	tab := &Tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page was\n%s\nand the browser reported %q", tab.seen(), tab.Troubles())
		}
		end()
	})
	tab.follow()
	// A tab acts as if it had the focus, whatever the other tests do.
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	tab.Size(1280, 800)
	tab.Scheme("light")
	return tab
}

// follow notes dialogs, errors of scripts, and what the browser refused.
func (p *Tab) follow() {
	console := chromedp.Console(p.ctx)
	dialogs := chromedp.Events(p.ctx, page.JavascriptDialogOpening)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Source != "" {
				p.note(m.Source + " " + m.String() + " " + m.URL)
			}
		}
	}()
	go func() {
		for d, err := range dialogs {
			if err != nil {
				return
			}
			p.note("dialog: " + d.Message)
			_, _ = chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false})
		}
	}()
}

func (p *Tab) note(trouble string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.troubles = append(p.troubles, strings.TrimSpace(trouble))
}

// Troubles are the dialogs, the errors of scripts, and what the browser refused, such as a
// script that the Content-Security-Policy doesn't allow.
func (p *Tab) Troubles() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.troubles)
}

// Do runs actions of chromedp.
func (p *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Go loads an address.
func (p *Tab) Go(url string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(url))
}

// Size sets the size of the window.
func (p *Tab) Size(width, height int64) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
}

// Scheme sets what the user prefers: "light" or "dark".
func (p *Tab) Scheme(name string) {
	p.t.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// Press presses keys, as the keyboard does: [kb.Escape], "web".
func (p *Tab) Press(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// Click clicks the first element that a CSS selector finds, once it is there.
func (p *Tab) Click(selector string) {
	p.t.Helper()
	p.Await(selector)
	p.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Await waits until a CSS selector finds an element.
func (p *Tab) Await(selector string) {
	p.t.Helper()
	p.Until("document.querySelector(%s) !== null", selector)
}

// Until waits until an expression of JavaScript is true. Each %s is replaced by a value, as a
// literal.
func (p *Tab) Until(expression string, values ...string) {
	p.t.Helper()
	expression = with(expression, values)
	labtest.Eventually(p.t, patience, func() (bool, string) {
		// While a page loads, there may be nothing to ask.
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && is, fmt.Sprintf("%s is false, error %v, on\n%s", expression, err, p.seen())
	})
}

// AwaitText waits until the page shows every text.
func (p *Tab) AwaitText(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.Until("document.body && document.body.innerText.includes(%s)", text)
	}
}

// Text is what a reader sees of the page.
func (p *Tab) Text() string {
	p.t.Helper()
	return Eval[string](p, "document.body.innerText")
}

// HTML is the page as it is now.
func (p *Tab) HTML() string {
	p.t.Helper()
	return Eval[string](p, "document.documentElement.outerHTML")
}

// Picture is the window as a PNG file.
func (p *Tab) Picture() []byte {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}

// seen is the visible text of the page for a failure, as far as it can be asked for.
func (p *Tab) seen() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text[:min(len(text), 4000)]
}

// Eval is the value of an expression of JavaScript, or what its promise becomes. Each %s is replaced
// by a value, as a literal.
func Eval[T any](p *Tab, expression string, values ...string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](with(expression, values), chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// with replaces each %s by a value, as a literal of JavaScript.
func with(expression string, values []string) string {
	for _, value := range values {
		literal, err := json.Marshal(value)
		if err != nil {
			panic(err) // A text is always JSON.
		}
		expression = strings.Replace(expression, "%s", string(literal), 1)
	}
	return expression
}
