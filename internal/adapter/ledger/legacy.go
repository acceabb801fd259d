package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/legacyform"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// strongSuffix marks the second key of a source: the strong version, and the
// SHA-1 that it goes with. When the two keys disagree the original program has
// been at work again, and its SHA-1 counts.
const strongSuffix = ".sha256"

// LegacyOptions say where kubernetes-reloader kept its state.
type LegacyOptions struct {
	Namespace, Name string
	Words           legacy.Words
	Now             func() time.Time
	// Report is called with each problem of writing the state.
	Report func(error)
	// Status is called when the state can be followed, or no longer.
	Status func(mirror.Sync)
}

// Legacy is the record in the form of kubernetes-reloader: one digest for
// each source, not for each workload. A source's digest is written when all the
// workloads that name it have been given it; until then what each was given is
// only in memory and in its template.
type Legacy struct {
	client  client.WithWatch
	cache   *cluster.Cache
	options LegacyOptions
	mirror  *mirror.Mirror[*shardCopy]

	mu sync.Mutex
	// state is the ConfigMap. What another writer takes out is written again: this
	// process still knows it, and the next one would not.
	state     *shard
	delivered map[kube.Key]record.Entry
}

// NewLegacy makes a record that is empty until Watch.
func NewLegacy(c client.WithWatch, cache *cluster.Cache, o LegacyOptions) *Legacy {
	r := &Legacy{
		client: c, cache: cache, options: o,
		state: newShard(o.Name), delivered: map[kube.Key]record.Entry{},
	}
	r.state.insists = true
	r.mirror = mirror.New(mirror.Options[*shardCopy]{
		Name: "configmap " + o.Name, Role: mirror.RoleRecord,
		Slim: slimShard, Indexed: r.stateChanged, Report: o.Status, Now: o.Now,
	})
	return r
}

// Watch follows the state's ConfigMap until the context ends.
func (r *Legacy) Watch(ctx context.Context) {
	r.mirror.Run(ctx, r.client, mirror.Scope{List: &corev1.ConfigMapList{}, Namespace: r.options.Namespace, Name: r.options.Name})
}

// Status tells how well the state can be read.
func (r *Legacy) Status() mirror.Sync {
	return r.mirror.Status()
}

// Entry returns what the workload was given: what this process gave it, or what
// its template and the state show. That is settled at first sight: a SHA-1 alone
// would not tell of a later change that it does not see.
func (r *Legacy) Entry(key kube.Key) (record.Entry, bool) {
	w, ok := r.cache.Workload(key)
	if !ok {
		return record.Entry{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.delivered[key]
	e := r.entry(w)
	if !known {
		r.settleAll(key.Namespace, e)
	}
	return e, true
}

func (r *Legacy) entry(w *kube.Workload) record.Entry {
	e, ok := r.delivered[w.Key]
	if !ok || e.UID != w.UID {
		e = r.firstSight(w)
	}
	r.recogniseSums(w, e)
	if len(e.Inputs) > 0 {
		r.delivered[w.Key] = e
	}
	return e.Clone()
}

// firstSight is what template and state tell of a workload.
func (r *Legacy) firstSight(w *kube.Workload) record.Entry {
	e := record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.ID]record.Delivered{}}
	for _, id := range r.listed(w) {
		if v, known := r.known(w, id); known {
			e.Inputs[id] = record.Delivered{Version: v}
		}
	}
	return e
}

func (r *Legacy) listed(w *kube.Workload) []input.ID {
	patterns := r.options.Words.Intent(w.Annotations, nil).Listed
	list := make([]input.ID, len(patterns))
	for i, p := range patterns {
		list[i] = input.ID(p)
	}
	return list
}

// known is the version that a source had when the workload was last given it.
func (r *Legacy) known(w *kube.Workload, id input.ID) (fingerprint.Version, bool) {
	sum, strong := r.digests(id)
	s, exists := r.cache.Source(w.Key.Namespace, id)
	switch {
	case exists && legacyform.Shows(w, s, r.listed(w), sum):
		return s.Content.Version(fingerprint.AllKeys()), true
	case !strong.IsZero():
		return strong, true
	case sum != "":
		return fingerprint.Version{Basis: r.basis(id.Kind), Sum: sum}, true
	}
	return fingerprint.Version{}, false
}

func (r *Legacy) basis(kind input.Kind) string {
	return r.cache.Absent(kind, fingerprint.AllKeys()).Basis
}

// recogniseSums replaces each version of which only the SHA-1 is known by the
// current one, where that has the same SHA-1.
func (r *Legacy) recogniseSums(w *kube.Workload, e record.Entry) {
	for id, given := range e.Inputs {
		if s, exists := r.cache.Source(w.Key.Namespace, id); exists && given.Version.Sum == s.Legacy {
			given.Version = s.Content.Version(fingerprint.AllKeys())
			e.Inputs[id] = given
		}
	}
}

// digests reads a source's digests; the strong one is zero when there is none that
// goes with the SHA-1 and was made as this program makes them.
func (r *Legacy) digests(id input.ID) (sum string, strong fingerprint.Version) {
	key := legacy.SourceKey(id)
	if sum = r.value(key); !fingerprint.IsLegacy(sum) {
		sum = ""
	}
	text, goesWith, _ := strings.Cut(r.value(key+strongSuffix), " ")
	if v, err := fingerprint.ParseVersion(text); err == nil && goesWith == sum && v.Basis == r.basis(id.Kind) {
		strong = v
	}
	return sum, strong
}

func (r *Legacy) value(key string) string {
	text, _ := r.state.get(key)
	return text
}

// Put remembers what a workload was given, and writes down each source that all
// its workloads have now.
func (r *Legacy) Put(key kube.Key, entry record.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivered[key] = entry.Clone()
	r.settleAll(key.Namespace, entry)
	return nil
}

// Forget removes what is remembered of a workload. All the workloads that are left
// may now have its sources, or there may be none left.
func (r *Legacy) Forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, ok := r.delivered[key]
	if !ok {
		return
	}
	delete(r.delivered, key)
	r.settleAll(key.Namespace, entry)
	r.prune()
}

func (r *Legacy) settleAll(namespace string, e record.Entry) {
	for id := range e.Inputs {
		r.settle(namespace, id)
	}
}

// settle notes the digests of a source that every workload has. Of a source that
// was never there it notes that, so that its coming is a change.
func (r *Legacy) settle(namespace string, id input.ID) {
	followers := r.followers(namespace, id)
	if len(followers) == 0 {
		return
	}
	current, sum := r.cache.Absent(id.Kind, fingerprint.AllKeys()), ""
	source, exists := r.cache.Source(namespace, id)
	if exists {
		current, sum = source.Content.Version(fingerprint.AllKeys()), source.Legacy
	}
	for _, w := range followers {
		if r.entry(w).Inputs[id].Version != current {
			return
		}
	}
	key := legacy.SourceKey(id)
	if exists {
		r.state.set(key, &sum)
	}
	strong := strings.TrimSuffix(current.String()+" "+sum, " ")
	r.state.set(key+strongSuffix, &strong)
}

// followers are the workloads whose annotations name the source.
func (r *Legacy) followers(namespace string, id input.ID) []*kube.Workload {
	var found []*kube.Workload
	for _, key := range r.cache.Users(namespace, id) {
		if w, ok := r.cache.Workload(key); ok && slices.Contains(r.listed(w), id) {
			found = append(found, w)
		}
	}
	return found
}

// stateChanged takes what the state's ConfigMap says now.
func (r *Legacy) stateChanged(_, now *shardCopy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.state.stored
	if now == nil {
		r.state.lost()
	} else {
		r.state.adopt(now.ConfigMap)
		r.reportOdd(before)
	}
	// The object may just have become writable.
	r.state.retry = retry{}
}

// reportOdd tells of entries that are no digests; they count as not there.
func (r *Legacy) reportOdd(before map[string]string) {
	for key, text := range r.state.stored {
		_, ours := sourceOfKey(key)
		if ours && !strings.HasSuffix(key, strongSuffix) && !fingerprint.IsLegacy(text) && before[key] != text {
			r.options.Report(fmt.Errorf("configmap %s/%s: %s is no SHA-1; what exists is taken as delivered", r.options.Namespace, r.options.Name, key))
		}
	}
}

// Run writes changes until the context ends, and then once more.
func (r *Legacy) Run(ctx context.Context) error {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	pruned := false
	for {
		select {
		case <-ticker.C:
			pruned = pruned || r.pruneOnce()
			if now := r.options.Now(); !now.Before(r.notBefore()) {
				r.flush(ctx, now)
			}
		case <-ctx.Done():
			r.flush(context.WithoutCancel(ctx), r.options.Now())
			return nil
		}
	}
}

// pruneOnce takes out what the original left, once the workloads are known.
func (r *Legacy) pruneOnce() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.prune()
}

// prune takes out the digests of sources that no workload names; the original
// kept them until the ConfigMap was full. It reports whether it could tell: a
// kind of workload that cannot be listed may name any source.
func (r *Legacy) prune() bool {
	for _, s := range append(r.cache.Status(), r.Status()) {
		if s.Role != mirror.RoleSource && !s.Synced {
			return false
		}
	}
	for key := range r.state.stored {
		id, ok := sourceOfKey(key)
		if ok && !r.options.Words.Ignores(id.Kind) && len(r.followers(r.options.Namespace, id)) == 0 {
			r.state.set(key, nil)
		}
	}
	return true
}

// sourceOfKey reads whose digest a key holds. Names of objects have none of the
// characters that the key rule replaces, so the key can be taken apart.
func sourceOfKey(key string) (input.ID, bool) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(key, strongSuffix), "v1.")
	if !ok {
		return input.ID{}, false
	}
	kind, name, ok := strings.Cut(name, "_")
	if !ok || kind != string(input.KindConfigMap) && kind != string(input.KindSecret) {
		return input.ID{}, false
	}
	return input.ID{Kind: input.Kind(kind), Name: name}, true
}

// writeTimeout bounds a write: a connection that hangs must not end all writing.
const writeTimeout = 10 * time.Second

// retry spaces out attempts that fail: every second at first, every minute in
// the end, so that a permission that is missing for good costs next to nothing. An API
// server that is busy or away will be back: then what was given must not wait.
type retry struct {
	failures  int
	notBefore time.Time
}

func (t retry) failed(now time.Time, err error) retry {
	longest := time.Minute
	if access.IsTransient(err) {
		longest = longestOutage
	}
	delay := min(flushEvery<<min(t.failures, 6), longest)
	return retry{t.failures + 1, now.Add(delay)}
}

// longestOutage is how long to wait at most for an API server that did not answer.
const longestOutage = 4 * time.Second

func (r *Legacy) notBefore() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.retry.notBefore
}

// flush writes what changed with one patch, which is all that the original's
// role allows. Without the object and without the permission to make it the process
// goes on from memory.
func (r *Legacy) flush(ctx context.Context, now time.Time) {
	r.mu.Lock()
	changes := r.state.send()
	r.mu.Unlock()
	if len(changes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	stored, err := r.write(ctx, changes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.state.retry = r.state.retry.failed(now, err)
		if r.state.complaint != err.Error() {
			r.options.Report(fmt.Errorf("write configmap %s/%s (going on from memory): %w", r.options.Namespace, r.options.Name, err))
		}
		r.state.complaint = err.Error()
		return
	}
	r.state.complaint, r.state.retry = "", retry{}
	if r.state.startedOver(stored.ResourceVersion) {
		r.state.refused(r.state.resourceVersion)
		r.state.adopt(stored)
	}
	r.state.written(changes, stored.ResourceVersion)
}

// write sends changes and returns the ConfigMap that they led to.
func (r *Legacy) write(ctx context.Context, changes map[string]*string) (*corev1.ConfigMap, error) {
	body, err := json.Marshal(map[string]any{"data": changes})
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: r.options.Name}}
	err = r.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, body), client.FieldOwner(kube.FieldManager))
	if !apierrors.IsNotFound(err) {
		return cm, err
	}
	fresh := &corev1.ConfigMap{ObjectMeta: cm.ObjectMeta, Data: map[string]string{}}
	for key, text := range changes {
		if text != nil {
			fresh.Data[key] = *text
		}
	}
	err = r.client.Create(ctx, fresh, client.FieldOwner(kube.FieldManager))
	return fresh, err
}
