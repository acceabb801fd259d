package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// shardCount keeps each ConfigMap under 128 KiB for 10,000 workloads; the API server accepts up
// to 1 MiB.
const shardCount = 64

// flushEvery limits the writes: at most one per shard in this time.
const flushEvery = time.Second

// Options configure where the record is kept.
type Options struct {
	// Namespace of the ConfigMaps.
	Namespace string
	// Name is the prefix of the ConfigMap names.
	Name string
	// Version of the program, which is written to the ConfigMaps.
	Version string
	// Now is the clock.
	Now func() time.Time
	// Report is called with each error while reading or writing the record.
	Report func(error)
	// Unwritable, if set, is called with a shard that could not be written several times in a
	// row.
	Unwritable func(shard string, err error)
	// Status is called when watching the record starts or stops working.
	Status func(mirror.Sync)
}

// ErrForeignConfigMap means that a ConfigMap with the name of a shard exists and isn't part of a
// record.
var ErrForeignConfigMap = errors.New("another ConfigMap with this name exists (it lacks the label " + settings.StateLabel + ")")

// Records holds the versions delivered to each workload, in ConfigMaps of the controller's own
// namespace. Reads never wait. Run writes changes in batches, each with the resource version
// that they were decided on.
type Records struct {
	client  client.WithWatch
	options Options
	mirror  *mirror.Mirror[*shardCopy]
	// slots is full while the maximum number of shards is being written.
	slots chan struct{}

	mu      sync.Mutex
	wake    func(kube.Key)
	shards  map[string]*shard
	leading bool
	writes  Writes
	// missed are the kinds that were not installed at the last sweep.
	missed map[schema.GroupKind]bool
	// unwritten are the failed versions and series of changes that have no room.
	unwritten map[string]string
	// tooOld reports the first entry in an earlier format.
	tooOld sync.Once
}

// Writes counts the writes of a record. A conflicted write met another writer; its changes are
// written later.
type Writes struct{ Succeeded, Failed, Conflicted int }

// New makes a record that is empty until Watch.
func New(c client.WithWatch, o Options) *Records {
	r := &Records{client: c, options: o, shards: map[string]*shard{}, unwritten: map[string]string{}, wake: func(kube.Key) {}, slots: make(chan struct{}, writesAtATime)}
	r.mirror = mirror.New(mirror.Options[*shardCopy]{
		Name: "configmaps of the record in " + o.Namespace, Role: mirror.RoleRecord,
		Slim: slimShard, Indexed: r.shardChanged, Seen: func(_, now *shardCopy) { now.Data = nil }, Report: o.Status, Now: o.Now,
	})
	for _, name := range ShardNames(o.Name) {
		r.shards[name] = newShard(name)
	}
	return r
}

// Entry returns a workload's entry. An unreadable entry is reported and returned as lost, so its
// workload gets a new baseline. Entries in an earlier format are reported once. One that a newer
// program wrote is returned as too new and never changed.
func (r *Records) Entry(key kube.Key) (record.Entry, bool) {
	r.mu.Lock()
	s, stored := r.shardOf(key), storageKey(key)
	entry, ok, err := s.entry(stored)
	entry.WrittenAt, entry.Version = s.storedAt(stored)
	r.mu.Unlock()
	if !ok {
		return record.Entry{}, false
	}
	if isTooNew(err) {
		return record.Entry{Unstored: record.Unstored{TooNew: true}}, true
	}
	if err == nil && entry.ID != key.ID() {
		err = fmt.Errorf("entry belongs to %s", entry.ID)
	}
	switch {
	case err == nil:
		return entry, true
	case isTooOld(err):
		r.tooOld.Do(func() {
			r.options.Report(fmt.Errorf("an earlier version wrote the record (each workload gets a new baseline): %w", err))
		})
	default:
		r.options.Report(fmt.Errorf("read the record of %s (a new baseline is taken): %w", key, err))
	}
	return record.Entry{Unstored: record.Unstored{Lost: true}}, true
}

// Put stores an entry. It is written within a second or two.
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

// replace sets a workload's entry; nil removes it. Entries that a newer program wrote stay
// unchanged.
func (r *Records) replace(key kube.Key, text *string) {
	s, stored := r.shardOf(key), storageKey(key)
	_, ok, err := s.entry(stored)
	if isTooNew(err) {
		return
	}
	if before, _ := s.get(stored); ok && err != nil && !isTooOld(err) {
		s.set(unreadableWord+stored, &before) // an operator can still inspect it
	}
	s.set(stored, text)
}

// TooNew lists the storage keys of the entries that a newer program wrote.
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

// PutNow stores an entry and waits until it is written. It returns the API server's time of the
// write.
func (r *Records) PutNow(ctx context.Context, key kube.Key, entry record.Entry) (time.Time, error) {
	if err := r.Put(key, entry); err != nil {
		return time.Time{}, err
	}
	s := r.shardOf(key)
	at, err := r.write(ctx, s)
	r.countWrite(err)
	if err == nil && at.IsZero() {
		err = errors.New("the API server does not report the time of the write")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("write the record of %s: %w", key, err)
	}
	return at, nil
}

// Forget removes a workload's entry, even an unreadable one.
func (r *Records) Forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(key, nil)
	r.shardOf(key).set(unreadableWord+storageKey(key), nil)
}

// Keys lists the workloads on record.
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
func (r *Records) Writes() Writes {
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

// Status reports how well the record can be read.
func (r *Records) Status() mirror.Sync {
	return r.mirror.Status()
}

// Watch follows the record's ConfigMaps until the context ends, so a new leader knows the
// versions that the last leader delivered, and a deleted record is written again.
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
		now.Data = nil // the shard has the texts; after Lockstep's own write this would be a second copy
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

// idOf parses the workload from a stored text.
func idOf(text string) (kube.Key, bool) {
	entry, err := record.Decode(text)
	if err != nil {
		return kube.Key{}, false
	}
	key, err := kube.ParseID(entry.ID)
	return key, err == nil
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
	return nthShard(name, int(h.Sum32()%shardCount))
}

// ShardNames are the names of all ConfigMaps that a record of the given name may have.
func ShardNames(name string) []string {
	all := make([]string, shardCount)
	for i := range all {
		all[i] = nthShard(name, i)
	}
	return all
}

func nthShard(name string, n int) string { return name + "-" + strconv.Itoa(n/10) + strconv.Itoa(n%10) }

// storageKey is the workload's key in a ConfigMap. A name that is too long is replaced by a
// digest.
func storageKey(key kube.Key) string {
	return shortKey(key.Kind + "." + key.Group + "_" + key.Namespace + "_" + key.Name)
}

// hashedWord is the prefix of a key that is a digest.
const hashedWord = "sha256_"

// maxKey is the maximum length of a key.
const maxKey = 200

func shortKey(readable string) string {
	if len(readable) <= maxKey {
		return readable
	}
	sum := sha256.Sum256([]byte(readable))
	return hashedWord + hex.EncodeToString(sum[:])
}
