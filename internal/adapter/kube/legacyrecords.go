package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// strongSuffix marks the second key of a source: the strong version, and the
// SHA-1 that it goes with. When the two keys disagree the original program has
// been at work again, and its SHA-1 counts.
const strongSuffix = ".sha256"

// LegacyRecordsOptions say where kubernetes-reloader kept its state.
type LegacyRecordsOptions struct {
	Namespace, Name string
	Words           legacy.Words
	Now             func() time.Time
	// Report is called with each problem of writing the state.
	Report func(error)
	// Status is called when the state can be followed, or no longer.
	Status func(Status)
}

// LegacyRecords is the record in the form of kubernetes-reloader: one digest for
// each source, not for each workload. A source's digest is written when all the
// workloads that name it have been given it; until then what each was given is
// only in memory and in its template.
type LegacyRecords struct {
	client  client.WithWatch
	cache   *Cache
	options LegacyRecordsOptions
	mirror  *Mirror[*shardCopy]

	mu        sync.Mutex
	stored    map[string]string
	dirty     map[string]*string
	given     map[Key]record.Entry
	saidError string
}

// NewLegacyRecords makes a record that is empty until Watch.
func NewLegacyRecords(c client.WithWatch, cache *Cache, o LegacyRecordsOptions) *LegacyRecords {
	r := &LegacyRecords{
		client: c, cache: cache, options: o,
		stored: map[string]string{}, dirty: map[string]*string{}, given: map[Key]record.Entry{},
	}
	r.mirror = newMirror("configmap "+o.Name, slimShard, r.stateChanged, o.Now)
	r.mirror.link.changed = func() { o.Status(r.Status()) }
	return r
}

// Watch follows the state's ConfigMap until the context ends.
func (r *LegacyRecords) Watch(ctx context.Context) {
	r.mirror.run(ctx, r.client, scope{list: &corev1.ConfigMapList{}, namespace: r.options.Namespace, name: r.options.Name})
}

// Status tells how well the state can be read.
func (r *LegacyRecords) Status() Status {
	return r.mirror.status(RoleRecord)
}

// Since is unknown: the state does not tell when it was begun.
func (r *LegacyRecords) Since() time.Time {
	return time.Time{}
}

// Keys is empty: the state does not tell of workloads.
func (r *LegacyRecords) Keys() []Key {
	return nil
}

// Wake has nothing to call: nobody else writes what a workload was given.
func (r *LegacyRecords) Wake(func(Key)) {}

// Entry returns what the workload was given: what this process gave it, or what
// its template and the state show.
func (r *LegacyRecords) Entry(key Key) (record.Entry, bool) {
	w, ok := r.cache.Workload(key)
	if !ok {
		return record.Entry{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry(w), true
}

func (r *LegacyRecords) entry(w *Workload) record.Entry {
	if e, ok := r.given[w.Key]; ok && e.UID == w.UID {
		return e.Clone()
	}
	e := record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.Source]record.Given{}}
	for _, p := range r.options.Words.Intent(w.Annotations, nil).Listed {
		source, exists := r.cache.Source(w.Key.Namespace, input.Source(p))
		if !exists {
			continue
		}
		if v, known := r.known(w, source); known {
			e.Inputs[source.ID] = record.Given{Version: v}
		}
	}
	return e
}

// known is the version that a source had when the workload was last given it.
func (r *LegacyRecords) known(w *Workload, s *Source) (fingerprint.Version, bool) {
	current := s.Content.Version(fingerprint.AllKeys())
	sum, strong := r.state(s.ID)
	switch {
	case w.showsLegacy(s, current) && (sum != s.Legacy || strong.IsZero()):
		return current, true
	case !strong.IsZero():
		return strong, true
	case sum == s.Legacy:
		return current, true
	case sum != "":
		// Another content, of which only a SHA-1 is known: different is all that
		// has to be said of it.
		return fingerprint.Version{Basis: current.Basis, Sum: sum}, true
	}
	return fingerprint.Version{}, false
}

// showsLegacy reports whether the template shows the source's content.
func (w *Workload) showsLegacy(s *Source, current fingerprint.Version) bool {
	for _, shared := range []bool{false, true} {
		name := legacy.SourceVariable(s.ID, shared)
		for _, c := range w.Containers {
			if m, ok := c.Markers[name]; ok && (m.Value == s.Legacy || m.Value == s.Legacy+"-"+current.Short()) {
				return true
			}
		}
	}
	return false
}

// state reads a source's digests; the strong one is zero when there is none that
// goes with the SHA-1.
func (r *LegacyRecords) state(id input.Source) (sum string, strong fingerprint.Version) {
	key := legacy.SourceKey(id)
	sum = r.value(key)
	text, goesWith, _ := strings.Cut(r.value(key+strongSuffix), " ")
	if v, err := fingerprint.ParseVersion(text); err == nil && goesWith == sum {
		strong = v
	}
	return sum, strong
}

func (r *LegacyRecords) value(key string) string {
	if text, ok := r.dirty[key]; ok {
		if text == nil {
			return ""
		}
		return *text
	}
	return r.stored[key]
}

// Put remembers what a workload was given, and writes down each source that all
// its workloads have now.
func (r *LegacyRecords) Put(key Key, entry record.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given[key] = entry.Clone()
	for source := range entry.Inputs {
		r.settle(key.Namespace, source)
	}
	return nil
}

// PutNow is for strategies that this form of the record cannot serve.
func (r *LegacyRecords) PutNow(context.Context, Key, record.Entry) (time.Time, error) {
	return time.Time{}, errors.New("the state of kubernetes-reloader has no place for this")
}

// Forget removes what is remembered of a workload; its sources may now be with
// everyone who is left.
func (r *LegacyRecords) Forget(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, ok := r.given[key]
	if !ok {
		return
	}
	delete(r.given, key)
	for source := range entry.Inputs {
		r.settle(key.Namespace, source)
	}
}

// settle notes the digests of a source that every workload has.
func (r *LegacyRecords) settle(namespace string, id input.Source) {
	source, exists := r.cache.Source(namespace, id)
	users := r.cache.Users(namespace, id)
	if !exists || len(users) == 0 {
		return
	}
	current := source.Content.Version(fingerprint.AllKeys())
	for _, key := range users {
		w, ok := r.cache.Workload(key)
		if ok && r.follows(w, id) && r.entry(w).Inputs[id].Version != current {
			return
		}
	}
	key := legacy.SourceKey(id)
	r.set(key, source.Legacy)
	r.set(key+strongSuffix, current.String()+" "+source.Legacy)
}

func (r *LegacyRecords) follows(w *Workload, id input.Source) bool {
	for _, p := range r.options.Words.Intent(w.Annotations, nil).Listed {
		if input.Source(p) == id {
			return true
		}
	}
	return false
}

func (r *LegacyRecords) set(key, text string) {
	if r.stored[key] == text {
		delete(r.dirty, key)
		return
	}
	r.dirty[key] = &text
}

func (r *LegacyRecords) stateChanged(_, now *shardCopy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now != nil {
		r.stored = maps.Clone(now.Data)
		if r.stored == nil {
			r.stored = map[string]string{}
		}
		return
	}
	// Deleted: all that it said has to be said again.
	for key, text := range r.stored {
		if _, newer := r.dirty[key]; !newer {
			r.dirty[key] = &text
		}
	}
	r.stored = map[string]string{}
}

// Run writes changes until the context ends, and then once more.
func (r *LegacyRecords) Run(ctx context.Context) error {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		select {
		case <-prune.C:
			r.prune()
		case <-ticker.C:
			r.flush(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			r.flush(last)
			return nil
		}
	}
}

// pruneEvery is how often digests that nobody needs are taken out.
const pruneEvery = time.Minute

// prune takes out the digests of sources that no workload names; the original
// kept them until the ConfigMap was full.
func (r *LegacyRecords) prune() {
	if !r.cache.Answered() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.stored {
		if id, ok := sourceOfKey(key); ok && len(r.cache.Users(r.options.Namespace, id)) == 0 {
			r.dirty[key] = nil
		}
	}
}

// sourceOfKey reads whose digest a key holds. Names of objects have none of the
// characters that the key rule replaces, so the key can be taken apart.
func sourceOfKey(key string) (input.Source, bool) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(key, strongSuffix), "v1.")
	if !ok {
		return input.Source{}, false
	}
	kind, name, ok := strings.Cut(name, "_")
	if !ok || kind != string(input.KindConfigMap) && kind != string(input.KindSecret) {
		return input.Source{}, false
	}
	return input.Source{Kind: input.Kind(kind), Name: name}, true
}

// flush writes what changed with one patch, which is all that the original's
// role allows. Without the object and without the right to make it the process
// goes on from memory.
func (r *LegacyRecords) flush(ctx context.Context) {
	r.mu.Lock()
	changes := maps.Clone(r.dirty)
	r.mu.Unlock()
	if len(changes) == 0 {
		return
	}
	err := r.write(ctx, changes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.saidError != err.Error() {
			r.options.Report(fmt.Errorf("write configmap %s/%s (going on from memory): %w", r.options.Namespace, r.options.Name, err))
		}
		r.saidError = err.Error()
		return
	}
	r.saidError = ""
	for key, text := range changes {
		if r.dirty[key] == text {
			delete(r.dirty, key)
		}
		if text == nil {
			delete(r.stored, key)
		} else {
			r.stored[key] = *text
		}
	}
}

func (r *LegacyRecords) write(ctx context.Context, changes map[string]*string) error {
	body, err := json.Marshal(map[string]any{"data": changes})
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: r.options.Name}}
	err = r.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, body), client.FieldOwner(FieldManager))
	if !apierrors.IsNotFound(err) {
		return err
	}
	fresh := &corev1.ConfigMap{ObjectMeta: cm.ObjectMeta, Data: map[string]string{}}
	for key, text := range changes {
		if text != nil {
			fresh.Data[key] = *text
		}
	}
	return r.client.Create(ctx, fresh, client.FieldOwner(FieldManager))
}
