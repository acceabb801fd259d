package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockstep-dev/lockstep/bench/fleet"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// patience bounds each wait.
const patience = time.Minute

// pages is a running "lockstep ui" and a browser.
type pages struct {
	fleet   *fleet.Fleet
	command *process.Process
	// entrance is the address with the token.
	entrance *url.URL
	browser  *browser.Browser
}

// printed collects what the command prints.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// measure starts the command and a browser, and completes the result.
func measure(ctx context.Context, f *fleet.Fleet, r *Result) (err error) {
	path, err := exec.LookPath(browser.Chromium)
	if err != nil {
		return fmt.Errorf("%w; install it with: make packages", err)
	}
	p := &pages{fleet: f}
	if p.browser, err = browser.Start(ctx, path); err != nil {
		return err
	}
	defer p.browser.Close()
	r.Browser = version(ctx, path)
	began := time.Now()
	if err := p.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.command.Kill()) }()
	if err := p.awaitComplete(ctx); err != nil {
		return err
	}
	r.Start = int(time.Since(began).Milliseconds())
	if r.OverviewKiB, err = p.size(ctx, "/"); err != nil {
		return err
	}
	if r.AllKiB, err = p.size(ctx, "/?all=1"); err != nil {
		return err
	}
	for _, one := range []struct {
		what string
		do   func(context.Context) ([]time.Duration, error)
		into *Times
	}{{"load the overview", p.interactive, &r.Interactive}, {"filter", p.filter, &r.Filter}, {"see a change", p.live, &r.Live}} {
		took, err := one.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", one.what, err)
		}
		*one.into = times(took)
	}
	r.PeakMiB, err = p.peak()
	return err
}

func version(ctx context.Context, path string) string {
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	return strings.TrimSpace(string(out))
}

// start runs the command and reads the address that it prints.
func (p *pages) start(ctx context.Context) error {
	out := &printed{}
	var err error
	if p.command, err = process.Start(process.Spec{
		Path: p.fleet.Binary, Env: os.Environ(), Stdout: out, Stderr: out,
		Args: []string{"ui", "--no-open", "-A", "--kubeconfig", p.fleet.Plane.Kubeconfig(), "--controller-namespace", fleet.Own},
	}); err != nil {
		return err
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=[\w-]+`)
	return until(ctx, "the address", func() (bool, error) {
		found := address.FindString(out.String())
		if found == "" {
			return false, nil
		}
		p.entrance, err = url.Parse(found)
		return err == nil, err
	})
}

// until waits for a condition, in short steps.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: not within %s", what, patience))
	defer cancel()
	for {
		switch is, err := done(); {
		case err != nil:
			return err
		case is:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get is a page as it is sent, compressed.
func (p *pages) get(ctx context.Context, page string) ([]byte, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	var body []byte
	for _, address := range []string{p.entrance.String(), "http://" + p.entrance.Host + page} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept-Encoding", "gzip")
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		body, err = io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" {
			return nil, fmt.Errorf("%s: %s, encoding %q", page, response.Status, response.Header.Get("Content-Encoding"))
		}
	}
	return body, nil
}

func (p *pages) size(ctx context.Context, page string) (kib int, err error) {
	body, err := p.get(ctx, page)
	return (len(body) + 1023) / 1024, err
}

// awaitComplete waits until the overview knows all workloads and which of them wait.
func (p *pages) awaitComplete(ctx context.Context) error {
	tab, end := p.open(ctx)
	defer end()
	return until(ctx, "all workloads", func() (bool, error) {
		if err := chromedp.Do(tab, chromedp.Navigate(p.entrance.String())); err != nil {
			return false, err
		}
		text, err := chromedp.Run(tab, chromedp.Evaluate[string](`document.querySelector("main").innerText.replaceAll(",", "")`))
		return strings.Contains(text, strconv.Itoa(fleet.Workloads)) && strings.Contains(text, strconv.Itoa(fleet.Held)), err
	})
}

// open opens a tab, bounded like every wait.
func (p *pages) open(ctx context.Context) (context.Context, context.CancelFunc) {
	tab, end := p.browser.Tab()
	stop := context.AfterFunc(ctx, end)
	return tab, func() { stop(); end() }
}

// interactive loads the overview in new tabs, without a cache.
func (p *pages) interactive(ctx context.Context) ([]time.Duration, error) {
	var took []time.Duration
	for range runs {
		tab, end := p.open(ctx)
		ms, err := chromedp.Run(tab, func(ctx context.Context, t *chromedp.Target) (float64, error) {
			if _, err := chromedp.Navigate(p.entrance.String())(ctx, t); err != nil {
				return 0, err
			}
			return chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)(ctx, t)
		})
		end()
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(ms))
	}
	return took, nil
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// observe notes when a key was pressed, and when what it led to was painted: a frame is on its way
// to the screen when the next task runs after it.
const observe = `(() => {
	window.painted = []
	addEventListener("keydown", e => window.pressed = e.timeStamp, true)
	new MutationObserver(() => requestAnimationFrame(() => {
		const c = new MessageChannel()
		c.port1.onmessage = () => window.painted.push({at: performance.now(), clock: performance.timeOrigin + performance.now(), names: [...document.querySelectorAll("main tbody a[href^='/workload/']")].map(a => a.textContent)})
		c.port2.postMessage(0)
	})).observe(document.body, {subtree: true, childList: true, characterData: true})
	return true
})()`

// filter presses a key after "app-", so the table of all workloads becomes that of those whose
// number starts with the digit.
func (p *pages) filter(ctx context.Context) ([]time.Duration, error) {
	tab, end := p.open(ctx)
	defer end()
	if err := chromedp.Do(tab, chromedp.Navigate(p.entrance.String()), chromedp.Click(chromedp.CSS("input[name=q]")), chromedp.KeyEvent("app-")); err != nil {
		return nil, err
	}
	if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](observe)); err != nil {
		return nil, err
	}
	var took []time.Duration
	if err := chromedp.Do(tab, chromedp.KeyEvent("x"), chromedp.KeyEvent(kb.Backspace)); err != nil {
		return nil, err
	}
	for i := range runs {
		name := fmt.Sprint("app-", i+1)
		// The table of all workloads is painted, so a key press meets a page that rests.
		others := fmt.Sprintf(`+window.painted.some(p => p.names.some(n => !n.includes(%q)))`, name)
		if _, err := awaitNumber(ctx, tab, others); err != nil {
			return nil, err
		}
		if _, err := chromedp.Run(tab, chromedp.Evaluate[int]("window.painted.length = 0")); err != nil {
			return nil, err
		}
		if err := chromedp.Do(tab, chromedp.KeyEvent(name[len(name)-1:])); err != nil {
			return nil, err
		}
		ms, err := awaitNumber(ctx, tab, fmt.Sprintf(`(p => p ? p.at - window.pressed : 0)(window.painted.find(p => p.names.length && p.names.every(n => n.includes(%q))))`, name))
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(ms))
		if err := chromedp.Do(tab, chromedp.KeyEvent(kb.Backspace)); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// awaitNumber waits until an expression isn't 0.
func awaitNumber(ctx, tab context.Context, expression string) (float64, error) {
	var value float64
	err := until(ctx, expression, func() (bool, error) {
		var err error
		value, err = chromedp.Run(tab, chromedp.Evaluate[float64](expression))
		return value != 0, err
	})
	return value, err
}

// live creates workloads, and waits for the row of each on an open page that shows only them.
func (p *pages) live(ctx context.Context) ([]time.Duration, error) {
	tab, end := p.open(ctx)
	defer end()
	if err := chromedp.Do(tab, chromedp.Navigate(p.entrance.String()), chromedp.Navigate("http://"+p.entrance.Host+"/?q=newcomer")); err != nil {
		return nil, err
	}
	if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](observe)); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range runs {
		one := fleet.Deployment(i*10 + 1)
		one.Name = fmt.Sprint("newcomer-", i)
		if err := p.fleet.Client.Create(ctx, one); err != nil {
			return nil, err
		}
		created := float64(time.Now().UnixMicro()) / 1000
		clock, err := awaitNumber(ctx, tab, fmt.Sprintf(`window.painted.find(p => p.names.some(n => n.includes(%q)))?.clock || 0`, one.Name))
		if err != nil {
			return nil, err
		}
		took = append(took, max(0, milliseconds(clock-created)))
	}
	return took, nil
}

// peak is the most memory that the command has had.
func (p *pages) peak() (mib int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.ID().PID))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kib), " kB"))
			return n >> 10, err
		}
	}
	return 0, errors.New("the process has no peak memory")
}
