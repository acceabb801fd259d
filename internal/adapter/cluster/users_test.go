package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func deploymentKey(namespace, name string) kube.Key {
	return kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: namespace, Name: name}
}

// user is a workload that references ConfigMaps and asks for more by annotation.
func user(name, reload string, references ...string) *kube.Workload {
	w := &kube.Workload{Identity: kube.Identity{Key: deploymentKey("shop", name)}}
	for _, r := range references {
		w.Refs = append(w.Refs, podrefs.Ref{Source: input.ConfigMap(r)})
	}
	if reload != "" {
		w.Annotations = map[string]string{settings.Reload: reload}
	}
	return w
}

// namesOf are the workloads that a change wakes, sorted.
func namesOf(keys []kube.Key) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestUsersOf(t *testing.T) {
	t.Parallel()
	u := newUsers(settings.Native{})
	for _, w := range []*kube.Workload{
		user("references", "", "app", "app-2"),
		user("lists", "configmap/app"),
		user("globs", "configmap/app-*, secret/app"),
		user("both", "configmap/app*", "app"),
		user("broken", "configmap/[", "app"),
	} {
		u.replace(nil, w)
	}
	cases := map[string]struct {
		reason    string
		namespace string
		source    input.ID
		want      string
	}{
		"App":            {"every workload that names it or matches it, each once", "shop", input.ConfigMap("app"), "both broken lists references"},
		"App2":           {"by reference and by pattern", "shop", input.ConfigMap("app-2"), "both globs references"},
		"Pattern":        {"by pattern only", "shop", input.ConfigMap("app-9"), "both globs"},
		"Secret":         {"kinds are not mixed up", "shop", input.Secret("app"), "globs"},
		"OtherNamespace": {"a pod reads its own namespace only", "blog", input.ConfigMap("app"), ""},
		"Unused":         {"nobody", "shop", input.ConfigMap("other"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := namesOf(u.of(place{tc.namespace, tc.source})); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUsersReplaceLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	u := newUsers(settings.Native{})
	before, after := user("web", "configmap/old-*", "old"), user("web", "secret/new-*,secret/new-*1,secret/n*", "new")
	u.replace(nil, before)
	u.replace(before, after)
	for _, gone := range []input.ID{input.ConfigMap("old"), input.ConfigMap("old-1")} {
		if got := u.of(place{"shop", gone}); len(got) > 0 {
			t.Errorf("%s still wakes %v", gone, got)
		}
	}
	for _, used := range []input.ID{input.ConfigMap("new"), input.Secret("new-1")} {
		if got := namesOf(u.of(place{"shop", used})); got != "web" {
			t.Errorf("%s wakes %q, want web", used, got)
		}
	}
	u.replace(after, nil)
	if diff := cmp.Diff([3]int{}, [3]int{len(u.exact), len(u.globs), len(u.prefixes)}); diff != "" {
		t.Errorf("the index keeps something of a deleted workload\n%s", diff)
	}
}

// TestUsersOnce: a workload that names a source and has several patterns for it is woken once.
func TestUsersOnce(t *testing.T) {
	t.Parallel()
	u := newUsers(settings.Native{})
	u.replace(nil, user("web", "configmap/app-*,configmap/*-1,configmap/a*,configmap/app-1", "app-1"))
	if got := u.of(place{"shop", input.ConfigMap("app-1")}); len(got) != 1 {
		t.Errorf("app-1 wakes %v, want web once", got)
	}
}

// TestUsersBeyondTheBound: a workload that lists more names than it can follow takes no room in
// the index. It isn't rolled out, whatever changes.
func TestUsersBeyondTheBound(t *testing.T) {
	t.Parallel()
	list := func(names int, more string) string {
		for i := range names {
			more += fmt.Sprintf(",configmap/app-%d", i)
		}
		return more
	}
	u := newUsers(settings.Native{})
	most := user("most", list(input.MaxInputs, "configmap/app-0"))
	u.replace(nil, most)
	if got := namesOf(u.of(place{"shop", input.ConfigMap("app-255")})); got != "most" {
		t.Errorf("app-255 wakes %q, want most", got)
	}
	u.replace(most, nil)
	u.replace(nil, user("more", list(input.MaxInputs+1, "configmap/a*"), "app"))
	if len(u.exact)+len(u.globs) > 0 {
		t.Errorf("%d names and %d prefixes are in the index", len(u.exact), len(u.globs))
	}
}

// TestUsersOfManyReferences: a workload with more references than it can follow is woken by those
// that it lists.
func TestUsersOfManyReferences(t *testing.T) {
	t.Parallel()
	u := newUsers(settings.Native{})
	references := make([]string, input.MaxInputs+1)
	for i := range references {
		references[i] = fmt.Sprint("more-", i)
	}
	u.replace(nil, user("web", "configmap/app", references...))
	if got := namesOf(u.of(place{"shop", input.ConfigMap("app")})); got != "web" {
		t.Errorf("app wakes %q, want web", got)
	}
}

// TestPatternsTakeTurns: a namespace with many changed sources and patterns doesn't delay the
// workloads that name a source, and delays the patterns of another namespace by one source.
func TestPatternsTakeTurns(t *testing.T) {
	t.Parallel()
	c := NewCache(nil, CacheOptions{Vocabulary: settings.Native{}})
	greedy, patient, named := user("greedy", "configmap/*"), user("patient", "configmap/*"), user("named", "", "app")
	greedy.Key.Namespace = "greedy"
	for _, w := range []*kube.Workload{greedy, patient, named} {
		c.workloadIndexed(nil, w)
	}
	var woken []string
	ctx, cancel := context.WithCancel(t.Context())
	c.Wake(func(key kube.Key) {
		if woken = append(woken, key.Name); key == patient.Key {
			cancel()
			c.changed.ShutDown()
		}
	})
	for i := range 1000 {
		c.sourceChanged(nil, &kube.Source{Namespace: "greedy", ID: input.ConfigMap(fmt.Sprint("c-", i))})
	}
	c.sourceChanged(nil, &kube.Source{Namespace: "shop", ID: input.ConfigMap("app")})
	c.wakeByPattern(ctx)
	if diff := cmp.Diff([]string{"named", "greedy", "patient"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

// TestPatternsSearchTheirPrefix: a pattern is compared only with names that begin like it, in
// its own namespace, however many others there are.
func TestPatternsSearchTheirPrefix(t *testing.T) {
	t.Parallel()
	c := NewCache(nil, CacheOptions{Sources: []input.Kind{input.KindConfigMap, input.KindSecret}, Vocabulary: settings.Native{}, Now: time.Now})
	c.hashers = kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{}}
	all, _ := c.areas.Of("")
	sources := all.sources[input.KindConfigMap]
	add := func(namespace, name string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}}
		if err := sources.Add(cm); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	for i := range 100 {
		add(fmt.Sprint("n", i%50), fmt.Sprint("app-", i))
		add("n7", fmt.Sprint("other-", i))
	}
	search := func(pattern string) (found []string) {
		for id := range c.SourcesMatching("n7", settings.Pattern{Kind: input.KindConfigMap, Name: pattern}) {
			found = append(found, id.Name)
		}
		return found
	}
	if diff := cmp.Diff([]string{"app-57", "app-7"}, search("app-*")); diff != "" {
		t.Errorf("app-* (-want +got):\n%s", diff)
	}
	compared := slices.Collect(all.names.withPrefix(sources, place{"n7", input.ConfigMap("")}, "app-"))
	if len(compared) != 2 {
		t.Errorf("a pattern is compared with %v, want only the names of its namespace that begin like it", compared)
	}
	gone := add("n7", "app-1")
	if diff := cmp.Diff([]string{"app-1", "app-57", "app-7"}, search("app-*")); diff != "" {
		t.Errorf("after a source was created (-want +got):\n%s", diff)
	}
	if err := sources.Delete(gone); err != nil {
		t.Fatal(err)
	}
	if got := search("*7"); len(got) != 12 {
		t.Errorf("*7 finds %v, want app-7, app-57 and ten others, and not the deleted source", got)
	}
	if got := search("nothing-*"); got != nil {
		t.Errorf("nothing-* finds %v", got)
	}
}
