package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/commandline"
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
	named(to, "Controller:", "%s", e.Controller.Words(now))
	named(to, "State:", "%s", e.State.Words(now))
	if e.Meaning != "" {
		named(to, "", "%s", strings.ReplaceAll(e.Meaning, "`", ""))
	}
	if waiting := e.WaitingWords(now); waiting != "" {
		named(to, "Waiting:", "%s", waiting)
	}
	if e.Estimate != nil {
		named(to, "Estimate:", "%s", e.EstimateWords())
	}
	named(to, "Next:", "%s", e.NextWords(now))
	printStopped(to, e.Stops, e.StoppedVersions, now)
	printSpread(to, e.Spread)
	if e.Window != nil {
		named(to, "Window:", "%s", e.Window.Words(now))
	}
	printSettings(to, e.Settings)
	printNotes(to, e.Notes)
	printUses(to, e.Inputs, now)
	printReported(to, "WARNING", e.Warnings, now)
	printReported(to, "EVENT", lastEvents(e.Events, wide), now)
	return e.State
}

func (e workloadAnswer) objects() []listed {
	return listedOf(e.Inputs, func(u ask.Use) listed { return listed{e.Namespace, u.Input} })
}

// sourceAnswer is an explanation of a ConfigMap or Secret, for users.
type sourceAnswer struct{ ask.SourceExplanation }

func (e sourceAnswer) print(to *bytes.Buffer, now time.Time, wide bool) ask.Report {
	named(to, "Source:", "%s in namespace %s", e.Source, e.Namespace)
	named(to, "Controller:", "%s", e.Controller.Words(now))
	named(to, "Written:", "%s", e.WrittenWords(now))
	for i, owner := range e.Owners {
		named(to, firstName(i, "Owners:"), "%s", owner)
	}
	printStopped(to, e.Stops, e.StoppedVersions, now)
	printSpread(to, e.Spread)
	printSettings(to, e.Settings)
	printNotes(to, e.Notes)
	_, _ = fmt.Fprintln(to)
	if len(e.Users) == 0 {
		_, _ = fmt.Fprintln(to, e.NoUsers())
	} else {
		table := commandline.NewColumns(to, 3)
		table.Row("WORKLOAD", "STATE", "SINCE", "DELIVERED", "NOW")
		for _, u := range e.Users {
			state := u.State.Reason
			if u.State.From == ask.FromEstimate {
				state += " (an estimate)"
			}
			table.Row(u.Workload, state, ask.Age(u.State.Since, now), u.Delivered, e.NowWords(u))
		}
		_ = table.End()
	}
	printReported(to, "EVENT", lastEvents(e.Events, wide), now)
	return ask.Report{}
}

func (e sourceAnswer) objects() []listed {
	return listedOf(e.Users, func(u ask.SourceUser) listed { return listed{e.Namespace, u.Workload} })
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

func printUses(to io.Writer, uses []ask.Use, now time.Time) {
	if len(uses) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := commandline.NewColumns(to, 3)
	table.Row("INPUT", "DELIVERED", "NOW", "WRITTEN", "USED IN")
	for _, u := range uses {
		table.Row(u.Input, dashed(u.Delivered), u.NowWords(), u.WrittenWords(now), dashed(strings.Join(u.Places, "; ")))
	}
	_ = table.End()
}

func printReported(to io.Writer, what string, events []ask.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := commandline.NewColumns(to, 3)
	table.Row("AGE", "REASON", what)
	for _, e := range events {
		table.Row(ask.Age(&e.At, now), e.Reason, e.Note)
	}
	_ = table.End()
}
