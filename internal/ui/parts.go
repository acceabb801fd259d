package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// How much of a list is shown. The rest is counted.
const (
	mostEvents    = 50
	mostRevisions = 20
	mostUsers     = 500
	mostInputs    = 500
)

// section is a part of a page with a heading; its name is its class and its id.
func section(name, heading string, children ...node) node {
	return el("section", attr("id", name)+class(name)+attr("aria-labelledby", name+"-heading"),
		el("h2", attr("id", name+"-heading"), text(heading)), together(children...))
}

// fact is a line of a list of facts.
func fact(name string, value ...node) node {
	return together(el("dt", "", text(name)), el("dd", "", value...))
}

// factIf is a fact, unless it is empty.
func factIf(name, value string) node { return when(value != "", fact(name, text(value))) }

// badge is a state in one or two words, with its colour.
func badge(group ask.Group) node {
	return el("span", class("badge "+groupClass(group)), text(string(group)))
}

// stateBadge is the badge of a state. What the controller doesn't vouch for has no colour.
func stateBadge(s ask.Report, c ask.Controller) node {
	if !c.Vouches(s) {
		return el("span", class("badge"), text(c.GroupWords(s)))
	}
	return badge(s.Group())
}

// reason is a reason with a link to its description.
func reason(word string) node {
	if address := ask.Reference(word); address != "" {
		return el("a", attr("href", address)+attr("rel", "noreferrer"), text(word))
	}
	return text(word)
}

// stateWords are the words of a state, whose reason is a link.
func stateWords(s ask.Report, now time.Time) node {
	return together(reason(s.Reason), text(strings.TrimPrefix(s.Words(now), s.Reason)))
}

// digest is a version of an input.
func digest(version string) node {
	if version == "" {
		return text("-")
	}
	return el("code", class("digest"), text(version))
}

// digestIn is a text that may start with a version.
func digestIn(words, version string) node {
	after, starts := strings.CutPrefix(words, version)
	if version == "" || !starts {
		return text(words)
	}
	return together(digest(version), text(after))
}

// moment is a time as an age, with the time itself for those who need it.
func moment(t *time.Time, now time.Time) node {
	if t == nil {
		return text("not known")
	}
	at := t.UTC().Format(time.RFC3339)
	return el("time", attr("datetime", at)+attr("title", at), text(ask.Age(t, now)+" ago"))
}

// notes list what isn't shown, and why.
func notes(all []string) node {
	return each(all, func(note string) node { return el("p", class("note"), text(note)) })
}

// workloadAddress is the page of a workload: "deployment/web".
func workloadAddress(namespace, workload string) string {
	kind, name, _ := strings.Cut(workload, "/")
	return "/workload/" + url.PathEscape(namespace) + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
}

// sourceAddress is the page of a ConfigMap or Secret: "configmap/app".
func sourceAddress(namespace, source string) string {
	kind, name, _ := strings.Cut(source, "/")
	return "/source/" + url.PathEscape(namespace) + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
}

// imageAddress is the page of the image that an annotation names.
func imageAddress(namespace, image, annotation string) string {
	return "/image/" + url.PathEscape(namespace) + "?ref=" + url.QueryEscape(image) + "&annotation=" + url.QueryEscape(annotation)
}

// inputLink is an input with a link to its page, if it has one.
func inputLink(namespace string, i ask.InputStatus) node {
	id, err := input.ParseID(i.Input)
	switch {
	case err == nil && id.IsSource():
		return link(sourceAddress(namespace, i.Input), i.Input)
	case i.Image != "":
		return link(imageAddress(namespace, i.Image, settings.ImagePrefix+id.Name), i.Input)
	}
	return text(i.Input)
}

func link(address, words string) node { return el("a", attr("href", address), text(words)) }

// stopFacts are what an operator stopped, and which versions failed.
func stopFacts(stops []ask.Stop, versions []ask.VersionStop, now time.Time) node {
	return together(
		each(stops, func(s ask.Stop) node { return fact("Stopped", text(s.Words(now))) }),
		each(versions, func(v ask.VersionStop) node { return fact("Stopped", text(v.Words(now))) }))
}

// spreadFacts are how changes reach the workloads.
func spreadFacts(all []ask.Spreading) node {
	return each(all, func(s ask.Spreading) node { return fact("Spread", text(s.Words())) })
}

// eventTable lists events, the newest first.
func eventTable(name, heading string, all []ask.Event, now time.Time) node {
	if len(all) == 0 {
		return ""
	}
	shown := slices.Clone(all[max(0, len(all)-mostEvents):])
	slices.Reverse(shown)
	return section(name, heading,
		table(heading, []string{"When", "Reason", "Event", "By"}, each(shown, func(e ask.Event) node {
			return row(cell("When", moment(&e.At, now)), cell("Reason", reason(e.Reason)), cell("Event", text(e.Note)), cell("By", text(dashed(e.By))))
		})),
		when(len(shown) < len(all), el("p", class("note"), text("Older events aren't shown."))))
}

// settingTable lists annotations and where they are.
func settingTable(namespace string, all []ask.Setting) node {
	if len(all) == 0 {
		return section("settings", "Settings", el("p", "", text("No Lockstep annotation is set here, so the controller's flags and defaults apply.")))
	}
	return section("settings", "Settings", table("Settings", []string{"Setting", "Value", "Set on"}, each(all, func(s ask.Setting) node {
		value := text(settings.Shorten(s.Value))
		if strings.HasPrefix(s.Key, settings.ImagePrefix) {
			value = el("a", attr("href", imageAddress(namespace, s.Value, s.Key)), value)
		}
		return row(cell("Setting", el("code", "", text(s.Key))), cell("Value", value), cell("Set on", text("the "+s.On)))
	})))
}

// table has a caption for those who don't see its heading.
func table(caption string, columns []string, rows node) node {
	return el("table", "",
		el("caption", class("unseen"), text(caption)),
		el("thead", "", el("tr", "", each(columns, func(name string) node { return el("th", attr("scope", "col"), text(name)) }))),
		el("tbody", "", rows))
}

func row(cells ...node) node { return el("tr", "", cells...) }

// cell repeats the name of its column, for a screen that is too narrow for columns.
func cell(column string, content ...node) node {
	return el("td", attr("data-label", column), content...)
}

// rest counts what a list doesn't show.
func rest(more int, what string) node {
	return when(more > 0, el("p", class("note"), text(fmt.Sprintf("%d %s aren't shown.", more, what))))
}

func dashed(words string) string {
	if words == "" {
		return "-"
	}
	return words
}
