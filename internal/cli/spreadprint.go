package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// printStopped writes what an operator stopped, and which versions failed.
func printStopped(to io.Writer, stops []ask.Stop, versions []ask.VersionStop, now time.Time) {
	for _, s := range stops {
		named(to, "Stopped:", "%s", stopWords(s, now))
	}
	for _, v := range versions {
		named(to, "Stopped:", "%s", versionStopWords(v, now))
	}
}

// printSpread writes how changes reach the workloads.
func printSpread(to io.Writer, spread []ask.Spreading) {
	for i, s := range spread {
		named(to, firstName(i, "Spread:"), "%s", spreadWords(s))
	}
}

// printStops writes what an operator stopped, for a list of workloads.
func printStops(to io.Writer, stops []ask.Stop, now time.Time) {
	for _, s := range stops {
		_ = say(to, "stopped: %s", stopWords(s, now))
	}
}

// stopWords describes an operator's stop.
func stopWords(s ask.Stop, now time.Time) string {
	what := extent{all: s.Namespace == "", namespace: s.Namespace}
	words := what.String()
	if s.Since != nil {
		words += ", for " + age(s.Since, now)
	}
	if s.Reason != "" {
		words += ": " + s.Reason
	}
	return words + fmt.Sprintf("; %q ends it", "lockstep resume "+what.flags())
}

// versionStopWords describes a version that failed.
func versionStopWords(v ask.VersionStop, now time.Time) string {
	words := strings.TrimSpace(v.Input+" "+v.Version) + " failed on " + strings.Join(v.FailedOn, ", ")
	if v.Since != nil {
		words += " " + age(v.Since, now) + " ago"
	}
	if v.Waiting > 0 {
		words += fmt.Sprintf("; workloads that keep an earlier version: %d", v.Waiting)
	}
	return words
}

// spreadWords describes how a change reaches the workloads.
func spreadWords(s ask.Spreading) string {
	words := fmt.Sprintf("%s: %d of %d healthy with it, %d rolling", s.Input, s.Healthy, s.Users, s.Rolling)
	details := strings.Join(s.RollingNow, ", ")
	if len(s.RollingNow) > 0 && s.Rolling > len(s.RollingNow) {
		details += " and others"
	}
	if s.AtMost > 0 {
		details = strings.TrimPrefix(fmt.Sprintf("%s; at most %d", details, s.AtMost), "; ")
	}
	if details != "" {
		words += " (" + details + ")"
	}
	words += fmt.Sprintf(", %d waiting", s.Waiting)
	if s.Place > 0 {
		words += fmt.Sprintf("; this one is number %d of %d in line", s.Place, s.InLine)
	}
	if s.Next != "" && s.Place != 1 {
		words += "; next is " + s.Next
	}
	return words
}

func windowWords(w ask.Window, now time.Time) string {
	state := "open"
	if w.Opens != nil {
		state = "closed, opens " + until(w.Opens, now) + " (" + w.Opens.UTC().Format(time.RFC3339) + ")"
	}
	return fmt.Sprintf("%s: %s, %s", state, w.Text, w.On)
}
