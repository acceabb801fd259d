// Package browser opens pages in a real headless Chromium, for tests and benchmarks of what
// people see.
//
// One process serves all tests of a package; each test has its own tab, cookies and cache. The
// browser reaches this machine only.
package browser

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Chromium is the program, as [labtest.Packages] names it.
const Chromium = "chromium"

// Elsewhere is a host name that leads to this machine, as that of an attacker can.
const Elsewhere = "attacker.example"

// Browser is a running Chromium.
type Browser struct {
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in its context.
	stop context.CancelFunc
	dir  string
}

// Start starts the Chromium at a path. It ends with [Browser.Close], with the context, and with
// this process.
func Start(ctx context.Context, path string) (*Browser, error) {
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return nil, err
	}
	allocated, end := chromedp.NewExecAllocator(ctx, options(path, dir)...)
	running, _ := chromedp.NewContext(allocated)
	b := &Browser{ctx: running, stop: end, dir: dir}
	if err := chromedp.Do(running); err != nil {
		b.Close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// options are the command line. Chromium refuses to run as root with its sandbox.
func options(path, dir string) []chromedp.ExecAllocatorOption {
	all := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(dir),
		chromedp.Flag("headless", "new"),
		chromedp.DisableGPU,
		// A test depends on nothing that isn't on this machine, and Chromium's own requests
		// for updates would wait for an answer where there is no network.
		chromedp.Flag("host-resolver-rules", "MAP "+Elsewhere+" 127.0.0.1, EXCLUDE localhost, EXCLUDE 127.0.0.1, MAP * ~NOTFOUND"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-pings", true),
	)
	if os.Geteuid() == 0 {
		all = append(all, chromedp.NoSandbox)
	}
	return all
}

// Close ends the browser and removes its files.
func (b *Browser) Close() {
	b.stop()
	_ = os.RemoveAll(b.dir)
}

// Tab opens a tab with its own cookies and cache, for chromedp. It ends with the function.
func (b *Browser) Tab() (context.Context, context.CancelFunc) {
	return chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
}

// shared is the browser of this test process.
//
//nolint:gochecknoglobals // What is shared by all tests of a process has to live somewhere in the process.
var shared struct {
	sync.Mutex

	browser *Browser
}

// Shared returns the browser of this test process, and starts it on first use. Without Chromium the
// test is skipped, in CI it fails.
func Shared(t testing.TB) *Browser {
	t.Helper()
	path := labtest.Want(t, Chromium)
	shared.Lock()
	defer shared.Unlock()
	if shared.browser == nil {
		b, err := Start(context.Background(), path) //nolint:forbidigo // Not a test's context: the browser outlives the first test.
		if err != nil {
			t.Fatal(err)
		}
		shared.browser = b
	}
	return shared.browser
}

// CloseShared ends the browser of this test process, for its TestMain.
func CloseShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.browser != nil {
		shared.browser.Close()
		shared.browser = nil
	}
}
