package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// sourceMirror is a mirror of ConfigMaps that notes what it tells, by a clock
// that goes one second at each look.
type sourceMirror struct {
	*mirror.Mirror[*Source]
	told  []string
	clock time.Time
}

func newSourceMirror() *sourceMirror {
	m := &sourceMirror{clock: time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)}
	hashers := Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}}}
	slim := func(object any) (*Source, error) { return hashers.Slim(object, settings.Native{}) }
	m.Mirror = mirror.New(mirror.Options[*Source]{Name: "configmaps", Slim: slim, Changed: m.note, Now: m.now})
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

func TestSourcesTellDifferencesThatMatter(t *testing.T) {
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

// TestSourceKnowsItIsNew: what a source was made with is no change of it.
func TestSourceKnowsItIsNew(t *testing.T) {
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

// TestSourceBoundsWrites: a watched write is known exactly, one between two lists
// only as far as the lists tell.
func TestSourceBoundsWrites(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	check := func(reason string, want timeline.Bounds, changed bool) {
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
	check("a first list", timeline.Bounds{Max: 10}, false)
	must(m.Replace([]any{configMap("a", 15, "1")}, "20"))
	check("a list of the same content, which may have been another one between", timeline.Bounds{Max: 15}, false)
	must(m.Replace([]any{configMap("a", 30, "2")}, "40"))
	check("a change between two lists", timeline.Bounds{Min: 21, Max: 30}, true)
	must(m.Update(configMap("a", 50, "3")))
	check("a watched change", timeline.Bounds{Min: 50, Max: 50}, true)
	must(m.Update(configMap("a", 60, "3")))
	check("a watched write that changes nothing", timeline.Bounds{Min: 50, Max: 50}, true)
	must(m.Delete(configMap("a", 61, "3")))
	must(m.Add(configMap("a", 70, "3")))
	check("made anew before our eyes", timeline.Bounds{Min: 70, Max: 70}, true)
	m.UpdateResourceVersion("80")
	must(m.Replace([]any{configMap("a", 90, "4")}, "95"))
	check("a change since the watch was in step", timeline.Bounds{Min: 81, Max: 90}, true)
	must(m.Replace([]any{configMap("a", 90, "4")}, "99"))
	check("a list of the same object", timeline.Bounds{Min: 81, Max: 90}, true)
	if got := m.source(t, "a").Missed; got != (timeline.Bounds{}) {
		t.Errorf("no write was missed: %+v", got)
	}
	m.UpdateResourceVersion("100")
	must(m.Replace([]any{configMap("a", 110, "4")}, "115"))
	check("a list of the same content, written since", timeline.Bounds{Min: 81, Max: 110}, true)
	if got, want := m.source(t, "a").Missed, (timeline.Bounds{Min: 101, Max: 110}); got != want {
		t.Errorf("a write was missed: %+v, want %+v", got, want)
	}
	must(m.Update(configMap("a", 120, "5")))
	if got := m.source(t, "a").Missed; got != (timeline.Bounds{}) {
		t.Errorf("another content is there, and its bounds tell: %+v", got)
	}
}

// TestSourceBoundsItsWish: what a source asked for when it was first seen is no news.
func TestSourceBoundsItsWish(t *testing.T) {
	t.Parallel()
	m := newSourceMirror()
	with := func(version int, annotations map[string]string) *corev1.ConfigMap {
		cm := configMap("a", version, "1")
		cm.Annotations = annotations
		return cm
	}
	asking := map[string]string{settings.Reload: "auto"}
	for _, step := range []struct {
		reason string
		do     func() error
		want   timeline.Bounds
	}{
		{"seen for the first time", func() error { return m.Add(with(10, nil)) }, timeline.Bounds{}},
		{"another setting asks for nobody", func() error { return m.Update(with(20, map[string]string{settings.Hold: "x"})) }, timeline.Bounds{}},
		{"it asks", func() error { return m.Update(with(30, asking)) }, timeline.Bounds{Min: 30, Max: 30}},
		{"and still does", func() error { return m.Update(with(40, asking)) }, timeline.Bounds{Min: 30, Max: 30}},
		{"a list shows that it does not", func() error { return m.Replace([]any{with(60, nil)}, "70") }, timeline.Bounds{Min: 41, Max: 60}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := m.source(t, "a").AskWritten; got != step.want {
			t.Errorf("%s: %+v, want %+v", step.reason, got, step.want)
		}
	}
}

func TestSourceKeepsTheFirstSight(t *testing.T) {
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

// TestSourceKeepsNoContent: kubectl leaves a copy of the content in an annotation.
func TestSourceKeepsNoContent(t *testing.T) {
	t.Parallel()
	o := metav1.ObjectMeta{Namespace: "shop", Name: "a", Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"data":{"password":"hunter2"}}`,
		settings.Hold:                      "kept",
		settings.ImagePrefix + "app":       "dropped",
	}}
	hashers := Hashers{Legacy: true}
	for _, object := range []any{
		&corev1.Secret{ObjectMeta: o, Data: map[string][]byte{"password": []byte("hunter2")}},
		&corev1.ConfigMap{ObjectMeta: o, Data: map[string]string{"password": "hunter2"}, BinaryData: map[string][]byte{"b": []byte("hunter2")}},
	} {
		s, err := hashers.Slim(object, settings.Native{})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v", *s)
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%+v", []byte("hunter2"))) {
			t.Errorf("content is kept of %T: %s", object, text)
		}
		if s.ID.Name != "a" || s.Legacy == "" || s.Annotations[settings.Hold] != "kept" || len(s.Annotations) != 1 {
			t.Errorf("what is needed is not kept of %T: %s", object, text)
		}
	}
}

// TestContentWrittenAt: a write that only removes a key keeps its writer's time, and one of something else
// changes it.
func TestContentWrittenAt(t *testing.T) {
	t.Parallel()
	second := func(n int) time.Time { return time.Unix(int64(1_800_000_000+n), 0) }
	written := func(version, at int, value string, more ...string) *corev1.ConfigMap {
		cm := configMap("a", version, value)
		for _, key := range more {
			cm.Data[key] = value
		}
		cm.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Time: &metav1.Time{Time: second(at)},
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`),
		}}
		return cm
	}
	m := newSourceMirror()
	for _, step := range []struct {
		reason string
		do     func() error
		want   time.Time
	}{
		{"a list shows it", func() error { return m.Replace([]any{written(1, 10, "1", "b", "c")}, "2") }, second(10)},
		{"a change leaves its time", func() error { return m.Update(written(3, 20, "2", "b", "c")) }, second(20)},
		{"also one in the same second", func() error { return m.Update(written(4, 20, "3", "b", "c")) }, second(20)},
		{"a write of something else isn't one of the content", func() error { return m.Update(written(5, 30, "3", "b", "c")) }, second(20)},
		{"a removed key leaves none", func() error { return m.Update(written(6, 30, "3", "b")) }, time.Time{}},
		{"and a later write of something else doesn't tell", func() error { return m.Update(written(7, 40, "3", "b")) }, time.Time{}},
		{"a list may hide a change", func() error { return m.Replace([]any{written(8, 50, "3", "b")}, "8") }, second(50)},
		{"or show one", func() error { return m.Replace([]any{written(9, 60, "4")}, "9") }, second(60)},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := m.source(t, "a").ContentWrittenAt; !got.Equal(step.want) {
			t.Errorf("%s: %s, want %s", step.reason, got, step.want)
		}
	}
}
