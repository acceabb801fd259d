package filemap_test

import (
	"crypto/sha256"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

func object(kind filemap.Kind, name string, content map[string]string) filemap.Object {
	o := filemap.Object{Ref: filemap.Ref{Kind: kind, Namespace: "ns", Name: name}}
	for k, v := range content {
		o.Entries = append(o.Entries, filemap.Entry{Key: k, Digest: sha256.Sum256([]byte(v)), Size: int64(len(v))})
	}
	return o
}

func paths(tree filemap.Tree) []string {
	var got []string
	for _, f := range tree.Files {
		got = append(got, f.Path+" < "+f.Source.Name)
	}
	return got
}

func TestPlan(t *testing.T) {
	one := object(filemap.ConfigMap, "one", map[string]string{"a.conf": "1", "b.conf": "2"})
	two := object(filemap.Secret, "two", map[string]string{"b.conf": "3"})
	tree := object(filemap.ConfigMap, "tree", map[string]string{"conf.d__x.conf": "1", "conf.d__y.conf": "2"})
	inSub := object(filemap.ConfigMap, "sub", map[string]string{"a": "1"})
	inSub.Subdir = "dashboards/team"

	for name, c := range map[string]struct {
		reason  string
		objects []filemap.Object
		rules   filemap.Rules
		want    []string
		wantErr []string
		// wantLeftOut are parts of what is said about keys that are left out.
		wantLeftOut []string
	}{
		"plain keys": {
			reason: "a key is a file name when nothing else is said", objects: []filemap.Object{one},
			want: []string{"a.conf < one", "b.conf < one"},
		},
		"collision refused": {
			reason: "by default two sources with one file are a mistake that names both", objects: []filemap.Object{two, one},
			wantErr: []string{"configmap/ns/one and secret/ns/two both have the file \"b.conf\"", "set the collision to prefix or first"},
		},
		"first wins by name": {
			reason: "the order of arrival must not matter", objects: []filemap.Object{two, one},
			rules: filemap.Rules{Collision: filemap.FirstWins}, want: []string{"a.conf < one", "b.conf < one"},
		},
		"prefix": {
			reason: "every file is prefixed, so that a file's name never depends on another object", objects: []filemap.Object{one, two},
			rules: filemap.Rules{Collision: filemap.Prefix},
			want: []string{
				"namespace_ns.configmap_one.a.conf < one", "namespace_ns.configmap_one.b.conf < one",
				"namespace_ns.secret_two.b.conf < two",
			},
		},
		"separator": {
			reason: "keys cannot hold a slash, so that a separator stands for it", objects: []filemap.Object{tree},
			rules: filemap.Rules{Separator: "__"}, want: []string{"conf.d/x.conf < tree", "conf.d/y.conf < tree"},
		},
		"item": {
			reason: "a mapped key gets its path, the others stay", objects: []filemap.Object{one},
			rules: filemap.Rules{Items: []filemap.Item{{Key: "a.conf", Path: "etc/app/a.conf"}}},
			want:  []string{"b.conf < one", "etc/app/a.conf < one"},
		},
		"item of one object": {
			reason: "a scoped item leaves the same key of other objects alone", objects: []filemap.Object{one, two},
			rules: filemap.Rules{Items: []filemap.Item{{Object: "two", Key: "b.conf", Path: "secret/b.conf"}}},
			want:  []string{"a.conf < one", "b.conf < one", "secret/b.conf < two"},
		},
		"item without key": {
			reason: "a mapping that maps nothing is a typing mistake", objects: []filemap.Object{one},
			rules:   filemap.Rules{Items: []filemap.Item{{Key: "c.conf", Path: "c"}}},
			wantErr: []string{"item c.conf=c: no source contains this key"},
		},
		"item whose key was removed": {
			reason: "removed keys disappear, and the others go on", objects: []filemap.Object{one},
			rules: filemap.Rules{Items: []filemap.Item{{Key: "c.conf", Path: "c"}}}.Since(true, nil),
			want:  []string{"a.conf < one", "b.conf < one"}, wantLeftOut: []string{"item c.conf=c: no source contains this key"},
		},
		"include and exclude": {
			reason: "exclude wins over include", objects: []filemap.Object{one},
			rules: filemap.Rules{Include: []string{"*.conf"}, Exclude: []string{"b*"}}, want: []string{"a.conf < one"},
		},
		"subdirectory ignored": {
			reason: "an object chooses nothing unless it may", objects: []filemap.Object{inSub}, want: []string{"a < sub"},
		},
		"subdirectory": {
			reason: "an allowed subdirectory is put before the path", objects: []filemap.Object{inSub},
			rules: filemap.Rules{Subdirs: true}, want: []string{"dashboards/team/a < sub"},
		},
		"subdirectory leaves the root": {
			reason:  "whatever an annotation says, nothing leaves the root",
			objects: []filemap.Object{{Ref: inSub.Ref, Subdir: "../etc", Entries: inSub.Entries}},
			rules:   filemap.Rules{Subdirs: true}, wantErr: []string{`path "../etc/a" leaves the root`},
		},
		"absolute subdirectory below the root": {
			reason:  "who may name the root in front of it means the same directory",
			objects: []filemap.Object{{Ref: inSub.Ref, Subdir: "/tmp/dash/team/", Entries: inSub.Entries}},
			rules:   filemap.Rules{Subdirs: true, Root: "/tmp/dash"}, want: []string{"team/a < sub"},
		},
		"the root itself": {
			reason:  "that is the same as no directory",
			objects: []filemap.Object{{Ref: inSub.Ref, Subdir: "/tmp/dash", Entries: inSub.Entries}},
			rules:   filemap.Rules{Subdirs: true, Root: "/tmp/dash"}, want: []string{"a < sub"},
		},
		"beside the root": {
			reason:  "a common beginning is not below",
			objects: []filemap.Object{{Ref: inSub.Ref, Subdir: "/tmp/dash2", Entries: inSub.Entries}},
			rules:   filemap.Rules{Subdirs: true, Root: "/tmp/dash"}, wantErr: []string{`path "/tmp/dash2/a" is absolute`},
		},
		"left out": {
			reason: "one object's mistakes do not hold the others up",
			objects: []filemap.Object{
				one,
				{Ref: inSub.Ref, Subdir: "/etc", Entries: inSub.Entries},
				{Ref: two.Ref, Subdir: "a.conf", Entries: two.Entries},
			},
			rules: filemap.Rules{Subdirs: true, LeaveOut: true}, want: []string{"a.conf < one", "b.conf < one"},
			wantLeftOut: []string{`key "a" of configmap/ns/sub: path "/etc/a" is absolute`, "both a file and a directory"},
		},
		"directory before a file": {
			reason: "a later object cannot take the directory of an earlier one away",
			objects: []filemap.Object{
				object(filemap.ConfigMap, "z", map[string]string{"team": "3"}),
				object(filemap.ConfigMap, "a", map[string]string{"team__x": "1", "team__y": "2"}),
			},
			rules: filemap.Rules{Separator: "__", LeaveOut: true}, want: []string{"team/x < a", "team/y < a"},
			wantLeftOut: []string{`configmap/ns/a has the file "team/x" and configmap/ns/z has the file "team": a name cannot be both`},
		},
		"file before a directory": {
			reason: "nor its file",
			objects: []filemap.Object{
				object(filemap.ConfigMap, "z", map[string]string{"team__x": "1", "team__deep__y": "2"}),
				object(filemap.ConfigMap, "a", map[string]string{"team": "3"}),
			},
			rules: filemap.Rules{Separator: "__", LeaveOut: true}, want: []string{"team < a"},
			wantLeftOut: []string{`configmap/ns/a has the file "team" and configmap/ns/z has the file "team/x"`, `"team/deep/y"`},
		},
		"one that lost takes nothing away": {
			reason: "the third has no quarrel with the first",
			objects: []filemap.Object{
				object(filemap.ConfigMap, "1", map[string]string{"team__x": "1"}),
				object(filemap.ConfigMap, "2", map[string]string{"team": "2"}),
				object(filemap.ConfigMap, "3", map[string]string{"team__y": "3"}),
			},
			rules: filemap.Rules{Separator: "__", LeaveOut: true}, want: []string{"team/x < 1", "team/y < 3"},
			wantLeftOut: []string{`configmap/ns/2 has the file "team"`},
		},
		"collision left out": {
			reason: "prefixed names can be the same, and the first object keeps its file",
			objects: []filemap.Object{
				object(filemap.ConfigMap, "b", map[string]string{"c.d": "1"}),
				object(filemap.ConfigMap, "b.c", map[string]string{"d": "2"}),
			},
			rules: filemap.Rules{Collision: filemap.Prefix, LeaveOut: true}, want: []string{"namespace_ns.configmap_b.c.d < b"},
			wantLeftOut: []string{"configmap/ns/b and configmap/ns/b.c both have the file"},
		},
		"absolute subdirectory": {
			reason:  "an absolute annotation is refused, not made relative in silence",
			objects: []filemap.Object{{Ref: inSub.Ref, Subdir: "/etc", Entries: inSub.Entries}},
			rules:   filemap.Rules{Subdirs: true}, wantErr: []string{`path "/etc/a" is absolute`},
		},
		"file and directory": {
			reason:  "a name cannot be both",
			objects: []filemap.Object{object(filemap.ConfigMap, "x", map[string]string{"a": "1", "a__b": "2"})},
			rules:   filemap.Rules{Separator: "__"}, wantErr: []string{"both a file and a directory"},
		},
		"all mistakes at once": {
			reason:  "one look has to be enough to correct everything",
			objects: []filemap.Object{one, two, {Ref: inSub.Ref, Entries: []filemap.Entry{{Key: "..data"}}}},
			wantErr: []string{"both have the file", "reserved"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := filemap.Plan(c.objects, c.rules)
			if (err != nil) != (len(c.wantErr) > 0) {
				t.Fatalf("%s: error %v, want %q", c.reason, err, c.wantErr)
			}
			for _, want := range c.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q lacks %q", c.reason, err, want)
				}
			}
			if diff := cmp.Diff(c.want, paths(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
			if (got.LeftOut != nil) != (len(c.wantLeftOut) > 0) {
				t.Fatalf("%s: left out %v, want %q", c.reason, got.LeftOut, c.wantLeftOut)
			}
			for _, want := range c.wantLeftOut {
				if !strings.Contains(got.LeftOut.Error(), want) {
					t.Errorf("%s: %q lacks %q", c.reason, got.LeftOut, want)
				}
			}
		})
	}
}

func TestID(t *testing.T) {
	plan := func(content map[string]string) filemap.Tree {
		tree, err := filemap.Plan([]filemap.Object{object(filemap.ConfigMap, "x", content)}, filemap.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	base := plan(map[string]string{"a": "1", "b": "2"})
	if base.ID(nil, "") != plan(map[string]string{"b": "2", "a": "1"}).ID(nil, "") {
		t.Error("the same files have different names")
	}
	for what, other := range map[string]string{
		"content":    plan(map[string]string{"a": "1", "b": "3"}).ID(nil, ""),
		"swapped":    plan(map[string]string{"a": "2", "b": "1"}).ID(nil, ""),
		"key":        base.ID([]byte("k"), ""),
		"attributes": base.ID(nil, "0600"),
		"a file":     plan(map[string]string{"a": "1"}).ID(nil, ""),
	} {
		if other == base.ID(nil, "") {
			t.Errorf("another %s gives the same name", what)
		}
	}
}

func TestChanged(t *testing.T) {
	old := filemap.Tree{Files: []filemap.File{{Path: "a"}, {Path: "d/x", Digest: filemap.Digest{1}}, {Path: "gone"}}}
	now := filemap.Tree{Files: []filemap.File{{Path: "a"}, {Path: "d/x", Digest: filemap.Digest{2}}, {Path: "d/y", Size: 7}}}
	if diff := cmp.Diff([]string{"d/x", "d/y", "gone"}, filemap.Changed(old, now)); diff != "" {
		t.Error(diff)
	}
	if now.Bytes() != 7 {
		t.Errorf("bytes: %d", now.Bytes())
	}
}

func TestRulesValidateJoins(t *testing.T) {
	err := filemap.Rules{Collision: "last", Include: []string{"["}, Items: []filemap.Item{{Key: "a", Path: "../x"}}}.Validate()
	for _, want := range []string{`collision policy "last"`, `key pattern "["`, "leaves the root"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a", "a/b", "/a", "../a", "a/../b", "..data", "a//b", "./a", "a/", "", "a\x00b", strings.Repeat("x", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if filemap.CheckPath(p) != nil {
			return
		}
		if !filepath.IsLocal(p) || path.Clean(p) != p || path.Join("/root", p) != "/root/"+p {
			t.Errorf("%q was accepted", p)
		}
	})
}

func FuzzParseItem(f *testing.F) {
	for _, s := range []string{"a=b", "o:a=b/c", "a", "=b", "a=../b", ":a=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		item, err := filemap.ParseItem(s)
		if err != nil {
			return
		}
		if item.String() != s {
			t.Errorf("%q became %q", s, item)
		}
	})
}

func TestWithoutObstacles(t *testing.T) {
	tree, err := filemap.Plan([]filemap.Object{object(filemap.ConfigMap, "app", map[string]string{"a": "1", "b": "2"})}, filemap.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	kept := tree.Without(map[string]error{"a": errors.New("something is there")})
	if len(kept.Files) != 1 || kept.Files[0].Path != "b" || kept.LeftOut.Error() != `file "a" of configmap/ns/app: something is there` {
		t.Errorf("kept %v, left out %v", kept.Files, kept.LeftOut)
	}
	if all := tree.Without(nil); len(all.Files) != 2 || all.LeftOut != nil {
		t.Errorf("without obstacles: %v, %v", all.Files, all.LeftOut)
	}
}
