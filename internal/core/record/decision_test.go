package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// TestBrief: a message takes no more than is kept for it, and what is cut shows that.
func TestBrief(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, message string
		cut             bool
	}{
		"Short":    {"as it is", "configmap/app 3fa9c1d2e4 -> 77ab01c9de", false},
		"Longest":  {"all that there is room for", strings.Repeat("x", record.MessageLimit), false},
		"TooLong":  {"one byte more", strings.Repeat("x", record.MessageLimit+1), true},
		"Quotes":   {"each is written as two bytes", strings.Repeat(`"`, 200), true},
		"Control":  {"each is written as six bytes", strings.Repeat("\x01", 60), true},
		"Arrows":   {"the library writes their heads as six bytes", strings.Repeat("->", 60), true},
		"Accents":  {"no character is cut in two", strings.Repeat("ü", 200), true},
		"Accents2": {"at whatever byte it begins", "x" + strings.Repeat("ü", 200), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := record.Brief(tc.message)
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > record.MessageLimit || len(written) > record.MessageLimit+2 || !utf8.ValidString(got) {
				t.Errorf("%s: %d bytes, %d written, valid %t", tc.reason, len(got), len(written), utf8.ValidString(got))
			}
			if (got != tc.message) != tc.cut || tc.cut && !strings.HasSuffix(got, "…") {
				t.Errorf("%s: %q", tc.reason, got)
			}
		})
	}
}

// TestBriefMeasuresAsTheLibraryWrites: a message of any character that takes exactly all of the room is not cut, and one of
// a byte more is.
func TestBriefMeasuresAsTheLibraryWrites(t *testing.T) {
	t.Parallel()
	runes := []rune{utf8.RuneError, '\U0001f600', utf8.MaxRune}
	for r := range '\u3000' {
		runes = append(runes, r)
	}
	for _, r := range runes {
		written, err := json.Marshal(string(r))
		if err != nil {
			t.Fatal(err)
		}
		length := len(written) - len(`""`)
		longest := strings.Repeat(string(r), record.MessageLimit/length) + strings.Repeat("x", record.MessageLimit%length)
		if record.Brief(longest) != longest || record.Brief(longest+"x") == longest+"x" {
			t.Errorf("%q is written in %d bytes and measured otherwise", r, length)
		}
	}
}

// TestBriefIsText: bytes that are no text would be written as others than were compared.
func TestBriefIsText(t *testing.T) {
	t.Parallel()
	if got, want := record.Brief("held\xff"), "held?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDecisionIsWhole: times are full seconds, and a look is not announced for a moment
// before it happens.
func TestDecisionIsWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 3, 4, 5, 600, time.FixedZone("east", 3600))
	d := record.NewDecision(input.QuietWindow, "", at, at.Add(5*time.Second))
	if want := time.Date(2026, 11, 15, 2, 4, 5, 0, time.UTC); d.Since != want {
		t.Errorf("since %s, want %s", d.Since, want)
	}
	if want := time.Date(2026, 11, 15, 2, 4, 11, 0, time.UTC); d.Next != want {
		t.Errorf("next look at %s, want %s", d.Next, want)
	}
	if got := record.NewDecision(input.Held, "", at, time.Time{}).Next; !got.IsZero() {
		t.Errorf("nothing is planned, and the next look is at %s", got)
	}
}
