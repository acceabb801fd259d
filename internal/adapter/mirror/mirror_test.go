package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// A reflector calls it by its name, and would say nothing if that were another one.
var _ cache.ResourceVersionUpdater = (*Mirror[*slimMap])(nil)

// slimMap is what the tests keep of a ConfigMap.
type slimMap struct {
	metav1.ObjectMeta
	value string
}

func (s *slimMap) GetObjectMeta() metav1.Object { return &s.ObjectMeta }
func (s *slimMap) Follow(*slimMap, Arrival)     {}
func (s *slimMap) First(Arrival)                {}
func (s *slimMap) SameAs(old *slimMap) bool     { return s.value == old.value }

// notes is a mirror of ConfigMaps that notes what it tells.
type notes struct {
	*Mirror[*slimMap]
	told []string
}

func newNotes() *notes {
	m := &notes{}
	m.Mirror = New(Options[*slimMap]{Name: "configmaps", Slim: slim, Changed: m.note, Now: time.Now})
	return m
}

func slim(object any) (*slimMap, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, errors.New("no ConfigMap")
	}
	return &slimMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}, value: cm.Data["key"]}, nil
}

func (m *notes) note(old, now *slimMap) {
	switch {
	case old == nil:
		m.told = append(m.told, "+"+now.Name)
	case now == nil:
		m.told = append(m.told, "-"+old.Name)
	default:
		m.told = append(m.told, "~"+now.Name)
	}
}

// hears returns what was told since the last call, sorted.
func (m *notes) hears() []string {
	told := m.told
	m.told = nil
	slices.Sort(told)
	return told
}

func configMap(name string, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version)},
		Data:       map[string]string{"key": "1"},
	}
}

// TestMirrorKnowsWhatItTells: whoever is told of a list's objects must find the
// list complete, or would take the others for missing and not come back.
func TestMirrorKnowsWhatItTells(t *testing.T) {
	t.Parallel()
	m := newNotes()
	told := false
	m.options.Changed = func(_, now *slimMap) {
		told = true
		if _, found := m.Get("shop", now.GetName()); !found || !m.Status().Synced {
			t.Errorf("%s is told of before the list is known: found %t, synced %t", now.GetName(), found, m.Status().Synced)
		}
	}
	if err := m.Replace([]any{configMap("a", 1), configMap("b", 2)}, "3"); err != nil {
		t.Fatal(err)
	}
	if !told {
		t.Error("a list was not told of")
	}
}

// TestMirrorTakesBothFormsOfAList: a streaming list arrives slim, a plain one in
// full, and neither may depend on the other.
func TestMirrorTakesBothFormsOfAList(t *testing.T) {
	t.Parallel()
	m := newNotes()
	slim, err := m.Transformer()(configMap("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Transformer()(slim)
	if err != nil || again != slim {
		t.Fatalf("a slim object is made slim again: %v, %v", again, err)
	}
	if err := m.Replace([]any{slim, configMap("b", 2)}, "3"); err != nil {
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
	m := newNotes()
	odd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	if err := m.Replace([]any{configMap("a", 1), odd}, "2"); err != nil {
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
	m := newNotes()
	if m.Status().Synced {
		t.Error("synced before the first list")
	}
	if err := m.Update(configMap("a", 1)); err != nil {
		t.Fatal(err)
	}
	if m.Status().Synced {
		t.Error("a single object is not a list")
	}
	if err := m.Replace(nil, "2"); err != nil {
		t.Fatal(err)
	}
	if !m.Status().Synced {
		t.Error("not synced after an empty list, which is one")
	}
}

// listOnly is an API server that lets us list, and watch only when that is granted.
type listOnly struct {
	pagingServer

	granted atomic.Bool
}

func (s *listOnly) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if !s.granted.Load() {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
	}
	return s.pagingServer.Watch(ctx, list, options...)
}

// TestMirrorThatMayOnlyList: what is listed now and then is not followed, and that is
// told once and not after each list.
func TestMirrorThatMayOnlyList(t *testing.T) {
	t.Parallel()
	m := newNotes()
	told := make(chan Sync, 100)
	m.link.changed = func() { told <- m.Status() }
	server := &listOnly{}
	testkit.RunInBackground(t, func(ctx context.Context) { m.Run(ctx, server, Scope{List: &corev1.ConfigMapList{}}) })
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		n := server.lists()
		return n >= 3, fmt.Sprintf("it was listed %d times, want 3", n)
	})
	for len(told) > 0 {
		if s := <-told; !s.Forbidden() {
			t.Errorf("told %+v, want the missing permission only", s)
		}
	}
	if !m.Status().Synced {
		t.Error("a list without a watch is a list all the same")
	}
	server.granted.Store(true)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return m.Status().Works(), fmt.Sprintf("with the permission the status is %+v", m.Status())
	})
}

func (s *pagingServer) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}
