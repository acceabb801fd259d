package tagspec_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, spec, tags string
		want               string // empty means none
	}{
		// The table of kube-image-deployer: what its documentation says, not what it did.
		{"one star", "v1.0.*", "v1.0.0 v1.0.9 v1.0.10 v1.0.11", "v1.0.11"},
		{"the left number counts first", "v4.*.*", "v4.0.999 v4.1.0", "v4.1.0"},
		{"in any order of the list", "v4.*.*", "v4.1.0 v4.0.999", "v4.1.0"},
		{"a lexical list", "1.*.*", "1.10.0 1.2.7 1.9.0", "1.10.0"},
		{"a falling list", "1.*.*", "1.1.5 1.1.2", "1.1.5"},
		{"the whole tag has to match", "v6.*.*", "v6.0.0 v6.0.1.0", "v6.0.0"},
		{"digits at the end", "1.34.*", "1.34 1.34.0 1.34.1 1.34.10 1.34.2", "1.34.10"},
		{"no suffixes", "1.34.*", "1.34.0-rc1 1.34.1-musl 1.34", ""},
		{"dates", "*", "20210101 20230101 latest", "20230101"},
		{"a suffix", "dev-*-abc", "dev-12-abc dev-9-abc", "dev-12-abc"},
		{"more digits than a machine word has", "1.*", "1.1 1.99999999999999999999", "1.99999999999999999999"},
		{"equal numbers: the shorter one", "1.*", "1.1 1.01", "1.1"},

		{"two long numbers of one length", "*", "99999999999999999998 99999999999999999999", "99999999999999999999"},
		{"a dot is a dot", "1.*", "1x5 1.2", "1.2"},
		{"a glob wants a digit", "v*", "v vx v1", "v1"},

		{"an exact tag", "latest", "1 latest 2", "latest"},
		{"an exact tag that is not there", "latest", "1 2", ""},

		{"caret", "^1.4", "1.3.9 1.4.0 1.10.2 2.0.0", "1.10.2"},
		{"tilde", "~2.1", "2.1.0 2.1.12 2.2.0", "2.1.12"},
		{"two bounds", ">=1 <3", "0.9.0 2.9.9 3.0.0", "2.9.9"},
		{"alternatives", "^1.4 || ^3", "1.5.0 2.0.0 3.1.0", "3.1.0"},
		{"a leading v", "^1.4", "v1.4.1 v1.5.0", "v1.5.0"},
		{"with and without v: the shorter one", "^1", "v1.4.0 1.4.0", "1.4.0"},
		{"no pre-release unless asked", "^1.4", "1.4.0 1.5.0-rc.1", "1.4.0"},
		{"pre-releases when asked", "^1.4.0-0", "1.4.0 1.5.0-rc.1", "1.5.0-rc.1"},
		{"rc.10 is after rc.9", ">=1.0.0-0", "1.5.0-rc.9 1.5.0-rc.10", "1.5.0-rc.10"},
		{"a variant is no release", "^1.4", "1.4.0 1.5.0-alpine", "1.4.0"},
		{"two numbers", "^16.1", "16 16.1 16.4", "16.4"},
		{"the full version before the short name of it", "^1.4", "1.5 1.5.0", "1.5.0"},
		{"a date is no version", ">=1", "1.4.0 20240131", "1.4.0"},
		{"a number that no machine word holds", ">=1", "1.4.0 1.99999999999999999999.0", "1.4.0"},

		{"a named group", `/build-(?P<n>\d+)-.*/`, "build-9-zz build-10-aa", "build-10-aa"},
		{"groups from left to right", `/(?P<a>\d+)-(?P<b>\d+)/`, "1-9 2-1 2-0", "2-1"},
		{"a group that is compared before another", `/r(?P<n>\d+)-(?:x|y)\d/`, "r1-x9 r2-y1", "r2-y1"},
		{"CalVer", `/(?P<date>\d{4}\.\d{1,2}\.\d{1,2})/`, "2024.9.30 2024.10.1 2023.12.31", "2024.10.1"},
		{"no group: the whole tag", `/20\d\d-.*/`, "2024-9 2024-10", "2024-10"},
		{"anchored", `/v\d+/`, "xv1 v1x v1", "v1"},
		{"an alternative is anchored too", `/a|b\d/`, "ab b1x b1 a", "b1"},
		{"an optional group", `/1\.(?P<minor>\d+)(?:-(?P<patch>\d+))?/`, "1.2 1.2-1 1.1-9", "1.2-1"},

		{"what is no tag", "*", "1 2\n3 ../4 .5", "1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			spec, err := tagspec.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			tags := strings.Split(c.tags, " ")
			for range 20 {
				rand.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
				got, ok := spec.Choose(tags)
				if got != c.want || ok != (c.want != "") {
					t.Fatalf("%s of %q is %q, %t, want %q", c.spec, tags, got, ok, c.want)
				}
				if ok && (!spec.Matches(got) || !strings.HasPrefix(got, spec.Prefix())) {
					t.Errorf("%s matches: %t, begins with %q: %t", got, spec.Matches(got), spec.Prefix(), strings.HasPrefix(got, spec.Prefix()))
				}
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"latest": "latest", "v1.34.*": "v1.34.", "*": "", "^1.4": "",
		`/v1\.(?P<n>\d+)/`: "v1.", `/^v1\.\d+$/`: "v1.", `/(?P<n>v1)\d/`: "v1", `/v1|w1/`: "", `/(?i)v1/`: "",
	} {
		spec, err := tagspec.Parse(text)
		if err != nil || spec.Prefix() != want {
			t.Errorf("prefix of %s is %q, error %v, want %q", text, spec.Prefix(), err, want)
		}
		if _, ok := spec.Exact(); ok != (text == "latest") {
			t.Errorf("%s is exact: %t", text, ok)
		}
	}
}

func TestSpecThatIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tagspec.Reason{
		"":                              tagspec.NoTag,
		"-1":                            tagspec.BadTag,
		"ünicode":                       tagspec.BadTag,
		"a/b":                           tagspec.BadTag,
		"1.$*":                          tagspec.BadTag,
		"1.**":                          tagspec.BadTag,
		strings.Repeat("a", 129):        tagspec.BadTag,
		strings.Repeat("a", 300):        tagspec.TooLarge,
		strings.Repeat("1.*.", 17) + "": tagspec.TooLarge,
		">=":                            tagspec.BadRange,
		">=one":                         tagspec.BadRange,
		"1, 2, three":                   tagspec.BadRange,
		"/":                             tagspec.BadPattern,
		"//":                            tagspec.BadPattern,
		"/a":                            tagspec.BadPattern,
		"/(/":                           tagspec.BadPattern,
		`/(a)\1/`:                       tagspec.BadPattern,
		`/a{900}b{900}/`:                tagspec.TooLarge,
	} {
		spec, err := tagspec.Parse(text)
		refused, ok := errors.AsType[*tagspec.RefusedError](err)
		if !ok || refused.Reason != want {
			t.Errorf("%.40q: got %v, want the reason %s", text, err, want)
		}
		if _, ok := spec.Choose([]string{"1", "a"}); ok {
			t.Errorf("%.40q was refused and chooses a tag", text)
		}
	}
}

// FuzzParse: whatever is written, a spec that is accepted chooses a tag that it matches,
// that begins with its prefix, and that does not depend on the order of the list.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"latest", "v1.*", "*.*", "^1.4", ">=1 <3", `/v(?P<n>\d+)/`, `/^a|b$/`, "1 - 2", "~", "/(?s).*/"} {
		f.Add(seed, "v1 v2 1.4.0 a b latest 1.4 2024.1.31")
	}
	f.Fuzz(func(t *testing.T, text, list string) {
		spec, err := tagspec.Parse(text)
		if err != nil {
			if _, ok := errors.AsType[*tagspec.RefusedError](err); !ok {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		if spec.String() != text {
			t.Fatalf("%q became %q", text, spec)
		}
		tags := strings.Fields(list)
		got, ok := spec.Choose(tags)
		for i, j := 0, len(tags)-1; i < j; i, j = i+1, j-1 {
			tags[i], tags[j] = tags[j], tags[i]
		}
		again, _ := spec.Choose(tags)
		if got != again {
			t.Errorf("%q chooses %q, and %q of the reversed list", text, got, again)
		}
		if ok && (!spec.Matches(got) || !strings.HasPrefix(got, spec.Prefix())) {
			t.Errorf("%q chooses %q; prefix %q, matches %t", text, got, spec.Prefix(), spec.Matches(got))
		}
	})
}
