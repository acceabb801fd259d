package kube

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// sourceMirror is a mirror of ConfigMaps that notes what it tells, by a clock
// that goes one second at each look.
type sourceMirror struct {
	*Mirror[*Source]
	told  []string
	clock time.Time
}

func newSourceMirror() *sourceMirror {
	m := &sourceMirror{clock: time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)}
	hashers := Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}}}
	slim := func(object any) (*Source, error) { return hashers.slimSource(object, settings.Native{}) }
	m.Mirror = newMirror("configmaps", slim, m.note, m.now)
	return m
}

func (m *sourceMirror) now() time.Time {
	m.clock = m.clock.Add(time.Second)
	return m.clock
}

func (m *sourceMirror) note(old, now *Source) {
	switch {
	case old == nil:
		m.told = append(m.told, "+"+now.ID.Name)
	case now == nil:
		m.told = append(m.told, "-"+old.ID.Name)
	default:
		m.told = append(m.told, "~"+now.ID.Name)
	}
}

// hears returns what was told since the last call, sorted.
func (m *sourceMirror) hears() []string {
	told := m.told
	m.told = nil
	slices.Sort(told)
	return told
}

func (m *sourceMirror) source(t *testing.T, name string) *Source {
	t.Helper()
	s, ok := m.Get("shop", name)
	if !ok {
		t.Fatalf("%s is not in the mirror", name)
	}
	return s
}

func configMap(name string, version int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version)},
		Data:       map[string]string{"key": value},
	}
}

func TestMirrorTellsDifferencesThatMatter(t *testing.T) {
	t.Parallel()
	labelled := configMap("a", 7, "2")
	labelled.Labels = map[string]string{"team": "shop"}
	foreign := configMap("a", 8, "2")
	foreign.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	held := configMap("a", 9, "2")
	held.Annotations = map[string]string{settings.Hold: "audit"}
	steps := []struct {
		reason string
		do     func(*sourceMirror) error
		want   []string
	}{
		{"a list tells all that is there", func(m *sourceMirror) error {
			return m.Replace([]any{configMap("a", 1, "1"), configMap("b", 2, "1")}, "3")
		}, []string{"+a", "+b"}},
		{"the same list again tells nothing", func(m *sourceMirror) error {
			return m.Replace([]any{configMap("a", 1, "1"), configMap("b", 2, "1")}, "4")
		}, nil},
		{"a watch tells a change", func(m *sourceMirror) error { return m.Update(configMap("a", 5, "2")) }, []string{"~a"}},
		{"a watch tells an addition", func(m *sourceMirror) error { return m.Add(configMap("c", 6, "1")) }, []string{"+c"}},
		{"labels matter to nobody", func(m *sourceMirror) error { return m.Update(labelled) }, nil},
		{"nor do annotations of others", func(m *sourceMirror) error { return m.Update(foreign) }, nil},
		{"our own annotations do", func(m *sourceMirror) error { return m.Update(held) }, []string{"~a"}},
		{"a deletion is told once", func(m *sourceMirror) error { return m.Delete(configMap("c", 10, "1")) }, []string{"-c"}},
		{"a deletion of the unknown is nothing", func(m *sourceMirror) error { return m.Delete(configMap("c", 10, "1")) }, nil},
		{"what a list does not have is gone", func(m *sourceMirror) error { return m.Replace([]any{held}, "11") }, []string{"-b"}},
		{"and a list may bring changes", func(m *sourceMirror) error { return m.Replace([]any{configMap("a", 12, "3")}, "12") }, []string{"~a"}},
		{"an empty list empties", func(m *sourceMirror) error { return m.Replace(nil, "13") }, []string{"-a"}},
	}
	m := newSourceMirror()
	for _, s := range steps {
		if err := s.do(m); err != nil {
			t.Fatalf("%s: %v", s.reason, err)
		}
		if diff := cmp.Diff(s.want, m.hears()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", s.reason, diff)
		}
	}
}

// TestMirrorKnowsWhatItTells: whoever is told of a list's objects must find the
// list complete, or would take the others for missing and not come back.
func TestMirrorKnowsWhatItTells(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	told := false
	m.changed = func(_, now *Source) {
		told = true
		if _, found := m.Get("shop", now.ID.Name); !found || !m.link.status().Synced {
			t.Errorf("%s is told of before the list is known: found %t, synced %t", now.ID, found, m.link.status().Synced)
		}
	}
	if err := m.Replace([]any{configMap("a", 1, "1"), configMap("b", 2, "1")}, "3"); err != nil {
		t.Fatal(err)
	}
	if !told {
		t.Error("a list was not told of")
	}
}

// TestMirrorKnowsNewSources: what a source was made with is no change of it.
func TestMirrorKnowsNewSources(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	labelled := configMap("b", 4, "1")
	labelled.Labels = map[string]string{"team": "shop"}
	for _, step := range []struct {
		reason string
		do     func() error
		source string
		want   bool
	}{
		{"how old a listed source is nobody knows", func() error { return m.Replace([]any{configMap("a", 1, "1")}, "2") }, "a", false},
		{"a watch shows it being made", func() error { return m.Add(configMap("b", 3, "1")) }, "b", true},
		{"labels change nothing", func() error { return m.Update(labelled) }, "b", true},
		{"another content does", func() error { return m.Update(configMap("b", 5, "2")) }, "b", false},
		{"and stays one", func() error { return m.Update(configMap("b", 6, "2")) }, "b", false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := m.source(t, step.source).New; got != step.want {
			t.Errorf("%s: new=%t, want %t", step.reason, got, step.want)
		}
	}
}

// TestMirrorBoundsWrites: a watched write is known exactly, one between two lists
// only as far as the lists tell.
func TestMirrorBoundsWrites(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	check := func(reason string, want Bounds, changed bool) {
		t.Helper()
		s := m.source(t, "a")
		if s.ContentWritten != want || s.ChangedAt.IsZero() == changed {
			t.Errorf("%s: written %+v, changed at %s; want %+v and changed=%t", reason, s.ContentWritten, s.ChangedAt, want, changed)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.Replace([]any{configMap("a", 10, "1")}, "20"))
	check("a first list", Bounds{Max: 10}, false)
	must(m.Replace([]any{configMap("a", 15, "1")}, "20"))
	check("a list of the same content", Bounds{Max: 10}, false)
	must(m.Replace([]any{configMap("a", 30, "2")}, "40"))
	check("a change between two lists", Bounds{Min: 16, Max: 30}, true)
	must(m.Update(configMap("a", 50, "3")))
	check("a watched change", Bounds{Min: 50, Max: 50}, true)
	must(m.Update(configMap("a", 60, "3")))
	check("a watched write that changes nothing", Bounds{Min: 50, Max: 50}, true)
	must(m.Delete(configMap("a", 61, "3")))
	must(m.Add(configMap("a", 70, "3")))
	check("made anew before our eyes", Bounds{Min: 70, Max: 70}, true)
}

func TestMirrorKeepsTheFirstSight(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	if err := m.Replace([]any{configMap("a", 1, "1")}, "1"); err != nil {
		t.Fatal(err)
	}
	seen := m.source(t, "a").SeenAt
	if err := m.Update(configMap("a", 2, "2")); err != nil {
		t.Fatal(err)
	}
	if s := m.source(t, "a"); !s.SeenAt.Equal(seen) || !s.ChangedAt.After(seen) {
		t.Errorf("seen at %s, changed at %s; first seen at %s", s.SeenAt, s.ChangedAt, seen)
	}
}

// TestMirrorTakesBothFormsOfAList: a streaming list arrives slim, a plain one in
// full, and neither may depend on the other.
func TestMirrorTakesBothFormsOfAList(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	slim, err := m.Transformer()(configMap("a", 1, "1"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Transformer()(slim)
	if err != nil || again != slim {
		t.Fatalf("a slim object is made slim again: %v, %v", again, err)
	}
	if err := m.Replace([]any{slim, configMap("b", 2, "1")}, "3"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"+a", "+b"}, m.hears()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestMirrorSurvivesOddObjects: one object that cannot be read must not stop the
// watch of its kind.
func TestMirrorSurvivesOddObjects(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	odd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	if err := m.Replace([]any{configMap("a", 1, "1"), odd}, "2"); err != nil {
		t.Fatal(err)
	}
	if err := m.Update(odd); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Get("shop", "a"); ok {
		t.Error("an object that became unreadable is still known by its old content")
	}
}

func TestMirrorIsSyncedByAList(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	if m.link.status().Synced {
		t.Error("synced before the first list")
	}
	if err := m.Update(configMap("a", 1, "1")); err != nil {
		t.Fatal(err)
	}
	if m.link.status().Synced {
		t.Error("a single object is not a list")
	}
	if err := m.Replace(nil, "2"); err != nil {
		t.Fatal(err)
	}
	if !m.link.status().Synced {
		t.Error("not synced after an empty list, which is one")
	}
}
