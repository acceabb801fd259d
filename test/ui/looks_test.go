package ui_test

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"image/png"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
)

// axe is axe-core 4.14.0 of npm, which finds what people can't use who don't see or don't use a
// mouse. Its licence is beside it.
//
//go:embed testdata/axe.min.js
var axe string

// TestAxe: the vendored file is what npm has, unchanged.
func TestAxe(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(axe))
	if got := hex.EncodeToString(sum[:]); got != "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878" {
		t.Errorf("testdata/axe.min.js has the SHA-256 %s", got)
	}
}

// findings are what axe says of a page.
type findings struct {
	Passed     int
	Violations []struct {
		Rule, Impact, Help string
		Where              []string
	}
}

const runAxe = `axe.run({resultTypes: ["violations"]}).then(r => ({Passed: r.passes.length, Violations: r.violations.map(v => ({
	Rule: v.id, Impact: v.impact, Help: v.help, Where: v.nodes.map(n => n.target.join(" ") + ": " + n.failureSummary)}))}))`

// checkAccessible: axe finds nothing serious on a page, light and dark, and the page fits every screen.
func checkAccessible(t *testing.T, site *site, page string) {
	t.Helper()
	v := &screen{Tab: browser.Open(t), site: site}
	v.Go(site.entrance.String())
	for _, scheme := range []string{"light", "dark"} {
		v.Scheme(scheme)
		v.visit(page)
		v.Until(`!document.body.classList.contains("gone")`)
		browser.Eval[bool](v.Tab, axe+"; true")
		found := browser.Eval[findings](v.Tab, runAxe)
		if found.Passed < 10 {
			t.Errorf("%s, %s: only %d rules of axe are about this page", page, scheme, found.Passed)
		}
		for _, f := range found.Violations {
			if f.Impact == "serious" || f.Impact == "critical" {
				t.Errorf("%s, %s: %s (%s, %s): %q", page, scheme, f.Help, f.Rule, f.Impact, f.Where)
			}
		}
	}
	v.checkFits(t, page)
}

// checkFits: on no screen has the page to be scrolled sideways, and no cell runs into the next one.
func (c *screen) checkFits(t *testing.T, page string) {
	t.Helper()
	for _, width := range []int64{390, 800, 950, 1280} {
		c.Size(width, 800)
		wider := browser.Eval[[]string](c.Tab, `[...document.querySelectorAll("body *")].filter(e => !e.closest("thead, caption") && (e.getBoundingClientRect().right > innerWidth + 1 || e.matches("td, th") && e.scrollWidth > e.clientWidth)).slice(0, 5).map(e => e.outerHTML.slice(0, 200))`)
		if wide := browser.Eval[int64](c.Tab, "document.documentElement.scrollWidth"); wide > width || len(wider) > 0 {
			t.Errorf("%s is %d pixels wide on a screen of %d: %q", page, wide, width, wider)
		}
	}
}

// checkPicture: a picture has the size of the window, shows more than one colour, and its
// background is as dark as the user wants it.
func checkPicture(t *testing.T, name string, picture []byte, dark bool) {
	t.Helper()
	got, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if size := got.Bounds().Size(); size.X != 1280 || size.Y != 800 {
		t.Errorf("%s is %v", name, size)
	}
	colours := map[[3]uint32]int{}
	for x := 0; x < got.Bounds().Dx(); x += 4 {
		for y := 0; y < got.Bounds().Dy(); y += 4 {
			r, g, b, _ := got.At(x, y).RGBA()
			colours[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	var background [3]uint32
	for colour, times := range colours {
		if times > colours[background] {
			background = colour
		}
	}
	if isDark := background[0]+background[1]+background[2] < 3*128; len(colours) < 10 || isDark != dark {
		t.Errorf("%s has %d colours, mostly %v", name, len(colours), background)
	}
}
