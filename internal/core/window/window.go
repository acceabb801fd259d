// Package window knows when a maintenance window is open.
package window

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// Always is the window that is open at any time.
	Always = "always"
	// Example is a window for error messages.
	Example = "0 2 * * 1-5 2h Europe/Berlin"

	most    = 8
	longest = 31 * 24 * time.Hour
	// cronFields are those of a cron expression, which begins with the minute and has no seconds.
	cronFields = 5
)

// Window is a list of spans that repeat. The zero value is always open.
type Window struct{ spans []span }

// span begins by a schedule that counts on the clocks of a zone, and takes a fixed time.
type span struct {
	begins *cron.SpecSchedule
	takes  time.Duration
	zone   *time.Location
}

// Parse reads "0 2 * * 1-5 2h Europe/Berlin; 0 0 * * 6 24h": five cron fields, a duration and a time zone (UTC without one), up to eight
// of them; or "always".
func Parse(text string) (Window, error) {
	if strings.TrimSpace(text) == Always {
		return Window{}, nil
	}
	parts := strings.Split(text, ";")
	if len(parts) > most {
		return Window{}, fmt.Errorf("it lists %d windows, and at most %d are allowed", len(parts), most)
	}
	var w Window
	for _, part := range parts {
		s, err := parseSpan(part)
		if err != nil {
			return Window{}, err
		}
		w.spans = append(w.spans, s)
	}
	return w, nil
}

func parseSpan(text string) (span, error) {
	fields := strings.Fields(text)
	if len(fields) != cronFields+1 && len(fields) != cronFields+2 {
		return span{}, fmt.Errorf("%q has %d fields: write five fields of a cron expression, a duration and a time zone (UTC without one), such as %s, or %s alone",
			strings.TrimSpace(text), len(fields), Example, Always)
	}
	begins, err := parseCron(fields[:cronFields])
	if err != nil {
		return span{}, fmt.Errorf("the cron expression %q: %w; its fields are minute, hour, day of month, month and day of week (0-6, 0 is Sunday), such as 0 2 * * 1-5",
			strings.Join(fields[:cronFields], " "), err)
	}
	takes, err := time.ParseDuration(fields[cronFields])
	if err != nil || takes <= 0 || takes > longest {
		return span{}, fmt.Errorf("%q isn't a duration between 1s and 744h (31 days), such as 2h or 90m", fields[cronFields])
	}
	zone := time.UTC
	if len(fields) > cronFields+1 {
		name := fields[cronFields+1]
		if zone, err = time.LoadLocation(name); err != nil || zone == time.Local {
			return span{}, fmt.Errorf("%q isn't a known time zone, such as Europe/Berlin: the controller's image contains all of them; elsewhere, the program reads the machine's "+
				"/usr/share/zoneinfo, and knows only UTC if that is missing", name)
		}
	}
	return span{begins: begins, takes: takes, zone: zone}, nil
}

// parseCron hands only fields to the library: it panics on a time zone without a space after it.
func parseCron(fields []string) (*cron.SpecSchedule, error) {
	for _, field := range fields {
		if strings.ContainsAny(field, "=@") {
			return nil, fmt.Errorf("%q isn't a number, a range, a list or *", field)
		}
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, err
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok || schedule.Minute == 0 || schedule.Hour == 0 || schedule.Dom == 0 || schedule.Month == 0 || schedule.Dow == 0 {
		return nil, errors.New("one of its lists is empty")
	}
	schedule.Location = time.UTC // Clocks are converted here: the library skips a day on which the hour doesn't exist.
	if schedule.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, errors.New("no month has that day, so it never begins")
	}
	return schedule, nil
}

// Open reports whether the window is open, and otherwise when it opens next.
func (w Window) Open(now time.Time) (open bool, opens time.Time) {
	for _, s := range w.spans {
		begin := s.next(now.Add(-s.takes))
		if !begin.After(now) {
			return true, time.Time{}
		}
		if opens.IsZero() || begin.Before(opens) {
			opens = begin
		}
	}
	return len(w.spans) == 0, opens
}

// next is the first beginning after a moment.
func (s span) next(after time.Time) time.Time {
	local := after.In(s.zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	for {
		wall = s.begins.Next(wall)
		if wall.IsZero() { // The library looks five years ahead, and from 2096 to 2104 there is no 29 February.
			return after.AddDate(5, 0, 0)
		}
		if begin := moment(wall, s.zone); begin.After(after) {
			return begin
		}
	}
}

// moment is when the clocks of a zone show a time, which is given as if it were UTC. If they show it twice, it is the first moment,
// and if they skip it, the moment at which they do.
func moment(wall time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour
	var change time.Time
	for _, near := range []time.Duration{-day, day} { // as the clocks are set before and after a change near that time
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, shown := at.Zone(); shown == offset {
			return at
		}
		if change.IsZero() {
			change, _ = at.ZoneBounds()
		}
	}
	return change
}
