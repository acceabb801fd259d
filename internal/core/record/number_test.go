package record_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// TestNumber: the number of a template's revision is on record with it, and whether it was seen.
func TestNumber(t *testing.T) {
	t.Parallel()
	e := record.Entry{ID: "id", UID: "uid", Coverage: record.Coverage{Template: record.Template{Generation: 9, Sum: "abc", Number: 3, Made: true}, Accounted: 3}}
	text, err := e.Encode()
	if err != nil || !strings.Contains(text, `"accounted":3,"template":"9:3:abc"`) {
		t.Fatalf("it is written as %s, error %v", text, err)
	}
	for name, tc := range map[string]struct {
		written string
		want    record.Template
	}{
		"Own":          {"9:3:abc", e.Template},
		"NotSeenYet":   {"9:~3:abc", record.Template{Generation: 9, Sum: "abc", Number: 3}},
		"NotKnown":     {"9:~0:abc", record.Template{Generation: 9, Sum: "abc"}},
		"NoNumber":     {"9:abc", record.Template{}},
		"NotReadable":  {"9:three:abc", record.Template{}},
		"NoGeneration": {"nine:3:abc", record.Template{}},
	} {
		got, err := record.Decode(strings.Replace(text, "9:3:abc", tc.written, 1))
		if err != nil || got.Template != tc.want || got.Accounted != 3 || !got.Foreign.IsEmpty() {
			t.Errorf("%s: %+v, accounted for up to %d, foreign %+v, error %v; want %+v", name, got.Template, got.Accounted, got.Foreign, err, tc.want)
		}
	}
}

// TestIsReplacedBy: what came later is told by generation, digest and number.
func TestIsReplacedBy(t *testing.T) {
	t.Parallel()
	known := record.Template{Generation: 5, Sum: "a", Number: 2}
	seen := record.Template{Generation: 5, Sum: "a", Number: 2, Made: true}
	for name, tc := range map[string]struct {
		reason string
		known  record.Template
		other  record.Template
		want   bool
	}{
		"Another":       {"another digest", known, record.Template{Generation: 6, Sum: "b", Number: 3}, true},
		"Unobserved":    {"another digest, and no number yet", known, record.Template{Generation: 6, Sum: "b"}, true},
		"NewDigest":     {"another program's digest of the revision that it was seen with", seen, record.Template{Generation: 6, Sum: "z", Number: 2, Made: true}, false},
		"NewAndBack":    {"and another one between", seen, record.Template{Generation: 7, Sum: "z", Number: 4, Made: true}, true},
		"TookItsNumber": {"its controller never made it, and another one got the number", known, record.Template{Generation: 6, Sum: "b", Number: 2, Made: true}, true},
		"Scaled":        {"the same pair", known, record.Template{Generation: 6, Sum: "a", Number: 2}, false},
		"CameAndWent":   {"the same digest after another one", known, record.Template{Generation: 7, Sum: "a", Number: 4}, true},
		"NeverMade":     {"another one that its controller never saw", known, record.Template{Generation: 7, Sum: "a", Number: 1}, false},
		"OtherDigest":   {"another program's digest of the same generation", known, record.Template{Generation: 5, Sum: "z", Number: 2}, false},
		"OlderCache":    {"the cache is behind", known, record.Template{Generation: 4, Sum: "b", Number: 1}, false},
		"Aborted":       {"an abort replaces no template", known, record.Template{Generation: 6, Sum: "a" + record.Instead + "b", Number: 2}, false},
		"NothingKnown":  {"nothing is on record", record.Template{}, record.Template{Generation: 6, Sum: "b", Number: 3}, false},
		"NumberUnknown": {"the record has no number", record.Template{Generation: 5, Sum: "a"}, record.Template{Generation: 7, Sum: "a", Number: 4}, false},
		"AnotherLender": {"generations of different objects can't be compared", record.Template{Generation: 5, Object: "a", Sum: "a"}, record.Template{Generation: 1, Object: "b", Sum: "b"}, true},
		"MadeAgain":     {"the lender was made again with the same template", record.Template{Generation: 5, Object: "a", Sum: "a"}, record.Template{Generation: 1, Object: "b", Sum: "a"}, false},
	} {
		if got := tc.known.IsReplacedBy(tc.other); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}

// TestLentTemplate: the object that lends a template is on record with it. One that is made again has
// low generations, and its template isn't older for that.
func TestLentTemplate(t *testing.T) {
	t.Parallel()
	e := record.Entry{ID: "id", UID: "uid", Coverage: record.Coverage{Template: record.Template{Generation: 9, Object: "0815", Sum: "abc!def"}}}
	text, err := e.Encode()
	if err != nil || !strings.Contains(text, `"template":"9:~0:abc!def@0815"`) {
		t.Fatalf("it is written as %s, error %v", text, err)
	}
	got, err := record.Decode(text)
	if err != nil || got.Template != e.Template {
		t.Errorf("it is read as %+v, error %v; want %+v", got.Template, err, e.Template)
	}
	again := record.Template{Generation: 1, Object: "4711", Sum: "abc!def"}
	if again.IsOlder(got.Template) || !(record.Template{Generation: 8, Object: "0815"}).IsOlder(got.Template) {
		t.Error("only generations of the same object tell which template is older")
	}
	other := e.Clone()
	if other.Template.Object = "4711"; other.Equal(e) {
		t.Error("an entry with another lender counts as the same")
	}
}
