package ui

import (
	"context"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// sourceView is what the page of a ConfigMap or Secret shows.
type sourceView struct {
	ask.SourceExplanation

	Now     time.Time
	Shell   shell
	Actions actionsView
}

// sourcePage is what "lockstep explain" says about a ConfigMap or Secret. Only digests of its
// content reach the page.
func sourcePage(v *sourceView) node {
	hold := ask.HoldIn(v.Settings)
	return together(
		el("header", class("subject"),
			el("h1", "", text(v.Source), el("span", class("place"), text(" in namespace "+v.Namespace))),
			when(hold != nil, el("p", "", badge(ask.Held)))),
		actionAnswer(&v.Actions),
		section("state", "State",
			el("dl", "",
				fact("Written", text(v.WrittenWords(v.Now))),
				each(v.Owners, func(owner string) node { return fact("Owner", text(owner)) }),
				stopFacts(v.Stops, v.StoppedVersions, v.Now),
				spreadFacts(v.Spread),
				fact("Controller", text(v.Controller.Words(v.Now)))),
			notes(v.Notes)),
		v.users(),
		actionForms(&v.Actions),
		commandList(v.commands()),
		when(!v.Gone && v.Hidden == "", settingTable(v.Namespace, v.Settings)),
		eventTable("events", "Events", v.Events, v.Now),
	)
}

// users are the workloads that follow it, which version each of them has, and what those without
// the current one wait for.
func (v *sourceView) users() node {
	shown := v.Users[:min(len(v.Users), mostUsers)]
	if len(shown) == 0 {
		return section("users", "Followed by", el("p", class("note"), text(v.NoUsers())))
	}
	return section("users", "Followed by",
		table("Workloads that follow it", []string{"Workload", "State", "Delivered", "Current", "Why"}, each(shown, v.user)),
		rest(len(v.Users)-len(shown), "further workloads"))
}

func (v *sourceView) user(u ask.SourceUser) node {
	return row(
		cell("Workload", link(workloadAddress(v.Namespace, u.Workload), u.Workload)),
		cell("State", stateBadge(u.State, v.Controller)),
		cell("Delivered", digest(u.Delivered)),
		cell("Current", digestIn(v.NowWords(u), u.Current)),
		cell("Why", stateWords(u.State, v.Now)))
}

// commands are what a user can do about the source on a command line.
func (v *sourceView) commands() []offer {
	explain := append([]string{"explain", v.Source, "-n", v.Namespace}, v.Shell.own()...)
	offers := append([]offer{{"Explain which workloads follow it", v.Shell.lockstep(explain...)}}, v.Actions.offers()...)
	return append(append(offers, v.Shell.resume(v.Namespace, "", v.Stops, v.StoppedVersions)...), v.Shell.plan(v.Namespace))
}

// viewSource is the page of a ConfigMap or Secret.
func (s *Server) viewSource(ctx context.Context, r request) (page, error) {
	namespace := r.path["namespace"]
	id, err := input.ParseSource(r.path["kind"] + "/" + r.path["name"])
	if err != nil {
		return page{}, errNoPage
	}
	explained, err := s.answers.Source(ctx, namespace, id)
	if err != nil {
		return page{}, err
	}
	v := &sourceView{SourceExplanation: explained, Now: r.now, Shell: s.shell()}
	v.Actions = s.actions(&r, namespace, explained.Source, sourceAddress(namespace, explained.Source))
	if held := ask.HoldIn(explained.Settings) != nil; !explained.Gone {
		v.Actions.All = possible(sourceActions(namespace, explained.Source), held, held || explained.Hidden != "")
	}
	s.grants.check(ctx, v.Actions.All, func(*action) []access.Permission { return onObject(ofSources(id.Kind), namespace, id.Name) })
	return page{title: objectname.In(explained.Source, namespace), namespace: namespace, body: sourcePage(v)}, nil
}
