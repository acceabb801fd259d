package fingerprint_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

const someSum = "0123456789abcdef0123456789abcdef"

func TestParseVersion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   fingerprint.Version // zero when the text must be refused
	}{
		"AllKeys":      {"as stored", "1:*:" + someSum, fingerprint.Version{Basis: "1:*", Sum: someSum}},
		"SomeKeys":     {"as stored", "1:00ff00ff:" + someSum, fingerprint.Version{Basis: "1:00ff00ff", Sum: someSum}},
		"Keyed":        {"as stored", "1kabcdef:*:" + someSum, fingerprint.Version{Basis: "1kabcdef:*", Sum: someSum}},
		"Absent":       {"an object that did not exist", "1:*:absent", fingerprint.Version{Basis: "1:*", Sum: "absent"}},
		"Unknown":      {"content that nobody saw", "1:*:unknown", fingerprint.Version{Basis: "1:*", Sum: "unknown"}},
		"NewAlgorithm": {"a newer program's version is kept and is not comparable", "2:*:" + someSum, fingerprint.Version{Basis: "2:*", Sum: someSum}},
		"Empty":        {"nothing is no version", "", fingerprint.Version{}},
		"SumOnly":      {"a sum without its basis compares to nothing", someSum, fingerprint.Version{}},
		"NoKeys":       {"a basis without its keys compares to nothing", "1:" + someSum, fingerprint.Version{}},
		"ShortSum":     {"a cut sum must not pass for a change", "1:*:" + someSum[:31], fingerprint.Version{}},
		"LongSum":      {"nor an extended one", "1:*:" + someSum + "0", fingerprint.Version{}},
		"UpperCase":    {"sums are compared as text, so there is one spelling", "1:*:" + strings.ToUpper(someSum), fingerprint.Version{}},
		"NotHex":       {"not a digest", "1:*:" + strings.Repeat("g", 32), fingerprint.Version{}},
		"Digest":       {"the version of an image", "sha256:" + someSum + someSum, fingerprint.Version{Basis: "sha256", Sum: someSum + someSum}},
		"NoImage":      {"an image that does not exist", "sha256:absent", fingerprint.Version{Basis: "sha256", Sum: "absent"}},
		"ShortDigest":  {"a digest is 64 hex digits", "sha256:" + someSum, fingerprint.Version{}},
		"LongSource":   {"and a sum over keys is not", "1:*:" + someSum + someSum, fingerprint.Version{}},
		"EmptySum":     {"nothing is no digest", "1:*:", fingerprint.Version{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fingerprint.ParseVersion(tc.text)
			if (err != nil) != tc.want.IsZero() || got != tc.want {
				t.Errorf("%s: ParseVersion(%q) = %+v, %v, want %+v", tc.reason, tc.text, got, err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("the error %q does not show the text", err)
			}
		})
	}
}

func TestVersionShort(t *testing.T) {
	t.Parallel()
	for sum, want := range map[string]string{someSum: someSum[:10], "absent": "absent", "": ""} {
		if got := (fingerprint.Version{Basis: "1:*", Sum: sum}).Short(); got != want {
			t.Errorf("short form of %q is %q, want %q", sum, got, want)
		}
	}
}

// FuzzParseVersion: what is accepted is written back as it was.
func FuzzParseVersion(f *testing.F) {
	f.Add("1:*:" + someSum)
	f.Add("1kabcdef:00ff00ff:absent")
	f.Add("sha256:" + someSum + someSum)
	f.Add("1::" + someSum)
	f.Add(":::absent")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := fingerprint.ParseVersion(text)
		if err != nil {
			if !v.IsZero() {
				t.Errorf("a refused text gives %+v", v)
			}
			return
		}
		if v.IsZero() {
			t.Errorf("%q is accepted as nothing", text)
		}
		if v.String() != text {
			t.Errorf("%q is written as %q", text, v)
		}
	})
}

// TestKeyID: a version tells which key it was made with, and not what the key is.
func TestKeyID(t *testing.T) {
	t.Parallel()
	keyed := fingerprint.NewKeyedHasher([]byte("k"))
	made := keyed.At("shop", "Secret", "db").Content(map[string]string{"a": "b"}, nil).Version(fingerprint.AllKeys())
	if got := made.KeyID(); got != keyed.KeyID() || got != "8254c3" {
		t.Errorf("made with the key %q, want %q", got, keyed.KeyID())
	}
	for _, plain := range []string{"1:*:" + someSum, "sha256:" + someSum + someSum, ""} {
		if v, _ := fingerprint.ParseVersion(plain); v.KeyID() != "" {
			t.Errorf("%q was made with the key %q", plain, v.KeyID())
		}
	}
	if other := fingerprint.NewKeyedHasher([]byte("l")); other.KeyID() == keyed.KeyID() {
		t.Error("two keys have one name")
	}
}
