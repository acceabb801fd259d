package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// named writes a line that starts with a name.
func named(to io.Writer, name, format string, args ...any) {
	_, _ = fmt.Fprintf(to, "%-12s %s\n", name, commandline.OneLine(fmt.Sprintf(format, args...)))
}

// workloadAnswer is an explanation of a workload, for users.
type workloadAnswer struct{ ask.Explanation }

func (e workloadAnswer) print(to *bytes.Buffer, now time.Time, wide bool) ask.Report {
	named(to, "Workload:", "%s in namespace %s", e.Workload, e.Namespace)
	named(to, "Controller:", "%s", strings.TrimPrefix(controllerWords(e.Controller, now), "controller: "))
	named(to, "State:", "%s", stateWords(e.State, now))
	if e.Meaning != "" {
		named(to, "", "%s", strings.ReplaceAll(e.Meaning, "`", ""))
	}
	if p := e.State.PendingSince; p != nil {
		named(to, "Waiting:", "the oldest change that is not delivered was seen %s ago", age(p, now))
	}
	next := e.State
	if e.Estimate != nil && e.State.Reason != ask.NotOnRecord {
		next = *e.Estimate
	}
	if e.Estimate != nil {
		named(to, "Estimate:", "%s: %s; the controller has not said so yet", e.Estimate.Reason, e.Estimate.Message)
	}
	named(to, "Next:", "%s", nextWords(next, e.Controller, now))
	printStopped(to, e.Stops, e.StoppedVersions, now)
	printSpread(to, e.Spread)
	if e.Window != nil {
		named(to, "Window:", "%s", windowWords(*e.Window, now))
	}
	printSettings(to, e.Settings)
	printNotes(to, e.Notes)
	printUses(to, e.Inputs, now)
	printReported(to, "WARNING", e.Warnings, now)
	printReported(to, "EVENT", lastEvents(e.Events, wide), now)
	return e.State
}

// sourceAnswer is an explanation of a ConfigMap or Secret, for users.
type sourceAnswer struct{ ask.SourceExplanation }

func (e sourceAnswer) print(to *bytes.Buffer, now time.Time, wide bool) ask.Report {
	named(to, "Source:", "%s in namespace %s", e.Source, e.Namespace)
	named(to, "Controller:", "%s", strings.TrimPrefix(controllerWords(e.Controller, now), "controller: "))
	changed := "not known"
	if e.ChangedBy != "" {
		changed = age(e.ChangedAt, now) + " ago by " + e.ChangedBy
	}
	named(to, "Changed:", "%s", changed)
	for i, owner := range e.Owners {
		named(to, firstName(i, "Owners:"), "%s", owner)
	}
	printStopped(to, e.Stops, e.StoppedVersions, now)
	printSpread(to, e.Spread)
	printSettings(to, e.Settings)
	printNotes(to, e.Notes)
	_, _ = fmt.Fprintln(to)
	switch {
	case len(e.Users) == 0 && e.RecordHidden:
		_, _ = fmt.Fprintln(to, "who follows it is "+ask.NotVisible)
	case len(e.Users) == 0:
		_, _ = fmt.Fprintln(to, "no workload on record follows it")
	default:
		table := commandline.NewColumns(to, 3)
		table.Row("WORKLOAD", "STATE", "SINCE", "GIVEN", "NOW")
		for _, u := range e.Users {
			table.Row(u.Workload, u.State.Reason, age(u.State.Since, now), u.Delivered, u.Current)
		}
		_ = table.End()
	}
	printReported(to, "EVENT", lastEvents(e.Events, wide), now)
	return ask.Report{}
}

// firstName is the name before the first of several lines.
func firstName(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

func printSettings(to io.Writer, all []ask.Setting) {
	for i, s := range all {
		named(to, firstName(i, "Settings:"), "%s: %s (on the %s)", s.Key, settings.Shorten(s.Value), s.On)
	}
}

func printNotes(to io.Writer, notes []string) {
	for _, note := range notes {
		named(to, "Note:", "%s", note)
	}
}

// lastEvents returns the newest events, or all.
func lastEvents(events []ask.Event, all bool) []ask.Event {
	if most := 5; len(events) > most && !all {
		return events[len(events)-most:]
	}
	return events
}

func stateWords(s ask.Report, now time.Time) string {
	words := s.Reason
	if s.Since != nil {
		words += " for " + age(s.Since, now)
	}
	if s.Message != "" {
		words += ": " + s.Message
	}
	switch s.From {
	case ask.FromEvent:
		words += " (from the newest event)"
	case ask.FromEstimate:
		words += " (an estimate: the controller has nothing on record of it, or the record is " + ask.NotVisible + ")"
	case ask.FromFlags:
		words += " (from the arguments of the controller's Deployment)"
	}
	return words
}

// nextWords explains what happens next and when, or what the user has to do.
func nextWords(s ask.Report, c ask.Controller, now time.Time) string {
	switch {
	case s.IsInStep():
		return "nothing, until an input changes"
	case c.State == ask.Down && s.Ends == "":
		return "nothing while the controller is down"
	case s.Reason == string(input.Reloaded) && s.From == ask.FromEstimate:
		return "the rollout, as soon as a controller looks"
	case c.State == ask.Down && s.Ends != "":
		return "nothing while the controller is down; it ends with " + s.Ends
	case s.Next != nil && !s.Next.After(now):
		return "the controller looks again at any moment; it ends with " + s.Ends
	case s.Next != nil:
		return "the controller looks again " + until(s.Next, now) + "; it ends with " + s.Ends
	case s.Ends != "":
		return "it ends with " + s.Ends
	}
	return "nothing is planned"
}

func printUses(to io.Writer, uses []ask.Use, now time.Time) {
	if len(uses) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := commandline.NewColumns(to, 3)
	table.Row("INPUT", "GIVEN", "NOW", "CHANGED", "USED IN")
	for _, u := range uses {
		changed := "-"
		if u.ChangedBy != "" {
			changed = age(u.ChangedAt, now) + " ago by " + u.ChangedBy
		}
		table.Row(u.Input, dashed(u.Delivered), useNow(u), changed, dashed(strings.Join(u.Places, "; ")))
	}
	_ = table.End()
}

// useNow is the current version of an input, and what blocks it.
func useNow(u ask.Use) string {
	words := dashed(u.Current)
	switch {
	case u.Hidden != "" && u.Current != "":
		words += " (on record; " + ask.NotVisible + ")"
	case u.Hidden != "":
		words = ask.NotVisible
	case !u.Followed:
		words = "not followed"
	}
	if u.Note != "" {
		words += " " + u.Note
	}
	return words
}

func printReported(to io.Writer, what string, events []ask.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := commandline.NewColumns(to, 3)
	table.Row("AGE", "REASON", what)
	for _, e := range events {
		table.Row(age(&e.At, now), e.Reason, e.Note)
	}
	_ = table.End()
}
