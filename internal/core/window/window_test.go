package window_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/window"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestOpen(t *testing.T) {
	t.Parallel()
	const night = "0 2 * * 1-5 2h Europe/Berlin"
	for name, c := range map[string]struct {
		reason, window, now, opens string // opens is empty when it is open
	}{
		"Always":         {reason: "no restriction", window: " always ", now: "2026-11-17T12:00:00Z"},
		"Before":         {reason: "Tuesday 01:59 in Berlin", window: night, now: "2026-11-17T00:59:00Z", opens: "2026-11-17T02:00:00+01:00"},
		"Begin":          {reason: "the first moment belongs to it", window: night, now: "2026-11-17T01:00:00Z"},
		"JustBefore":     {reason: "no moment earlier", window: night, now: "2026-11-17T00:59:59.999999999Z", opens: "2026-11-17T01:00:00Z"},
		"JustBeforeEnd":  {reason: "it lasts for all of two hours", window: night, now: "2026-11-17T02:59:59.999999999Z"},
		"End":            {reason: "two hours are over", window: night, now: "2026-11-17T03:00:00Z", opens: "2026-11-18T01:00:00Z"},
		"Weekend":        {reason: "Friday after the window: Monday is next", window: night, now: "2026-11-20T03:00:00Z", opens: "2026-11-23T01:00:00Z"},
		"UTC":            {reason: "no zone", window: "30 4 * * * 1h", now: "2026-11-17T05:00:00Z"},
		"Zone":           {reason: "a zone with half an hour", window: "0 2 * * * 1h Asia/Kolkata", now: "2026-11-17T20:00:00Z", opens: "2026-11-18T02:00:00+05:30"},
		"OverMidnight":   {reason: "it began on Saturday", window: "0 22 * * 6 6h", now: "2026-11-22T03:30:00Z"},
		"Names":          {reason: "names of days and months, in any case", window: "0 0 * NOV tue 24h", now: "2026-11-17T12:00:00Z"},
		"Month":          {reason: "days of the month or of the week, as cron has it", window: "0 0 1 * 1 1h", now: "2026-11-17T12:00:00Z", opens: "2026-11-23T00:00:00Z"},
		"LeapDay":        {reason: "in two years", window: "0 0 29 2 * 1h", now: "2026-11-17T12:00:00Z", opens: "2028-02-29T00:00:00Z"},
		"FarLeapDay":     {reason: "2100 has none: it is looked for again", window: "0 0 29 2 * 1h", now: "2097-01-01T00:00:00Z", opens: "2101-12-31T23:00:00Z"},
		"Overlapping":    {reason: "it begins again before it ends", window: "*/5 * * * * 10m", now: "2026-11-17T12:04:59Z"},
		"SeveralOpen":    {reason: "one of them is open", window: night + "; 0 12 * * * 1h ", now: "2026-11-17T12:30:00Z"},
		"SeveralClosed":  {reason: "the earliest one", window: "0 20 * * * 1h; 0 18 * * * 1h; 0 19 * * * 1h", now: "2026-11-17T12:30:00Z", opens: "2026-11-17T18:00:00Z"},
		"LongerThanSpan": {reason: "a month of a window that begins each day", window: "0 0 * * * 744h", now: "2026-11-17T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, c.window, c.now, c.opens, c.reason)
		})
	}
}

func check(t *testing.T, text, now, opens, reason string) {
	t.Helper()
	w, err := window.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	open, next := w.Open(at(t, now))
	if open != (opens == "") || opens != "" && !next.Equal(at(t, opens)) {
		t.Errorf("%s: %q at %s is open: %t, opens at %s, want %q", reason, text, now, open, next.UTC().Format(time.RFC3339), opens)
	}
}

// The clocks of Berlin jump from 02:00 to 03:00 on 29 March 2026, and go back from 03:00 to 02:00 on 25 October. Those of New York do so
// on 8 March and 1 November, and those of Lord Howe Island jump by half an hour. Many windows are on a Sunday at two.
func TestClocksThatChange(t *testing.T) {
	t.Parallel()
	const sunday, half = "0 2 * * 0 2h Europe/Berlin", "30 2 * * * 1h Europe/Berlin"
	for name, c := range map[string]struct {
		reason, window, now, opens string
	}{
		"SpringBefore":     {reason: "02:00 is skipped: it opens when the clocks jump", window: sunday, now: "2026-03-29T00:59:59Z", opens: "2026-03-29T01:00:00Z"},
		"SpringOpen":       {reason: "03:30 in summer is half an hour later", window: sunday, now: "2026-03-29T01:30:00Z"},
		"SpringEnd":        {reason: "its duration is that of a stopwatch", window: sunday, now: "2026-03-29T03:00:00Z", opens: "2026-04-05T00:00:00Z"},
		"SpringInside":     {reason: "02:30 is skipped too", window: half, now: "2026-03-28T12:00:00Z", opens: "2026-03-29T01:00:00Z"},
		"SpringAcross":     {reason: "four hours from 01:00 to 06:00", window: "0 1 * * 0 4h Europe/Berlin", now: "2026-03-29T03:59:59Z"},
		"SpringAcrossEnd":  {reason: "and no longer", window: "0 1 * * 0 4h Europe/Berlin", now: "2026-03-29T04:00:00Z", opens: "2026-04-04T23:00:00Z"},
		"SpringNewYork":    {reason: "west of Greenwich", window: "30 2 * * 0 1h America/New_York", now: "2026-03-08T06:00:00Z", opens: "2026-03-08T07:00:00Z"},
		"SpringLordHowe":   {reason: "02:15 is skipped", window: "15 2 * * 0 1h Australia/Lord_Howe", now: "2026-10-03T12:00:00Z", opens: "2026-10-03T15:30:00Z"},
		"AutumnFirst":      {reason: "02:30 comes twice: the first counts", window: half, now: "2026-10-24T12:00:00Z", opens: "2026-10-25T00:30:00Z"},
		"AutumnOpen":       {reason: "02:10 for the second time, 40 minutes later", window: half, now: "2026-10-25T01:10:00Z"},
		"AutumnNotTwice":   {reason: "02:30 for the second time: it was open", window: half, now: "2026-10-25T01:30:00Z", opens: "2026-10-26T01:30:00Z"},
		"AutumnNewYork":    {reason: "west of Greenwich, 01:30 twice", window: "30 1 * * * 1h America/New_York", now: "2026-11-01T04:00:00Z", opens: "2026-11-01T05:30:00Z"},
		"AutumnNewYorkTwo": {reason: "01:40 for the second time", window: "30 1 * * * 1h America/New_York", now: "2026-11-01T06:40:00Z", opens: "2026-11-02T06:30:00Z"},
		"MidnightSkipped":  {reason: "Beirut skips midnight", window: "0 0 * * * 1h Asia/Beirut", now: "2026-03-28T12:00:00Z", opens: "2026-03-28T22:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, c.window, c.now, c.opens, c.reason)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const fields, lists = `fields: write five fields of a cron expression, a duration and a time zone (UTC without one), such as 0 2 * * 1-5 2h Europe/Berlin, or always alone`,
		`its fields are minute, hour, day of month, month and day of week (0-6, 0 is Sunday), such as 0 2 * * 1-5`
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Empty":         {"nothing", " ", []string{`"" has 0 ` + fields}},
		"NoDuration":    {"a cron expression alone", "0 2 * * 1-5", []string{`"0 2 * * 1-5" has 5 ` + fields}},
		"TooMany":       {"a zone of two words", "0 2 * * * 2h Europe / Berlin", []string{"has 9 " + fields}},
		"AlwaysAndMore": {"both", "always; 0 2 * * * 2h", []string{`"always" has 1 ` + fields}},
		"Semicolon":     {"one too many", "0 2 * * * 2h;", []string{`"" has 0 ` + fields}},
		"NineWindows":   {"each costs time", strings.Repeat("0 2 * * * 2h;", 8) + "0 2 * * * 2h", []string{"it lists 9 windows, and at most 8 are allowed"}},
		"Sunday7":       {"other programs know it", "0 2 * * 7 2h", []string{`the cron expression "0 2 * * 7": `, "above maximum (6)", lists}},
		"Minute":        {"there is no such minute", "60 2 * * * 2h", []string{"above maximum (59)", lists}},
		"Word":          {"not a number", "0 two * * * 2h", []string{`"0 two * * *"`, "two", lists}},
		"Descriptor":    {"the library would take it for a whole expression", "@every 1h * * * 2h", []string{`"@every" isn't a number`, lists}},
		"CronZone":      {"the library panics", "TZ=UTC 0 2 * * 2h", []string{`"TZ=UTC" isn't a number`, lists}},
		"EmptyList":     {"commas alone", ", 2 * * * 2h", []string{"one of its lists is empty", lists}},
		"NeverBegins":   {"February has no 30", "0 2 30 2 * 2h", []string{"no month has that day, so it never begins", lists}},
		"NoUnit":        {"hours or minutes?", "0 2 * * * 2", []string{`"2" isn't a duration between 1s and 744h (31 days), such as 2h or 90m`}},
		"Zero":          {"never open", "0 2 * * * 0s", []string{`"0s" isn't a duration`}},
		"Negative":      {"ends before it begins", "0 2 * * * -2h", []string{`"-2h" isn't a duration`}},
		"TooLong":       {"always open", "0 2 * * * 745h", []string{`"745h" isn't a duration`}},
		"UnknownZone":   {"misspelt", "0 2 * * * 2h Europe/Berln", []string{`"Europe/Berln" isn't a known time zone, such as Europe/Berlin`, "the controller's image contains all of them", "knows only UTC if that is missing"}},
		"LocalZone":     {"it depends on who asks", "0 2 * * * 2h Local", []string{`"Local" isn't a known time zone`}},
		"FileZone":      {"no file of the machine is read", "0 2 * * * 2h ../../../etc/passwd", []string{"isn't a known time zone"}},
		"SecondIsWrong": {"each is read", "0 2 * * * 2h; 0 2 * * * 2x", []string{`"2x" isn't a duration`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := window.Parse(c.text)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want %q in it", c.reason, err, want)
				}
			}
		})
	}
}

// FuzzParseWindow: what is understood opens at the time that it says, and not before.
func FuzzParseWindow(f *testing.F) {
	for _, seed := range []string{
		"always", window.Example, "0 0 * * 6 24h; */7 1-3,9 * feb-apr mon 1ns Australia/Lord_Howe", "0 2 30 2 * 1h", "TZ=UTC", ", * * * * 1h", "@every 1h * * * 1h", "0/9223372036854775807 * * * * 1h",
	} {
		f.Add(seed, int64(1774746000), int64(3599))
	}
	f.Fuzz(func(t *testing.T, text string, seconds, nanoseconds int64) {
		w, err := window.Parse(text)
		if err != nil {
			return
		}
		// Between 2001 and 2095, where every year has its leap day within five years.
		now := time.Unix(978307200+(seconds%2966371200+2966371200)%2966371200, (nanoseconds%1e9+1e9)%1e9)
		open, opens := w.Open(now)
		if open {
			return
		}
		if !opens.After(now) {
			t.Fatalf("%q is closed at %s, and opens at %s", text, now, opens)
		}
		if open, _ := w.Open(opens); !open {
			t.Errorf("%q opens at %s, and is closed then", text, opens)
		}
		if open, next := w.Open(opens.Add(-1)); open || !next.Equal(opens) {
			t.Errorf("%q opens at %s; just before, it is open: %t, opens at %s", text, opens, open, next)
		}
	})
}
