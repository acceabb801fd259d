package ui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

const (
	// fewInputs is how many inputs a row names; the others are counted.
	fewInputs = 2
	// barWidth is the width of the bar, and narrowest that of a part that would be too small to see.
	barWidth  = 1000
	narrowest = 8
)

// viewOverview lists all workloads.
func (s *Server) viewOverview(ctx context.Context, r request) (page, error) {
	known, err := s.board.get(ctx)
	if err != nil {
		return page{}, err
	}
	return page{title: "Workloads", ofBoard: true, body: overviewPage(known, filterOf(r.query), s.options.Scope.NoWorkload(), r.now)}, nil
}

// overviewPage is what "lockstep status" says, those workloads first that need somebody.
func overviewPage(known *snapshot, f filter, empty string, now time.Time) node {
	passed, counts := f.apply(known.entries)
	return together(
		el("h1", "", text("Workloads")),
		overviewNotes(known, now),
		groupBar(f, counts, known.Controller),
		filterForm(known, f),
		el("p", class("count")+attr("id", "count")+attr("role", "status"), text(countWords(len(passed), len(known.entries)))),
		overviewTable(known, f, passed, empty, now),
	)
}

// overviewNotes are about all workloads.
func overviewNotes(known *snapshot, now time.Time) node {
	c := known.Controller
	return together(
		when(c.State != ask.Running || c.Note != "", el("p", class("note controller")+attr("id", "controller"), text("Controller: "+c.Words(now)))),
		each(known.Stops, func(s ask.Stop) node { return el("p", class("note stopped"), text("Stopped: "+s.Words(now))) }),
		notes(known.Notes),
	)
}

func countWords(passed, all int) string {
	switch {
	case passed != all:
		return fmt.Sprintf("%s of %s workloads", thousands(passed), thousands(all))
	case all == 1:
		return "1 workload"
	}
	return thousands(all) + " workloads"
}

// thousands is a number as people read it: 5,000.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// groupBar is how many workloads are in which state. The picture repeats the list, so only the
// list is read out and reached by keyboard. It has colours only while the controller runs, as the
// states are for sure only then.
func groupBar(f filter, counts map[ask.Group]int, c ask.Controller) node {
	colour := func(g ask.Group) string {
		if c.State != ask.Running {
			return "unsure"
		}
		return groupClass(g)
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	at := 0
	parts := each(ask.Groups(), func(g ask.Group) node {
		if counts[g] == 0 {
			return ""
		}
		width := max(narrowest, counts[g]*barWidth/total)
		x := at
		at += width
		return el("a", attr("href", f.in(string(g)).address())+attr("tabindex", "-1"),
			el("rect", class(colour(g))+attr("x", strconv.Itoa(x))+attr("width", strconv.Itoa(width))+attr("height", "10"),
				el("title", "", text(thousands(counts[g])+" "+string(g)))))
	})
	items := each(ask.Groups(), func(g ask.Group) node {
		to, current := f.in(string(g)), attributes("")
		if f.state == string(g) {
			to, current = f.in(""), attr("aria-current", "true")
		}
		if counts[g] == 0 {
			current += class("none")
		}
		return el("li", "", el("a", current+attr("href", to.address()),
			el("span", class("dot "+colour(g)), ""), el("b", "", text(thousands(counts[g]))), text(" "+string(g))))
	})
	return el("nav", class("groups")+attr("aria-label", "Workloads by state"),
		el("svg", class("bar")+attr("viewBox", fmt.Sprintf("0 0 %d 10", max(1, at)))+attr("preserveAspectRatio", "none")+attr("aria-hidden", "true"), parts),
		el("ul", "", items))
}

// groupClass is the name of a group in the style.
func groupClass(g ask.Group) string { return strings.ReplaceAll(string(g), " ", "-") }

// filterForm works without a script too.
func filterForm(known *snapshot, f filter) node {
	return el("form", attr("id", "filter")+class("filter")+attr("method", "get")+attr("action", "/")+attr("role", "search")+attr("aria-label", "Filter workloads"),
		el("label", "", text("Filter"), void("input", attr("id", "q")+attr("type", "search")+attr("name", "q")+attr("value", f.text)+
			attr("placeholder", "name, namespace, state or source")+attr("autocomplete", "off")+attr("spellcheck", "false")+attr("maxlength", strconv.Itoa(longestFilter)))),
		el("label", "", text("Namespace"), choice("ns", "all", f.namespace, known.namespaces)),
		el("label", "", text("State"), choice("state", "all", f.state, groupNames())),
		el("label", "", text("Source"), void("input", attr("id", "source")+attr("type", "search")+attr("name", "source")+attr("value", f.source)+
			attr("list", "sources")+attr("placeholder", "configmap/…")+attr("autocomplete", "off")+attr("spellcheck", "false")+attr("maxlength", strconv.Itoa(longestFilter)))),
		el("datalist", attr("id", "sources"), each(known.sources, func(name string) node { return void("option", attr("value", name)) })),
		el("button", attr("type", "submit"), text("Filter")),
		when(!f.isEmpty(), el("a", class("reset")+attr("href", "/"), text("Show all states and namespaces"))),
	)
}

func groupNames() []string {
	var names []string
	for _, g := range ask.Groups() {
		names = append(names, string(g))
	}
	return names
}

// choice is a list to choose one of, or all.
func choice(name, all, chosen string, values []string) node {
	if chosen != "" && !slices.Contains(values, chosen) {
		values = append([]string{chosen}, values...)
	}
	option := func(value, words string) node {
		with := attr("value", value)
		if value == chosen {
			with += flag("selected")
		}
		return el("option", with, text(words))
	}
	return el("select", attr("id", name)+attr("name", name), option("", all), each(values, func(v string) node { return option(v, v) }))
}

// overviewTable has the workloads that pass; empty is why there are none at all.
func overviewTable(known *snapshot, f filter, passed []entry, empty string, now time.Time) node {
	switch {
	case len(known.entries) == 0:
		return el("p", class("empty"), text(empty))
	case len(passed) == 0:
		return el("p", class("empty"), text("No workload matches. "), link("/", "Show all"))
	}
	shown := f.shown(passed)
	columns := []string{"Workload", "Namespace", "State", "Since", "Oldest change", "Inputs"}
	return together(
		el("table", class("workloads"),
			el("caption", class("unseen"), text("Workloads, those that need attention first")),
			el("thead", "", el("tr", "", each(columns, func(name string) node { return el("th", attr("scope", "col"), text(name)) }))),
			el("tbody", "", each(shown, func(e entry) node { return overviewRow(e, known.Controller, now) }))),
		when(len(shown) < len(passed), more(f, len(shown), len(passed))),
	)
}

// more leads to the workloads that aren't shown.
func more(f filter, shown, passed int) node {
	if f.all {
		return el("p", class("more"), text(fmt.Sprintf("The first %s of %s workloads. Filter to see others.", thousands(shown), thousands(passed))))
	}
	f.all = true
	return el("p", class("more"), text("The first "+thousands(shown)+". "), link(f.address(), "Show all "+thousands(passed)))
}

func overviewRow(e entry, c ask.Controller, now time.Time) node {
	kind, name, _ := strings.Cut(e.Workload, "/")
	badge := "badge"
	if c.Vouches(e.State) {
		badge += " " + groupClass(e.group)
	}
	detail := e.State.Message
	if detail == "" && !e.State.IsSettled() {
		detail = e.State.Ends
	}
	return el("tr", attr("id", e.Namespace+"/"+e.Workload),
		el("th", attr("scope", "row"), link(workloadAddress(e.Namespace, e.Workload), name), el("small", "", text(kind))),
		el("td", "", text(e.Namespace)),
		el("td", "", el("span", class(badge), reason(e.State.Reason)), when(detail != "", el("small", "", text(detail+e.State.FromWords())))),
		el("td", "", since(e.State.Since, now)),
		el("td", "", since(e.State.PendingSince, now)),
		el("td", "", overviewInputs(e)),
	)
}

// since is an age, and the time for those who need it.
func since(t *time.Time, now time.Time) node {
	if t == nil {
		return text("–")
	}
	return el("time", attr("title", t.UTC().Format(time.RFC3339)), text(ask.Age(t, now)))
}

// overviewInputs names those that are not in step first.
func overviewInputs(e entry) node {
	all := slices.Clone(e.Inputs)
	sorting.By(all, func(a, b ask.InputStatus) int {
		switch {
		case a.InStep() == b.InStep():
			return 0
		case b.InStep():
			return -1
		}
		return 1
	})
	few := all[:min(len(all), fewInputs)]
	words := ""
	if n := len(all) - len(few); n > 0 {
		words = fmt.Sprintf("and %d more", n)
	}
	return together(
		each(few, func(i ask.InputStatus) node {
			versions := text(i.Delivered)
			if !i.InStep() {
				versions = together(text(i.Delivered), text(" → "), text(i.Current))
			}
			return el("div", "", inputLink(e.Namespace, i), text(" "), el("code", "", versions))
		}),
		when(words != "", el("small", "", text(words))))
}
