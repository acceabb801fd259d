package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// workloadView is what the page of a workload shows.
type workloadView struct {
	ask.Explanation

	// History is nil when it can't be read.
	History *ask.History
	Kind    kube.Kind
	Now     time.Time
	Shell   shell
	Actions actionsView
}

// workloadPage is what "lockstep explain" and "lockstep history" say about a workload.
func workloadPage(v *workloadView) node {
	return together(
		el("header", class("subject"),
			el("h1", "", text(v.Workload), el("span", class("place"), text(" in namespace "+v.Namespace))),
			el("p", "", v.badges())),
		actionAnswer(&v.Actions),
		el("div", class("picture"), v.inputs(), v.state(), v.revisions()),
		actionForms(&v.Actions),
		commandList(v.commands()),
		settingTable(v.Namespace, v.Settings),
		eventTable("warnings", "Warnings", v.Warnings, v.Now),
		v.events(),
	)
}

// badges are the state, and the hold of a workload that has nothing to wait for yet.
func (v *workloadView) badges() node {
	state := v.NextReport()
	held := (v.OwnHold || ask.HoldIn(v.Settings) != nil) && state.Group() != ask.Held
	return together(when(held, together(badge(ask.Held), text(" "))), stateBadge(state, v.Controller))
}

// inputs are what was delivered, and what exists.
func (v *workloadView) inputs() node {
	if len(v.Inputs) == 0 {
		return section("inputs", "Inputs", el("p", "", text("It doesn't use anything that Lockstep can follow.")))
	}
	shown := v.Inputs[:min(len(v.Inputs), mostInputs)]
	return section("inputs", "Inputs",
		el("ul", "", each(shown, v.input)),
		rest(len(v.Inputs)-len(shown), "further inputs"))
}

func (v *workloadView) input(u ask.Use) node {
	group, words := v.Standing(&u)
	standing := groupClass(group)
	return el("li", class("input "+standing)+attr("id", "input-"+u.Input),
		el("h3", "", inputLink(v.Namespace, u.InputStatus), text(" "), el("span", class("badge "+standing), text(words))),
		el("dl", "",
			when(u.Followed, fact("Delivered", digest(u.Delivered))),
			fact("Current", digestIn(u.NowWords(), u.Current)),
			fact("Written", text(u.WrittenWords(v.Now))),
			factIf("Not visible", u.Hidden),
			factIf("Used in", strings.Join(u.Places, "; "))))
}

// state is the controller's decision and what comes next.
func (v *workloadView) state() node {
	return section("state", "State",
		el("dl", "",
			fact("State", stateWords(v.State, v.Now), when(v.Meaning != "", el("p", class("meaning"), text(strings.ReplaceAll(v.Meaning, "`", ""))))),
			factIf("Waiting", v.WaitingWords(v.Now)),
			v.estimate(),
			fact("Next", text(v.NextWords(v.Now))),
			stopFacts(v.Stops, v.StoppedVersions, v.Now),
			spreadFacts(v.Spread),
			v.window(),
			fact("Controller", text(v.Controller.Words(v.Now)))),
		notes(v.Notes))
}

func (v *workloadView) estimate() node {
	if v.Estimate == nil {
		return ""
	}
	return fact("Estimate", reason(v.Estimate.Reason), text(strings.TrimPrefix(v.EstimateWords(), v.Estimate.Reason)))
}

func (v *workloadView) window() node {
	if v.Window == nil {
		return ""
	}
	return fact("Window", text(v.Window.Words(v.Now)))
}

// events are Lockstep's and, where the history can be read, those of others.
func (v *workloadView) events() node {
	if v.History != nil && len(v.History.Events) > 0 {
		return eventTable("events", "Events", v.History.Events, v.Now)
	}
	return eventTable("events", "Events", v.Events, v.Now)
}

// commands are what a user can do about the workload on a command line.
func (v *workloadView) commands() []offer {
	command := func(verb string, flags ...string) string {
		return v.Shell.lockstep(slices.Concat([]string{verb, v.Workload, "-n", v.Namespace}, kindFlag(v.Kind), flags)...)
	}
	offers := []offer{
		{"Explain its state", command("explain", v.Shell.own()...)},
		{"List its revisions", command("history", "-o", "wide")},
	}
	offers = append(offers, v.Actions.offers()...)
	offers = append(offers,
		offer{"Roll it out at once, even while it is held", command(verbRoll, append(v.Shell.ownKey(), "--now")...)},
		offer{"Restart its pods even though it is in step", command(verbRoll, append(v.Shell.ownKey(), "--force")...)})
	if hold := ask.HoldIn(v.Settings); hold != nil && hold.On == "namespace" {
		offers = append(offers, offer{"End the hold of its namespace", v.Shell.lockstep(verbRelease, "namespace/"+v.Namespace)})
	}
	for _, u := range v.Inputs {
		if u.Held {
			offers = append(offers, offer{"End the hold of " + u.Input, v.Shell.lockstep(verbRelease, u.Input, "-n", v.Namespace)})
		}
	}
	offers = append(offers, v.Shell.resume(v.Namespace, v.Workload, v.Stops, v.StoppedVersions)...)
	if hasUndo(v.Kind) {
		offers = append(offers, offer{"Go back to the previous revision", v.Shell.kubectl("rollout", "undo", v.Workload, "-n", v.Namespace)})
	}
	return append(offers, v.Shell.plan(v.Namespace))
}

// kindFlag describes a custom kind to a command.
func kindFlag(kind kube.Kind) []string {
	if kind.Row == nil || !kind.Custom {
		return nil
	}
	return []string{"--kind", kind.String()}
}

// hasUndo reports whether "kubectl rollout undo" knows the kind.
func hasUndo(kind kube.Kind) bool {
	for _, known := range []kube.Kind{kube.Deployment(), kube.StatefulSet(), kube.DaemonSet()} {
		if kind.Row != nil && kind.GroupKind() == known.GroupKind() {
			return true
		}
	}
	return false
}

// viewWorkload is the page of a workload.
func (s *Server) viewWorkload(ctx context.Context, r request) (page, error) {
	namespace := r.path["namespace"]
	kind, known := s.kindNamed(ctx, r.path["kind"])
	if !known {
		return page{}, errNoPage
	}
	at := client.ObjectKey{Namespace: namespace, Name: r.path["name"]}
	explained, err := s.answers.Workload(ctx, kind, at)
	if err != nil {
		return page{}, err
	}
	v := &workloadView{Explanation: explained, Kind: kind, Now: r.now, Shell: s.shell()}
	switch history, err := s.answers.History(ctx, kind, at); {
	case ctx.Err() != nil:
		return page{}, ctx.Err()
	case err != nil:
		v.Notes = append(slices.Clone(v.Notes), "revisions cannot be read: "+err.Error())
	default:
		v.History = &history
	}
	v.Actions = s.actions(&r, namespace, explained.Workload, workloadAddress(namespace, explained.Workload))
	v.Actions.All = possible(workloadActions(kind, namespace, explained.Workload, v.Shell), explained.OwnHold, explained.IsReleasable())
	s.grants.check(ctx, v.Actions.All, func(a *action) []access.Permission {
		if a.Verb == verbRoll {
			return toRoll(kind, &explained, s.options.Reader.Own)
		}
		return onObject(access.ToKind(kind, access.Permission{}), namespace, at.Name)
	})
	return page{title: objectname.In(explained.Workload, namespace), namespace: namespace, body: workloadPage(v)}, nil
}
