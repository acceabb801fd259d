package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	// lastWrites limits the time for the last writes of a stopping process.
	lastWrites = 5 * time.Second
	// writesAtATime limits how many shards are written concurrently.
	writesAtATime = 4
)

// Run writes changes until the context ends, and then once more. A hanging shard doesn't block
// the others.
func (r *Records) Run(ctx context.Context) error {
	r.setLeading(true)
	defer r.setLeading(false)
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	var under sync.WaitGroup
	for {
		select {
		case <-ticker.C:
			r.begin(ctx, &under, r.isDue)
		case <-ctx.Done():
			under.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
			defer cancel()
			r.flush(last)
			return nil
		}
	}
}

func (r *Records) setLeading(leading bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = leading
}

// flush writes every shard that has changes.
func (r *Records) flush(ctx context.Context) {
	var under sync.WaitGroup
	r.begin(ctx, &under, func(s *shard) bool { return len(s.dirty) > 0 })
	under.Wait()
}

// begin starts writing the wanted shards that aren't already being written.
func (r *Records) begin(ctx context.Context, under *sync.WaitGroup, wanted func(*shard) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.shards {
		if s.busy || !wanted(s) {
			continue
		}
		s.busy = true
		under.Go(func() {
			r.slots <- struct{}{}
			r.flushShard(ctx, s)
			<-r.slots
			r.mu.Lock()
			defer r.mu.Unlock()
			s.busy = false
		})
	}
}

func (r *Records) flushShard(ctx context.Context, s *shard) {
	_, err := r.write(ctx, s)
	r.countWrite(err)
	if err != nil && !apierrors.IsConflict(err) {
		r.complain(s, fmt.Errorf("write the record %s/%s: %w", r.options.Namespace, s.name, err))
	}
}

// unwritableAfter is the number of consecutive failures that counts as lasting.
const unwritableAfter = 3

// complain reports a failed write, once per distinct error, and delays the next attempt.
func (r *Records) complain(s *shard, err error) {
	now := r.options.Now()
	r.mu.Lock()
	said := s.complaint == err.Error()
	s.complaint, s.retry = err.Error(), s.retry.failed(now, err)
	lasts := s.retry.failures == unwritableAfter
	r.mu.Unlock()
	if !said {
		r.options.Report(err)
	}
	if lasts && r.options.Unwritable != nil {
		r.options.Unwritable(s.name, err)
	}
}

// isDue reports whether a shard has changes and its retry delay is over.
func (r *Records) isDue(s *shard) bool {
	return len(s.dirty) > 0 && !r.options.Now().Before(s.retry.notBefore)
}

// Unwritable returns the shards that cannot be written, with the API server's error.
func (r *Records) Unwritable() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]string{}
	for _, s := range r.shards {
		if s.complaint != "" {
			found[s.name] = s.complaint
		}
	}
	return found
}

// send returns a shard's changes and the version that they are based on. The two belong
// together: a newer version may have overruled the changes.
func (r *Records) send(s *shard) (changes map[string]*string, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.send(), s.resourceVersion
}

// write sends one shard's changes and returns the API server's time of the write. If another
// writer changed the shard meanwhile, write adopts that state and returns a conflict. The next
// flush writes the remaining changes.
func (r *Records) write(ctx context.Context, s *shard) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait for another write: %w", ctx.Err())
	}
	changes, resourceVersion := r.send(s)
	if resourceVersion == "" {
		return r.create(ctx, s, changes)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion, "annotations": map[string]string{settings.Version: r.options.Version}},
		"data":     changes,
	})
	if err != nil {
		return time.Time{}, err
	}
	// Request only metadata in the response: otherwise a full shard would be returned.
	cm := &metav1.PartialObjectMetadata{ObjectMeta: r.meta(s)}
	cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err = r.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, body), client.FieldOwner(kube.FieldManager))
	switch {
	case apierrors.IsNotFound(err):
		r.mu.Lock()
		s.lost()
		r.mu.Unlock()
		return time.Time{}, overtaken(s, "another writer deleted it meanwhile")
	case apierrors.IsConflict(err):
		r.mu.Lock()
		s.refused(resourceVersion)
		r.mu.Unlock()
		return time.Time{}, r.adoptStored(ctx, s)
	case err != nil:
		return time.Time{}, err
	}
	return r.settle(s, changes, cm), nil
}

func (r *Records) create(ctx context.Context, s *shard, changes map[string]*string) (time.Time, error) {
	cm := &corev1.ConfigMap{ObjectMeta: r.meta(s), Data: map[string]string{}}
	cm.Labels = map[string]string{settings.StateLabel: "true"}
	cm.Annotations = map[string]string{settings.Version: r.options.Version}
	for key, text := range changes {
		if text != nil {
			cm.Data[key] = *text
		}
	}
	err := r.client.Create(ctx, cm, client.FieldOwner(kube.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return time.Time{}, r.adoptStored(ctx, s)
	}
	if err != nil {
		return time.Time{}, err
	}
	return r.settle(s, changes, cm), nil
}

// settle records which changes the API server accepted, and when.
func (r *Records) settle(s *shard, changes map[string]*string, cm client.Object) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.complaint, s.retry = "", retry{}
	s.written(changes, cm.GetResourceVersion())
	at := kube.WrittenBy(cm, kube.FieldManager)
	if s.resourceVersion == cm.GetResourceVersion() {
		s.writtenAt = at
	}
	return at
}

// overtaken is the conflict of a write with another writer's change.
func overtaken(s *shard, how string) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), s.name, errors.New(how+"; trying again"))
}

// adoptStored reads a shard that another writer changed, and returns the conflict.
func (r *Records) adoptStored(ctx context.Context, s *shard) error {
	cm := &corev1.ConfigMap{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: s.name}, cm); err != nil {
		return err
	}
	if cm.Labels[settings.StateLabel] != "true" {
		return ErrForeignConfigMap
	}
	r.adopt(s, cm)
	return overtaken(s, "another writer changed it meanwhile")
}

func (r *Records) adopt(s *shard, cm *corev1.ConfigMap) {
	r.mu.Lock()
	overruled := s.adopt(cm)
	s.noteTooNew()
	var keys []kube.Key
	for key, text := range overruled {
		keys = append(keys, affected(key, text)...)
	}
	wake := r.wake
	r.mu.Unlock()
	for _, key := range keys {
		wake(key)
	}
}

func (r *Records) meta(s *shard) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.options.Namespace, Name: s.name}
}
