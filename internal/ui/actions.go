package ui

import (
	"net/url"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// The commands that a page runs.
const (
	verbHold    = "hold"
	verbRelease = "release"
	verbRoll    = "roll"
)

// longestReason is how many bytes a reason has: people read it in one line.
const longestReason = 500

// action is a command that a page offers to run, without its reason.
type action struct {
	Verb, Target, Namespace string
	// Use is what it is for, and Warning is what a user should know before.
	Use, Warning string
	// Overwrite replaces a hold that is there.
	Overwrite bool
	// Flags are the command's further flags.
	Flags []string
	// Missing are the permissions that it needs and the user lacks, and Unchecked is why they
	// aren't known.
	Missing   []access.Permission
	Unchecked string
	// Unkept are the permissions without which it works, and its reason is lost.
	Unkept []access.Permission
}

// lost says that the reason isn't kept, if it isn't.
func (a *action) lost() node {
	return when(len(a.Unkept) > 0, el("p", class("note"), text("Your reason can't be recorded: you lack permission to "+permissionList(a.Unkept)+".")))
}

// arguments is the command. A hold's reason is an argument of its own, which may start like a flag.
// One that may be read as an object has a flag.
func (a *action) arguments(reason string) []string {
	flags := append([]string{"-n", a.Namespace}, a.Flags...)
	if a.Overwrite {
		flags = append(flags, "--overwrite")
	}
	switch {
	case a.Verb != verbHold, strings.Contains(reason, "/"):
		return slices.Concat([]string{a.Verb, a.Target}, flags, []string{"--reason", reason})
	case strings.HasPrefix(reason, "-"):
		return slices.Concat([]string{a.Verb}, flags, []string{"--", a.Target, reason})
	}
	return slices.Concat([]string{a.Verb, a.Target, reason}, flags)
}

// example is the command with a place for the reason.
func (a *action) example() []string { return a.arguments("REASON") }

// workloadActions are those of a workload. A hold is the first and a release the second, as for a
// source.
func workloadActions(kind kube.Kind, namespace, target string, s shell) []action {
	flags := kindFlag(kind)
	return []action{
		{Verb: verbHold, Target: target, Namespace: namespace, Flags: flags, Use: "Hold its changes"},
		{Verb: verbRelease, Target: target, Namespace: namespace, Flags: flags, Use: "End its hold, and accept reverted changes"},
		{
			Verb: verbRoll, Target: target, Namespace: namespace, Flags: append(kindFlag(kind), s.ownKey()...),
			Use:     "Roll it out with the current versions of its inputs",
			Warning: "Its pods restart. The command first waits until its sources have been unchanged for the quiet window. If you leave the page before, it ends without a rollout.",
		},
	}
}

// sourceActions are those of a ConfigMap or Secret.
func sourceActions(namespace, target string) []action {
	return []action{
		{Verb: verbHold, Target: target, Namespace: namespace, Use: "Hold its changes"},
		{Verb: verbRelease, Target: target, Namespace: namespace, Use: "End its hold"},
	}
}

// possible are those of an object's actions that change something. The reason of a hold that is
// there is replaced only on request.
func possible(actions []action, held, releasable bool) []action {
	if held {
		actions[0].Use, actions[0].Overwrite = "Replace the reason of its hold", true
	}
	if !releasable {
		actions = append(actions[:1], actions[2:]...)
	}
	return actions
}

// actionsView is what a page offers to do, and how that went.
type actionsView struct {
	All []action
	// ReadOnly leaves only commands.
	ReadOnly bool
	Shell    shell
	// Address is the page.
	Address string
	// Asked is the action that waits for a confirmation, and Answer how the last one went.
	Asked  *asked
	Answer *answer
}

// offers are the actions as commands, with a place for the reason.
func (v *actionsView) offers() []offer {
	all := make([]offer, len(v.All))
	for i := range v.All {
		all[i] = offer{v.All[i].Use, v.Shell.lockstep(v.All[i].example()...)}
	}
	return all
}

// asked is an action that a user chose and has not confirmed.
type asked struct{ Verb, Reason string }

// askedIn reads the chosen action from the page's address; nil when there is none.
func askedIn(query url.Values) *asked {
	if !query.Has("do") {
		return nil
	}
	return &asked{Verb: query.Get("do"), Reason: cleanReason(query.Get("reason"))}
}

// cleanReason is a reason as the page shows it and the command gets it.
func cleanReason(reason string) string {
	return strings.TrimSpace(shown(reason))
}

// reasonProblem is what is wrong with a reason, empty when nothing is.
func reasonProblem(reason string) string {
	switch {
	case reason == "":
		return "Enter a reason for others who look for the cause."
	case len(reason) > longestReason:
		return "The reason is too long: it must fit on one line."
	}
	return ""
}

// answer is how an action went.
type answer struct {
	asked

	Target, Namespace string
	// Command is what ran, Output what it said, and Problem why it failed.
	Command, Output, Problem string
}

// actionAnswer is the top of the page while an action waits for a confirmation, or after it.
func actionAnswer(v *actionsView) node {
	return together(answerNote(v.Answer), confirmation(v))
}

func answerNote(a *answer) node {
	if a == nil {
		return ""
	}
	kind, heading, said := "done", "Ran: "+a.Verb+" "+a.Target, a.Output
	if a.Problem != "" {
		kind, heading, said = "failed", "Failed: "+a.Verb+" "+a.Target, a.Output+"\n"+a.Problem
	}
	return el("section", class("answer "+kind)+attr("id", "answer")+attr("role", "status"),
		el("h2", "", text(heading)),
		each(strings.Split(strings.TrimSpace(said), "\n"), func(line string) node { return when(line != "", el("p", "", text(line))) }),
		commandCode(a.Command))
}

// confirmation shows the command that runs, and asks once more.
func confirmation(v *actionsView) node {
	a := v.chosen()
	if a == nil || len(a.Missing) > 0 {
		return ""
	}
	problem := reasonProblem(v.Asked.Reason)
	if problem != "" {
		return el("section", class("answer failed")+attr("id", "answer")+attr("role", "alert"), el("p", "", text(problem)))
	}
	return el("dialog", class("confirm")+attr("id", "confirm")+flag("open")+attr("aria-labelledby", "confirm-heading"),
		el("h2", attr("id", "confirm-heading"), text("Run this command?")),
		commandCode(v.Shell.lockstep(a.arguments(v.Asked.Reason)...)),
		when(a.Warning != "", el("p", "", text(a.Warning))),
		a.lost(),
		el("form", attr("method", "post")+attr("action", "/do"),
			hidden("verb", a.Verb), hidden("target", a.Target), hidden("namespace", a.Namespace), hidden("reason", v.Asked.Reason),
			when(a.Overwrite, hidden("overwrite", "true")),
			el("button", attr("type", "submit")+flag("autofocus"), text("Yes, "+a.Verb)),
			text(" "), link(v.Address, "Cancel")))
}

// chosen is the action that waits for a confirmation, nil without one.
func (v *actionsView) chosen() *action {
	if v.Asked == nil || v.ReadOnly {
		return nil
	}
	for i := range v.All {
		if v.All[i].Verb == v.Asked.Verb {
			return &v.All[i]
		}
	}
	return nil
}

// actionForms are the forms for what the user may do, and the commands for the rest.
func actionForms(v *actionsView) node {
	if v.ReadOnly || len(v.All) == 0 {
		return ""
	}
	return section("actions", "Actions", each(v.All, v.form))
}

func (v *actionsView) form(a action) node {
	if len(a.Missing) > 0 {
		return el("div", class("action forbidden"),
			el("h3", "", text(a.Use)),
			el("p", class("note"), text("You lack permission to "+permissionList(a.Missing)+". The command is:")),
			commandCode(v.Shell.lockstep(a.example()...)))
	}
	field := "reason-" + a.Verb
	return el("form", class("action")+attr("id", "action-"+a.Verb)+attr("method", "get")+attr("action", v.Address),
		el("h3", "", text(a.Use)),
		hidden("do", a.Verb),
		el("label", attr("for", field), text("Reason")),
		void("input", attr("id", field)+attr("name", "reason")+attr("value", v.reason(a.Verb))+attr("maxlength", "500")+attr("autocomplete", "off")+flag("required")),
		el("button", attr("type", "submit"), text(capital(a.Verb)+" …")),
		a.lost(),
		when(a.Unchecked != "", el("p", class("note"), text("Your permission can't be checked: "+a.Unchecked))))
}

// reason is what the user has written: a command that failed is often repeated.
func (v *actionsView) reason(verb string) string {
	switch {
	case v.Asked != nil && v.Asked.Verb == verb:
		return v.Asked.Reason
	case v.Answer != nil && v.Answer.Verb == verb && v.Answer.Problem != "":
		return v.Answer.Reason
	}
	return ""
}

func hidden(name, value string) node {
	return void("input", attr("type", "hidden")+attr("name", name)+attr("value", value))
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func permissionList(all []access.Permission) string {
	words := make([]string, len(all))
	for i, permission := range all {
		words[i] = permission.String()
	}
	return strings.Join(words, ", ")
}
