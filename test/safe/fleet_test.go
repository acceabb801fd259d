package safe_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// watch adds the Deployments of a namespace. It lists and watches again when the API server ends
// the watch.
func (f *fleet) watch(t testing.TB, c client.WithWatch, namespace string) {
	t.Helper()
	testkit.RunInBackground(t, func(ctx context.Context) {
		for untilDone(ctx) {
			if err := f.follow(ctx, c, namespace); err != nil && ctx.Err() == nil {
				t.Logf("watch the Deployments of %s: %v", namespace, err)
			}
		}
	})
}

// untilDone is false when a context has ended. It paces attempts.
func untilDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(25 * time.Millisecond):
		return true
	}
}

// follow notes the present Deployments and then each change. What completed unseen comes first: it
// may be what a rollout that began unseen has waited for.
func (f *fleet) follow(ctx context.Context, c client.WithWatch, namespace string) error {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	open := slices.DeleteFunc(slices.Clone(list.Items), func(d appsv1.Deployment) bool { return isComplete(&d) })
	complete := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return !isComplete(&d) })
	for _, d := range slices.Concat(complete, open) {
		f.note(&d)
	}
	events, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok && event.Type != watch.Deleted {
			f.note(d)
		}
	}
	return nil
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

// onRollout sets what is called now, and at each rollout.
func (f *fleet) onRollout(began func(count int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = began
	began(f.sum())
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
