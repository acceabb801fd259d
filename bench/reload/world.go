package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// creators is how many objects are created at the same time.
const creators = 32

// world lists the objects on the control plane, and their state from the watch.
type world struct {
	client   kubernetes.Interface
	replicas int
	text     *textPool
	sources  []*source
	updates  atomic.Int64

	mu        sync.Mutex
	workloads map[string]*workload // by kind and name
	changed   time.Time            // when the watch last showed a rollout
	moves     []move               // rollouts that began or ended
	problem   error
}

func newWorld(c kubernetes.Interface, replicas int) *world {
	return &world{client: c, replicas: replicas, text: newTextPool(), workloads: map[string]*workload{}}
}

// addSource adds a source, which populate creates.
func (w *world) addSource(kind input.Kind, name string, size, weight int) *source {
	s := &source{id: input.ID{Kind: kind, Name: name}, size: size, weight: weight, text: w.text}
	w.sources = append(w.sources, s)
	return s
}

func (w *world) configMap(name string) *source {
	return w.addSource(input.KindConfigMap, name, 64, 0)
}

// addWorkload adds a workload, which populate creates.
func (w *world) addWorkload(kind, name string, sources ...*source) *workload {
	made := &workload{kind: kind, name: name, sources: sources, replicas: w.replicas}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workloads[kind+"/"+name] = made
	return made
}

// populate creates everything, first the sources.
func (w *world) populate(ctx context.Context) error {
	began := time.Now()
	err := parallel(ctx, len(w.sources), func(ctx context.Context, i int) error {
		if i > 0 && i%5000 == 0 {
			say("  made %d of %d ConfigMaps and Secrets in %.0f s", i, len(w.sources), time.Since(began).Seconds())
		}
		return w.sources[i].create(ctx, w.client)
	})
	if err != nil {
		return err
	}
	all := w.all()
	return parallel(ctx, len(all), func(ctx context.Context, i int) error { return all[i].create(ctx, w.client) })
}

// all are the workloads, in random order.
func (w *world) all() []*workload {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.workloads))
}

// parallel calls do for 0 to n-1, several at a time, until one fails.
func parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(creators, n) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// watch follows the workloads of every kind from now on, until the context ends.
func (w *world) watch(ctx context.Context) error {
	for _, begin := range w.watches() {
		events, err := begin(ctx, "")
		if err != nil {
			return fmt.Errorf("watch workloads: %w", err)
		}
		go w.follow(ctx, begin, events)
	}
	return nil
}

type beginWatch func(ctx context.Context, resourceVersion string) (watch.Interface, error)

func (w *world) watches() []beginWatch {
	options := func(rv string) metav1.ListOptions {
		hour := int64(3600)
		return metav1.ListOptions{ResourceVersion: rv, TimeoutSeconds: &hour}
	}
	apps, batch := w.client.AppsV1(), w.client.BatchV1()
	return []beginWatch{
		func(ctx context.Context, rv string) (watch.Interface, error) {
			return apps.Deployments(namespace).Watch(ctx, options(rv))
		},
		func(ctx context.Context, rv string) (watch.Interface, error) {
			return apps.StatefulSets(namespace).Watch(ctx, options(rv))
		},
		func(ctx context.Context, rv string) (watch.Interface, error) {
			return apps.DaemonSets(namespace).Watch(ctx, options(rv))
		},
		func(ctx context.Context, rv string) (watch.Interface, error) {
			return batch.CronJobs(namespace).Watch(ctx, options(rv))
		},
	}
}

// follow handles every event. A watch that ends is resumed where it ended, so no rollout is
// missed.
func (w *world) follow(ctx context.Context, begin beginWatch, events watch.Interface) {
	last := ""
	for {
		for e := range events.ResultChan() {
			if e.Type == watch.Error {
				w.fail(apierrors.FromObject(e.Object))
				return
			}
			last = w.take(e)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if events, err = begin(ctx, last); err != nil {
			w.fail(err)
			return
		}
	}
}

// take handles one event and returns its resource version.
func (w *world) take(e watch.Event) string {
	about, _, err := templateOf(e.Object)
	if err != nil {
		w.fail(err)
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, known := w.workloads[kindOf(e.Object)+"/"+about.GetName()]
	if !known {
		return about.GetResourceVersion()
	}
	if e.Type == watch.Deleted {
		seen.gone = true
		return about.GetResourceVersion()
	}
	before := seen.written
	if err := seen.observe(e.Object); err != nil {
		w.problem = errors.Join(w.problem, err)
	}
	if seen.written != before {
		w.changed = time.Now()
		w.moves = append(w.moves, move{at: w.changed})
		seen.rolling = true
	}
	if seen.rolling && isDone(e.Object) {
		w.moves = append(w.moves, move{at: time.Now(), done: true})
		seen.rolling = false
	}
	return about.GetResourceVersion()
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem = errors.Join(w.problem, err)
}

// seen waits until the watch has shown every workload.
func (w *world) seen(ctx context.Context) error {
	for {
		missing := 0
		w.mu.Lock()
		for _, made := range w.workloads {
			if made.written == 0 {
				missing++
			}
		}
		err := w.problem
		w.mu.Unlock()
		if missing == 0 || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// rollouts is how many times a pod template was changed.
func (w *world) rollouts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, made := range w.workloads {
		sum += made.rollouts
	}
	return sum
}

// stale lists the workloads with a source that was changed after their template: pods of the
// current rollout may run with old content.
func (w *world) stale() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for name, made := range w.workloads {
		if made.gone || made.readsByItself() {
			continue
		}
		for _, s := range made.sources {
			if written, _ := s.lastWrite(); written > made.written {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// lastChange is when the load last changed a content.
func (w *world) lastChange() time.Time {
	var last time.Time
	for _, s := range w.sources {
		if _, at := s.lastWrite(); at.After(last) {
			last = at
		}
	}
	return last
}

// misshown lists the workloads whose template shows Lockstep digests that differ from the
// current content. Programs that don't show digests are not judged by it.
func (w *world) misshown(ctx context.Context) ([]string, error) {
	hashers := map[input.Kind]fingerprint.Hasher{}
	secret, err := w.client.CoreV1().Secrets(ownNamespace).Get(ctx, "lockstep-installation-key", metav1.GetOptions{})
	switch {
	case err == nil:
		hashers[input.KindSecret] = fingerprint.NewKeyedHasher(secret.Data["key"])
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for name, made := range w.workloads {
		if made.gone || made.shown == "" || made.readsByItself() {
			continue
		}
		shown := input.ParseShown(made.shown)
		for _, s := range made.sources {
			if shown[s.id].Digest != s.digest(hashers[s.id.Kind]) {
				list = append(list, name)
				break
			}
		}
	}
	return list, nil
}

// jobs is how many Jobs exist. There should be none, since no schedule is due.
func (w *world) jobs(ctx context.Context) (int, error) {
	list, err := w.client.BatchV1().Jobs(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// change writes new content to a source and counts it.
func (w *world) change(ctx context.Context, s *source) error {
	w.updates.Add(1)
	return s.change(ctx, w.client)
}
