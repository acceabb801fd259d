package filemap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// of is an object of a namespace that was created on a day of January.
func of(namespace string, day int, keys ...string) filemap.Object {
	o := filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: namespace, Name: "app"}, Created: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)}
	for _, key := range keys {
		o.Entries = append(o.Entries, filemap.Entry{Key: key, Size: 1})
	}
	return o
}

func owners(tree filemap.Tree) []string {
	var got []string
	for _, f := range tree.Files {
		got = append(got, f.Path+" < "+f.Source.Namespace)
	}
	return got
}

// With several namespaces, a file name belongs to the one that had it first. The name of a
// namespace decides nothing.
func TestOwners(t *testing.T) {
	shared := filemap.Rules{Shared: true}
	first := filemap.Rules{Shared: true, Collision: filemap.FirstWins}
	long := of("a", 9, "x")
	long.Subdir = strings.Repeat("d", filemap.MaxSubdir+1)
	for name, c := range map[string]struct {
		reason      string
		objects     []filemap.Object
		rules       filemap.Rules
		want        []string
		wantErr     string
		wantLeftOut string
	}{
		"remembered": {
			reason: "a namespace that sorts earlier takes nothing over, even with older objects", objects: []filemap.Object{of("a", 1, "x", "y"), of("b", 2, "x")},
			rules: first.Since(true, map[string]string{"x": "b"}), want: []string{"x < b", "y < a"},
			wantLeftOut: `the file "x" of configmap/a/app is left out: configmap/b/app had it first`,
		},
		"remembered, by default": {
			reason: "one tenant does not hold up the others", objects: []filemap.Object{of("a", 1, "x", "y"), of("b", 2, "x")},
			rules: shared.Since(true, map[string]string{"x": "b"}), want: []string{"x < b", "y < a"},
			wantLeftOut: `the file "x" of configmap/a/app is left out: configmap/b/app had it first`,
		},
		"a directory in the place of a file": {
			reason: "a name that is needed as a directory is taken over as well", objects: []filemap.Object{of("a", 1, "x__y"), of("b", 2, "x")},
			rules:       filemap.Rules{Shared: true, Separator: "__"}.Since(true, map[string]string{"x": "b"}),
			want:        []string{"x < b"},
			wantLeftOut: "a name cannot be both a file and a directory",
		},
		"the owner is gone": {
			reason: "its name is free", objects: []filemap.Object{of("a", 1, "x"), of("b", 2, "y")},
			rules: first.Since(true, map[string]string{"x": "b", "y": "b"}), want: []string{"x < a", "y < b"},
		},
		"nobody is remembered": {
			reason: "a new pod has no memory, and the age of objects cannot be chosen", objects: []filemap.Object{of("a", 3, "x"), of("b", 2, "x")},
			rules: first.Since(false, nil), want: []string{"x < b"}, wantLeftOut: "configmap/b/app had it first",
		},
		"the first set, by default": {
			reason: "most likely a mistake in the configuration", objects: []filemap.Object{of("a", 3, "x"), of("b", 2, "x")},
			rules: shared.Since(false, nil), wantErr: "both have the file",
		},
		"a bad directory": {
			reason: "nor does one tenant's mistake", objects: []filemap.Object{long, of("b", 2, "x")},
			rules: filemap.Rules{Shared: true, Subdirs: true}.Since(true, nil), want: []string{"x < b"},
			wantLeftOut: "configmap/a/app requests a directory longer than 512 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := filemap.Plan(c.objects, c.rules)
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Fatalf("%s: error %v, want %q", c.reason, err, c.wantErr)
			}
			if diff := cmp.Diff(c.want, owners(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
			if (got.LeftOut != nil) != (c.wantLeftOut != "") || got.LeftOut != nil && !strings.Contains(got.LeftOut.Error(), c.wantLeftOut) {
				t.Errorf("%s: left out %v, want %q", c.reason, got.LeftOut, c.wantLeftOut)
			}
		})
	}
}

// An object whose contents were omitted is an error that names the limit and the largest
// object, or is left out where others must not wait for it.
func TestTooLarge(t *testing.T) {
	omitted := filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "a", Name: "large"}, Omitted: 3 << 20}
	objects := []filemap.Object{omitted, of("b", 1, "x")}
	_, err := filemap.Plan(objects, filemap.Rules{MaxBytes: 2 << 20, Later: true})
	if _, large := errors.AsType[*filemap.SizeError](err); !large {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"the sources total 3.0 MiB and the limit is 2.0 MiB", "the largest is configmap/a/large with 3.0 MiB"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	for want, rules := range map[string]filemap.Rules{
		"over 2.0 MiB": {MaxBytes: 2 << 20, LeaveOut: true},
		"over 2.0 MiB, or namespace a over its share of 1.0 MiB": {MaxBytes: 2 << 20, Share: 1 << 20, Shared: true}, // even in the first set
	} {
		tree, err := filemap.Plan(objects, rules)
		if err != nil || len(tree.Files) != 1 || !strings.HasSuffix(fmt.Sprint(tree.LeftOut), "configmap/a/large is left out: its 3.0 MiB would take the set "+want) {
			t.Errorf("files %v, left out %v, error %v", tree.Files, tree.LeftOut, err)
		}
	}
	dir := filemap.Object{Ref: filemap.Ref{Kind: filemap.Directory, Name: "/d"}, Omitted: 3 << 20}
	tree, err := filemap.Plan([]filemap.Object{dir}, filemap.Rules{MaxBytes: 2 << 20, Share: 1 << 20, Shared: true})
	if want := "directory /d is left out: its 3.0 MiB would take the set over 2.0 MiB"; err != nil || fmt.Sprint(tree.LeftOut) != want {
		t.Errorf("left out %v, error %v", tree.LeftOut, err)
	}
}

// A hundred thousand bad keys are a short report.
func TestManyMistakes(t *testing.T) {
	o := of("a", 1)
	for i := range 100_000 {
		o.Entries = append(o.Entries, filemap.Entry{Key: fmt.Sprintf("..%d", i)})
	}
	if _, err := filemap.Plan([]filemap.Object{o}, filemap.Rules{}); err == nil || len(err.Error()) > 10_000 || !strings.HasSuffix(err.Error(), "and 99980 more") {
		t.Errorf("%d bytes of errors", len(fmt.Sprint(err)))
	}
	tree, err := filemap.Plan([]filemap.Object{o}, filemap.Rules{LeaveOut: true})
	if err != nil || len(tree.LeftOut.Error()) > 10_000 {
		t.Errorf("%d bytes of what is left out, error %v", len(fmt.Sprint(tree.LeftOut)), err)
	}
	if err := filemap.CheckPath(strings.Repeat("d/", 64) + "f"); err == nil || !strings.Contains(err.Error(), "more than 64 elements") {
		t.Errorf("a deep path: %v", err)
	}
	if err := filemap.CheckPath(strings.Repeat("d/", 63) + "f"); err != nil {
		t.Error(err)
	}
}
