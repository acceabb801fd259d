package ui_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// mark is lost when a page is loaded again.
const mark = "window.sameDocument = true"

// same fails when the page was loaded again since the mark.
func (c *screen) same(t testing.TB) {
	t.Helper()
	if !browser.Eval[bool](c.Tab, "window.sameDocument === true") {
		t.Error("the page was loaded again")
	}
}

// TestLive: a change appears on the open page, which keeps its place, what was typed, and the focus.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const many = 40
	for i := range many {
		s.app(t, fmt.Sprintf("shop-%02d", i), held)
	}
	s.app(t, "other", auto)
	s.run(t)
	for i := range many {
		s.known(t, fmt.Sprintf("shop-%02d", i))
	}
	t.Run("Overview", func(t *testing.T) {
		t.Parallel()
		v := s.open(t)
		browser.Eval[bool](v.Tab, mark)
		v.Click("input[name=q]")
		v.Press("shop-")
		v.Until(`document.querySelectorAll("main tbody tr").length === %s * 1`, fmt.Sprint(many))
		v.Press(kb.ArrowLeft) // the cursor is inside of the text
		browser.Eval[bool](v.Tab, "scrollTo(0, 700), true")
		v.Until("scrollY === 700")
		s.touch(t, "shop-07")
		v.row("deployment/shop-07", string(input.Held), "release freeze")
		v.same(t)
		kept := browser.Eval[string](v.Tab, `[document.activeElement.name, document.activeElement.value, document.activeElement.selectionStart, scrollY].join()`)
		if kept != "q,shop-,4,700" {
			t.Errorf("focus, text, cursor and scroll position are %s", kept)
		}
		if first := v.rows()[0]; indexOf([]string{first}, "deployment/shop-07 ") < 0 {
			t.Errorf("trouble isn't first, but %s", first)
		}
		s.app(t, "shop-new", auto)
		v.row("deployment/shop-new")
		s.remove(t, "deployment/shop-new")
		v.Until(`!document.querySelector("main").innerText.includes("shop-new")`)
		v.same(t)
	})
	t.Run("Workload", func(t *testing.T) {
		t.Parallel()
		v := s.open(t)
		v.workload(s, "deployment/other")
		browser.Eval[bool](v.Tab, mark)
		v.Click("#reason-hold")
		v.Press("wait for")
		s.touch(t, "other")
		v.AwaitText("Revision 2")
		v.Press(" me") // it goes on where it was
		v.same(t)
		if typed := browser.Eval[string](v.Tab, `document.activeElement.id + "=" + document.activeElement.value`); typed != "reason-hold=wait for me" {
			t.Errorf("what was typed has become %s", typed)
		}
	})
}

// TestMissingNamespace: the overview of a namespace that doesn't exist says so, until it does.
func TestMissingNamespace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	later := *s.World
	later.Namespace = s.Namespace + "-typo"
	other := &stage{World: &later}
	v := other.open(t)
	says := "namespace " + other.Namespace + " doesn't exist"
	v.AwaitText(says)
	namespace(t, s, other.Namespace)
	other.app(t, "web", auto)
	v.row(web)
	v.Until(`!document.body.innerText.includes(%s)`, says)
}

// remove deletes an object.
func (s *stage) remove(t testing.TB, ref string) {
	t.Helper()
	o := testkit.Blank(t, ref)
	o.SetNamespace(s.Namespace)
	if err := s.Client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestFilters: the table shows what is asked for, by the keyboard alone, and the address keeps it.
func TestFilters(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, name := range []string{"web", "worker", "cache"} {
		s.app(t, name, auto)
	}
	s.app(t, "queue", held)
	s.run(t)
	s.known(t, "web", "worker", "cache", "queue")
	s.touch(t, "queue")
	s.AwaitRecord(t, "queue", string(input.Held))
	v := s.open(t)
	browser.Eval[bool](v.Tab, mark)
	all := []string{"deployment/web", "deployment/worker", "deployment/cache", "deployment/queue"}
	v.awaitRows(t, all...)

	v.tabTo(t, "q")
	v.Press("/W")
	v.awaitRows(t, "deployment/web", "deployment/worker")
	v.Press("orker")
	v.awaitRows(t, "deployment/worker")
	v.Until(`new URL(location).searchParams.get("q") === "/Worker"`)
	v.Press(kb.Escape)
	v.awaitRows(t, all...)
	if left := browser.Eval[string](v.Tab, `document.querySelector("input[name=q]").value + location.search`); left != "" {
		t.Errorf("Escape leaves %q", left)
	}
	v.Press("nothing like this")
	v.awaitRows(t)
	v.Press(kb.Escape)

	v.tabTo(t, "state")
	v.choose(t, "held")
	v.awaitRows(t, "deployment/queue")
	v.choose(t, "")
	v.awaitRows(t, all...)
	v.tabTo(t, "source")
	v.Press("configmap/cache")
	v.awaitRows(t, "deployment/cache")
	v.Press(kb.Escape) // the list of choices
	v.Press(kb.Escape)
	v.awaitRows(t, all...)
	v.same(t)

	// The same by address, as a link or without a script.
	for query, want := range map[string][]string{
		"/?q=/wor": {all[1]}, "/?state=held": {all[3]}, "/?ns=" + s.Namespace: all, "/?ns=elsewhere": nil,
		"/?source=configmap/web": {all[0]}, "/?q=/w&state=held": nil,
	} {
		v.visit(query)
		v.awaitRows(t, want...)
	}
	v.visit("/?q=/wor")
	if typed := browser.Eval[string](v.Tab, `document.querySelector("input[name=q]").value`); typed != "/wor" {
		t.Errorf("the field shows %q", typed)
	}
}

// tabTo moves the focus to a field, as far as the Tab key gets there.
func (c *screen) tabTo(t testing.TB, field string) {
	t.Helper()
	for range 100 {
		if browser.Eval[string](c.Tab, `document.activeElement.name || ""`) == field {
			return
		}
		c.Press(kb.Tab)
	}
	t.Fatalf("the Tab key doesn't reach %s", field)
}

// choose selects a value of the field that has the focus, by the arrow keys.
func (c *screen) choose(t testing.TB, value string) {
	t.Helper()
	for range 100 {
		at := browser.Eval[int](c.Tab, `(e => [...e.options].findIndex(o => o.value === %s) - e.selectedIndex)(document.activeElement)`, value)
		switch {
		case at == 0:
			return
		case at < 0:
			c.Press(kb.ArrowUp)
		default:
			c.Press(kb.ArrowDown)
		}
	}
	t.Fatalf("the arrow keys don't reach %q", value)
}

// TestTwoNamespaces: with all namespaces, each row says where it is, and they can be told apart.
func TestTwoNamespaces(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	other := *s.World
	other.Namespace = s.Own
	for _, one := range []*stage{s, {World: &other}} {
		one.app(t, "same", auto)
		one.Patch(t, testkit.Blank(t, "deployment/same"), "same", fmt.Sprintf(`{"metadata":{"labels":{"story":%q}}}`, s.Own))
	}
	v := s.open(t, "-A", "-l", "story="+s.Own)
	v.awaitRows(t, "deployment/same", "deployment/same")
	v.row("deployment/same", s.Namespace)
	v.row("deployment/same", s.Own)
	v.tabTo(t, "ns")
	v.choose(t, s.Own)
	v.awaitRows(t, "deployment/same")
	v.row("deployment/same", s.Own)
	v.Click(`main tbody a[href^="/workload/"]`)
	v.Until("location.pathname === %s", "/workload/"+s.Own+"/deployment/same")
	v.AwaitText(settings.Reload)
}
