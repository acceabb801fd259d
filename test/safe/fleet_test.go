package safe_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// fleet is what a watch shows of Deployments: which versions each one has, in the order of the
// API server's writes. A version is an element of the annotation that a template shows:
// "configmap/app~3fa9c1d2e4".
type fleet struct {
	// began is called with the number of rollouts so far, at each rollout.
	began func(count int)

	mu    sync.Mutex
	seen  map[types.UID]uint64
	now   map[string]sight
	steps map[string][]step
	done  map[string]map[string]bool
	most  map[string]int
	count map[string]int
}

// sight is a Deployment as the watch showed it last.
type sight struct {
	shown    string
	template string
	complete bool
}

func (s sight) has(version string) bool {
	return slices.Contains(strings.Split(s.shown, ","), version)
}

// step is the begin of a version's rollout: the Deployment, and how many others had completed one
// with this version.
type step struct {
	name      string
	completed int
}

func newFleet() *fleet {
	return &fleet{
		began: func(int) {},
		seen:  map[types.UID]uint64{}, now: map[string]sight{}, steps: map[string][]step{},
		done: map[string]map[string]bool{}, most: map[string]int{}, count: map[string]int{},
	}
}

// watch adds the Deployments of a namespace.
func (f *fleet) watch(t testing.TB, c client.WithWatch, namespace string) {
	t.Helper()
	events, err := c.Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && event.Type != watch.Deleted {
				f.note(d)
			}
		}
	}()
}

func (f *fleet) note(d *appsv1.Deployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := d.Namespace + "/" + d.Name
	before, known := f.now[name]
	next := sight{shown: d.Spec.Template.Annotations[settings.Inputs], template: d.Spec.Template.String(), complete: isComplete(d)}
	f.now[name] = next
	f.count[name] += 0 // one that was never rolled out counts too
	f.seen[d.UID], _ = strconv.ParseUint(d.ResourceVersion, 10, 64)
	for version := range strings.SplitSeq(next.shown, ",") {
		f.judge(name, version, before, next)
	}
	if known && before.template != next.template {
		f.count[name]++
		f.began(f.sum())
	}
}

func (f *fleet) judge(name, version string, before, next sight) {
	if !before.has(version) {
		f.steps[version] = append(f.steps[version], step{name, len(f.done[version])})
	}
	if next.complete {
		if f.done[version] == nil {
			f.done[version] = map[string]bool{}
		}
		f.done[version][name] = true
	}
	rolling := 0
	for _, s := range f.now {
		if s.has(version) && !s.complete {
			rolling++
		}
	}
	f.most[version] = max(f.most[version], rolling)
}

// total is the number of rollouts.
func (f *fleet) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum()
}

func (f *fleet) sum() int {
	sum := 0
	for _, n := range f.count {
		sum += n
	}
	return sum
}

// isComplete is "kubectl rollout status".
func isComplete(d *appsv1.Deployment) bool {
	wanted, s := *d.Spec.Replicas, d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == wanted && s.Replicas == wanted && s.AvailableReplicas == wanted
}

// users are the Deployments that show a version, without their namespace, sorted.
func (f *fleet) users(version string) []string {
	return f.names(func(s sight) bool { return s.has(version) })
}

// names are the Deployments that a function selects, without their namespace, sorted.
func (f *fleet) names(selects func(sight) bool) []string {
	names := f.ids(selects)
	for i, id := range names {
		_, names[i], _ = strings.Cut(id, "/")
	}
	slices.Sort(names)
	return names
}

// ids are the Deployments that a function selects, as namespace/name.
func (f *fleet) ids(selects func(sight) bool) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.now {
		if selects(s) {
			ids = append(ids, id)
		}
	}
	return ids
}

// templates are the current pod templates.
func (f *fleet) templates() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, s := range f.now {
		all = append(all, s.template)
	}
	return all
}

// rollouts is how often each Deployment's template was changed.
func (f *fleet) rollouts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.count)
}

// mostRolling is how many Deployments were rolling with a version at the same time, at most.
func (f *fleet) mostRolling(version string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most[version]
}

// begun are the beginnings of a version's rollouts, in order.
func (f *fleet) begun(version string) []step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.steps[version])
}

// catchUp waits until the watch has shown every present Deployment as it is now.
func (f *fleet) catchUp(t testing.TB, w *testkit.World, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		list := &appsv1.DeploymentList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for i := range list.Items {
				version, err := strconv.ParseUint(list.Items[i].ResourceVersion, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				if f.seen[list.Items[i].UID] < version {
					return false, fmt.Sprintf("the watch hasn't shown %s at %d", list.Items[i].Name, version)
				}
			}
			return true, ""
		})
	}
}
