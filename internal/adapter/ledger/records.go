package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// shardCount spreads the record so that 10,000 workloads stay under 128 KiB a
// ConfigMap; the API server would take up to 1 MiB.
const shardCount = 64

// flushEvery bounds the writes: at most one a shard in this time.
const flushEvery = time.Second

// Options say where the record is kept.
type Options struct {
	// Namespace of the ConfigMaps.
	Namespace string
	// Name that starts the names of the ConfigMaps.
	Name string
	// Now is the clock.
	Now func() time.Time
	// Report is called with each problem of reading or writing the record.
	Report func(error)
	// Status is called when the record can be followed, or no longer.
	Status func(mirror.Status)
}

// ErrForeignConfigMap says that a ConfigMap with the name of a shard exists and is not
// part of a record.
var ErrForeignConfigMap = errors.New("a ConfigMap of this name exists that is not ours (it lacks the label " + settings.StateLabel + ")")

// Records is what was delivered to each workload, kept in ConfigMaps of the
// controller's own namespace. Reading never waits; writing is gathered and done
// by Run, each with the resource version that it was decided on.
type Records struct {
	client  client.WithWatch
	options Options
	mirror  *mirror.Mirror[*shardCopy]

	mu      sync.Mutex
	wake    func(kube.Key)
	shards  map[string]*shard
	leading bool
	writes  cluster.Writes
}

// New makes a record that is empty until Watch.
func New(c client.WithWatch, o Options) *Records {
	r := &Records{client: c, options: o, shards: map[string]*shard{}, wake: func(kube.Key) {}}
	r.mirror = mirror.New(mirror.Options[*shardCopy]{
		Name: "configmaps of the record in " + o.Namespace, Role: mirror.RoleRecord,
		Slim: slimShard, Indexed: r.shardChanged, Report: o.Status, Now: o.Now,
	})
	for i := range shardCount {
		name := fmt.Sprintf("%s-%02d", o.Name, i)
		r.shards[name] = newShard(name)
	}
	return r
}

// Entry returns what is remembered of a workload. An entry that cannot be read
// is reported and returned as lost, so that its workload takes a new baseline. One
// that a newer program wrote is returned as too new and never touched.
func (r *Records) Entry(key kube.Key) (record.Entry, bool) {
	r.mu.Lock()
	text, ok := r.shardOf(key).get(storageKey(key))
	r.mu.Unlock()
	if !ok {
		return record.Entry{}, false
	}
	if record.IsTooNew(text) {
		return record.Entry{TooNew: true}, true
	}
	entry, err := record.Decode(text)
	if err == nil && entry.ID != key.ID() {
		err = fmt.Errorf("entry belongs to %s", entry.ID)
	}
	if err != nil {
		r.options.Report(fmt.Errorf("read the record of %s (a new baseline is taken): %w", key, err))
		return record.Entry{Lost: true}, true
	}
	return entry, true
}

// Put remembers an entry. It is written within a second or two.
func (r *Records) Put(key kube.Key, entry record.Entry) error {
	text, err := entry.Encode()
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(key, &text)
	return nil
}

// replace sets what is remembered of a workload; nil removes it. What a newer program
// wrote is left as it is.
func (r *Records) replace(key kube.Key, text *string) {
	s, stored := r.shardOf(key), storageKey(key)
	if before, ok := s.get(stored); ok {
		if record.IsTooNew(before) {
			return
		}
		if _, err := record.Decode(before); err != nil {
			// A person can still look at it.
			s.set("unreadable."+stored, &before)
		}
	}
	s.set(stored, text)
}

// TooNew lists the entries that a newer program wrote, by the keys they are stored
// under.
func (r *Records) TooNew() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, s := range r.shards {
		keys = append(keys, s.tooNew...)
	}
	slices.Sort(keys)
	return keys
}

// PutNow remembers an entry and waits until it is written. It returns the API
// server's time of the write.
func (r *Records) PutNow(ctx context.Context, key kube.Key, entry record.Entry) (time.Time, error) {
	if err := r.Put(key, entry); err != nil {
		return time.Time{}, err
	}
	s := r.shardOf(key)
	at, err := r.write(ctx, s)
	r.countWrite(err)
	if err == nil && at.IsZero() {
		err = errors.New("the API server does not say when that was")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("write the record of %s: %w", key, err)
	}
	return at, nil
}

// Forget removes what is remembered of a workload.
func (r *Records) Forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(key, nil)
}

// Keys lists the workloads that something is remembered of.
func (r *Records) Keys() []kube.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []kube.Key
	for _, s := range r.shards {
		for _, text := range s.stored {
			if key, ok := idOf(text); ok {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Wake sets the function that is called with a workload whose unwritten change
// was overruled by another writer.
func (r *Records) Wake(f func(kube.Key)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = f
}

// Writes counts the writes of the record.
func (r *Records) Writes() cluster.Writes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

func (r *Records) countWrite(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.writes.Succeeded++
	case apierrors.IsConflict(err):
		r.writes.Conflicted++
	default:
		r.writes.Failed++
	}
}

// Status tells how well the record can be read.
func (r *Records) Status() mirror.Status {
	return r.mirror.Status()
}

// Watch follows the ConfigMaps of the record until the context ends, so that a
// process that begins to lead knows what the last leader delivered, and so that
// a deleted record is written again.
func (r *Records) Watch(ctx context.Context) {
	r.mirror.Run(ctx, r.client, mirror.Scope{
		List: &corev1.ConfigMapList{}, Namespace: r.options.Namespace,
		Selector: labels.SelectorFromSet(labels.Set{settings.StateLabel: "true"}),
	})
}

func (r *Records) shardChanged(old, now *shardCopy) {
	if now != nil {
		if s, ok := r.shards[now.Name]; ok {
			r.adopt(s, now.ConfigMap)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.shards[old.Name]
	switch {
	case !ok:
	case r.leading:
		s.lost()
	default:
		s.forget()
	}
}

// Run writes changes until the context ends, and then once more.
func (r *Records) Run(ctx context.Context) error {
	r.setLeading(true)
	defer r.setLeading(false)
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.flushIf(ctx, r.isDue)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
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
	r.flushIf(ctx, r.hasChanges)
}

func (r *Records) flushIf(ctx context.Context, wanted func(*shard) bool) {
	for _, s := range r.shards {
		if !wanted(s) {
			continue
		}
		_, err := r.write(ctx, s)
		r.countWrite(err)
		if err != nil && !apierrors.IsConflict(err) {
			r.complain(s, fmt.Errorf("write the record %s/%s: %w", r.options.Namespace, s.name, err))
		}
	}
}

// complain reports a failed write, once for as long as it fails in the same way, and
// lets the next attempt wait.
func (r *Records) complain(s *shard, err error) {
	now := r.options.Now()
	r.mu.Lock()
	said := s.complaint == err.Error()
	s.complaint, s.retry = err.Error(), s.retry.failed(now)
	r.mu.Unlock()
	if !said {
		r.options.Report(err)
	}
}

func (r *Records) hasChanges(s *shard) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(s.dirty) > 0
}

// isDue reports whether a shard has changes and is not to be left alone for a while.
func (r *Records) isDue(s *shard) bool {
	now := r.options.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(s.dirty) > 0 && !now.Before(s.retry.notBefore)
}

// send returns a shard's changes and the version that they are changes of. The
// two belong together: a newer version may have overruled them.
func (r *Records) send(s *shard) (changes map[string]*string, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.send(), s.resourceVersion
}

// write sends one shard's changes and returns the API server's time of the
// write. What another writer did meanwhile is read and adopted instead; that is a
// conflict, and the rest is written at the next turn.
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
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"data":     changes,
	})
	if err != nil {
		return time.Time{}, err
	}
	// The answer is asked for as metadata only: a full shard would come back whole.
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

// settle notes what the API server has taken, and when.
func (r *Records) settle(s *shard, changes map[string]*string, cm client.Object) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.complaint, s.retry = "", retry{}
	s.written(changes, cm.GetResourceVersion())
	return kube.WrittenBy(cm, kube.FieldManager)
}

// overtaken is the conflict of a write with what another writer did.
func overtaken(s *shard, how string) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), s.name, errors.New(how+"; trying again"))
}

// adoptStored reads a shard that another writer changed, and says so.
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
	keys := make([]kube.Key, 0, len(overruled))
	for _, text := range overruled {
		if id, ok := idOf(text); ok {
			keys = append(keys, id)
		}
	}
	wake := r.wake
	r.mu.Unlock()
	for _, key := range keys {
		wake(key)
	}
}

// idOf reads which workload a stored text belongs to.
func idOf(text string) (kube.Key, bool) {
	entry, err := record.Decode(text)
	if err != nil {
		return kube.Key{}, false
	}
	key, err := kube.ParseID(entry.ID)
	return key, err == nil
}

func (r *Records) meta(s *shard) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.options.Namespace, Name: s.name}
}

func (r *Records) shardOf(key kube.Key) *shard {
	return r.shardWith(storageKey(key))
}

// shardWith is the shard that has the given key.
func (r *Records) shardWith(stored string) *shard {
	return r.shards[shardName(r.options.Name, stored)]
}

// shardName is the name of the ConfigMap that has the given key.
func shardName(name, stored string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stored))
	return fmt.Sprintf("%s-%02d", name, h.Sum32()%shardCount)
}

// storageKey is the workload's key in a ConfigMap. Names are too long for one
// in rare cases; a digest stands for those.
func storageKey(key kube.Key) string {
	return shortKey(fmt.Sprintf("%s.%s_%s_%s", key.Kind, key.Group, key.Namespace, key.Name))
}

func shortKey(readable string) string {
	if len(readable) <= 200 {
		return readable
	}
	sum := sha256.Sum256([]byte(readable))
	return "sha256_" + hex.EncodeToString(sum[:])
}
