package input_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

func TestParseShown(t *testing.T) {
	t.Parallel()
	app, db := input.ConfigMap("app"), input.Secret("db")
	web := input.Image("web")
	cases := map[string]struct {
		reason string
		text   string
		want   input.Shown
	}{
		"Tracked":       {"as we write it", "configmap/app~3fa9c1d2e4,secret/db~77ab01c9de", input.Shown{app: input.Tracked("3fa9c1d2e4"), db: input.Tracked("77ab01c9de")}},
		"Pinned":        {"a pinned source is shown with =", "configmap/app=3fa9c1d2e4", input.Shown{app: {Digest: "3fa9c1d2e4", Pinned: true}}},
		"Image":         {"so is an image", "image/web=sha256:ab,secret/db~77", input.Shown{web: {Digest: "sha256:ab", Pinned: true}, db: input.Tracked("77")}},
		"Spaces":        {"people edit annotations", " configmap/app ~ 3fa9c1d2e4 , secret/db~77", input.Shown{app: input.Tracked("3fa9c1d2e4"), db: input.Tracked("77")}},
		"Empty":         {"a template that shows nothing", "", input.Shown{}},
		"OneBroken":     {"what cannot be read hides nothing else", "configmap/app,what~1,secret/db~77", input.Shown{db: input.Tracked("77")}},
		"OtherInputs":   {"a newer program may show inputs of another kind", "volume/data=1,secret/db~77", input.Shown{db: input.Tracked("77")}},
		"EmptyDigest":   {"an empty digest differs from every version", "configmap/app~", input.Shown{app: input.Tracked("")}},
		"Twice":         {"the last word counts", "configmap/app~1,configmap/app~2", input.Shown{app: input.Tracked("2")}},
		"DigestWithSep": {"the first separator counts", "configmap/app~a=b", input.Shown{app: input.Tracked("a=b")}},
		"Hostile":       {"a text of separators is nothing", strings.Repeat("~=,/", 10_000), input.Shown{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, input.ParseShown(tc.text)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestShownIsSorted: equal versions must give equal templates, or an undo would
// not find its old revision.
func TestShownIsSorted(t *testing.T) {
	t.Parallel()
	const want = "configmap/a~3,configmap/b~2,image/a=4,secret/a~1"
	for range 50 {
		s := input.Shown{
			input.Secret("a"): input.Tracked("1"), input.ConfigMap("b"): input.Tracked("2"), input.ConfigMap("a"): input.Tracked("3"),
			input.Image("a"): {Digest: "4", Pinned: true},
		}
		if got := s.String(); got != want {
			t.Fatalf("written as %q, want %q", got, want)
		}
	}
}

// FuzzParseShown: nothing panics, and what was read is written so that it is
// read the same.
func FuzzParseShown(f *testing.F) {
	f.Add("configmap/app~3fa9c1d2e4,secret/db=77ab01c9de")
	f.Add(" configmap/ app ~ 1")
	f.Add("configmap/a~\xff,~,=,secret/~=")
	f.Fuzz(func(t *testing.T, text string) {
		s := input.ParseShown(text)
		if diff := cmp.Diff(s, input.ParseShown(s.String())); diff != "" {
			t.Errorf("%q is written as %q, which reads otherwise:\n%s", text, s, diff)
		}
	})
}

// TestParseShownIsBounded: what Lockstep writes at most is read, and what is longer is another
// writer's.
func TestParseShownIsBounded(t *testing.T) {
	t.Parallel()
	most := input.Shown{}
	for i := range input.MaxInputs {
		most[input.ConfigMap(fmt.Sprintf("%0*d", input.MaxNames/input.MaxInputs, i))] = input.Mark{Digest: "sha256:" + strings.Repeat("a", 64), Pinned: true}
	}
	if got := input.ParseShown(most.String()); len(got) != input.MaxInputs {
		t.Errorf("%d of %d inputs are read", len(got), input.MaxInputs)
	}
	if got := input.ParseShown("configmap/app~3fa9c1d2e4," + strings.Repeat(" ", input.MaxShown)); len(got) != 0 {
		t.Errorf("a text that is too long has %d inputs", len(got))
	}
	for marks, want := range map[int]int{384: 384, 385: 0, 6000: 0} {
		var many strings.Builder
		for i := range marks {
			fmt.Fprintf(&many, "image/%03x~,", i)
		}
		if got := input.ParseShown(many.String()); len(got) != want {
			t.Errorf("a text with %d marks has %d inputs, want %d", marks, len(got), want)
		}
	}
}

// TestMarks: what a template shows is kept as digests, and can be compared all the same.
func TestMarks(t *testing.T) {
	t.Parallel()
	app, db, none := input.ConfigMap("app"), input.Secret("db"), input.Mark{}
	marks := input.Shown{app: input.Tracked("1"), db: input.Tracked("")}.Marks()
	cases := map[string]struct {
		reason string
		id     input.ID
		mark   input.Mark
		want   bool
	}{
		"Same":    {"its own mark", app, input.Tracked("1"), true},
		"Other":   {"another version", app, input.Tracked("2"), false},
		"Pinned":  {"the same version, pinned", app, input.Mark{Digest: "1", Pinned: true}, false},
		"Shown":   {"it has a mark", app, none, false},
		"Absent":  {"it has none", input.Secret("app"), none, true},
		"Missing": {"a mark of an input without one", input.Secret("app"), input.Tracked("1"), false},
		"Empty":   {"a mark without a version is none", db, none, true},
	}
	for name, tc := range cases {
		if got := marks.Show(tc.id, tc.mark); got != tc.want {
			t.Errorf("%s (%s): %t, want %t", name, tc.reason, got, tc.want)
		}
	}
	if got := input.Marks(nil).Show(app, none); !got {
		t.Error("a template without marks shows one")
	}
}
