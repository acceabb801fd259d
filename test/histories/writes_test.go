package histories_test

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// writes are what watches show of the workload and its sources.
type writes struct {
	t    *testing.T
	kind kube.Kind

	mu    sync.Mutex
	facts []written
	// seen is the last resource version of each object, empty when it is gone, and shown
	// what Lockstep wrote into the template of each workload.
	seen, shown map[string]string
	texts       map[*histories.Workload]string
	rollouts    map[*histories.Workload]*unstructured.Unstructured
	orphan      bool
	victim      *testkit.Controller
}

// written is a write as a fact, and the object.
type written struct {
	fact   histories.Fact
	object client.Object
	gone   bool
}

func newWrites(t *testing.T, world *testkit.World, kind kube.Kind) *writes {
	t.Helper()
	r := &writes{t: t, kind: kind, seen: map[string]string{}, shown: map[string]string{}, texts: map[*histories.Workload]string{}, rollouts: map[*histories.Workload]*unstructured.Unstructured{}}
	lists := []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}}
	if kind.Kind != kube.Deployment().Kind {
		lists = append(lists, kind.NewList())
	}
	for _, list := range lists {
		events, err := testkit.NewClient(t, world.Cluster.Kubeconfig()).Watch(t.Context(), list, client.InNamespace(world.Namespace))
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			for event := range events.ResultChan() {
				if o, ok := event.Object.(client.Object); ok {
					r.note(o, event.Type == "DELETED")
				}
			}
		})
		t.Cleanup(func() { events.Stop(); done.Wait() })
	}
	return r
}

// note makes a fact of an event, and kills whoever is to be killed at its patch.
func (r *writes) note(o client.Object, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := factOf(o)
	if f.Workload != nil && !gone {
		// Whoever writes a field last owns it.
		rollout, isRollout := o.(*unstructured.Unstructured)
		if isRollout {
			r.rollouts[f.Workload] = rollout
		}
		kind := r.kind
		if _, ok := o.(*appsv1.Deployment); ok {
			kind = kube.Deployment()
		}
		slim, err := kube.SlimWorkload(kind, o, settings.Native{})
		text := asDeployment(o).Spec.Template.Annotations[settings.Inputs]
		f.Lockstep = err == nil && !slim.RolledOutAt.IsZero() && r.shown[o.GetName()] != text
		r.shown[o.GetName()], r.texts[f.Workload] = text, text
	}
	if f.Lockstep && r.victim != nil {
		r.victim.Signal(r.t, syscall.SIGKILL)
		r.victim = nil
	}
	if !slices.Contains([]string{testkit.Web, "app", "db", "extra", "more"}, o.GetName()) {
		return
	}
	f.Version, _ = strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	f.At = time.Now()
	name := nameOf(o, o.GetName())
	r.seen[name] = o.GetResourceVersion()
	if gone {
		f.Content, f.Held, f.Workload, f.Orphaned = "", false, nil, r.orphan
		r.seen[name] = ""
	}
	r.facts = append(r.facts, written{f, o, gone})
}

func (r *writes) arm(victim *testkit.Controller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.victim = victim
}

func (r *writes) isArmed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.victim != nil
}

func (r *writes) orphaning(orphan bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orphan = orphan
}

// text is what Lockstep wrote into a template, and rollout the Rollout that has it.
func (r *writes) text(w *histories.Workload) (text string, rollout *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts[w], r.rollouts[w]
}

func (r *writes) hasSeen(name, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[name] == version
}

// take returns the writes since the last call, in the order of their resource versions.
func (r *writes) take() []written {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.facts
	r.facts = nil
	slices.SortStableFunc(all, func(a, b written) int { return cmp.Compare(a.fact.Version, b.fact.Version) })
	return all
}
