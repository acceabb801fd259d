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

// strongSuffix marks the second key of a source: the strong version, and the SHA-1 that it
// belongs to. When the two keys disagree, the original program has written again, and its SHA-1
// counts.
const strongSuffix = ".sha256"

// LegacyOptions configure where kubernetes-reloader kept its state.
type LegacyOptions struct {
	Namespace, Name string
	Words           legacy.Words
	Now             func() time.Time
	// Report is called with each error while writing the state.
	Report func(error)
	// Status is called when watching the state starts or stops working.
	Status func(mirror.Sync)
}

// Legacy is the record in the form of kubernetes-reloader: one digest for each source, not for
// each workload. A source's digest is written when it has been delivered to all workloads that
// name it. Until then, each workload's delivered version is only in memory and in its template.
type Legacy struct {
	client  client.WithWatch
	cache   *cluster.Cache
	options LegacyOptions
	mirror  *mirror.Mirror[*shardCopy]

	mu sync.Mutex
	// state is the ConfigMap. If another writer removes a key, Lockstep writes it again: this
	// process still knows the value, and the next one would not.
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

// Status reports how well the state can be read.
func (r *Legacy) Status() mirror.Sync {
	return r.mirror.Status()
}

// Entry returns the workload's delivered versions: those that this process delivered, or those
// that its template and the state show. They are fixed at first sight: a SHA-1 alone would not
// show a later change that it doesn't cover.
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

// firstSight is the entry that a workload's template and the state show.
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

// known is the version of a source that was last delivered to the workload.
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

// recogniseSums replaces each version of which only the SHA-1 is known by the current one, if
// that has the same SHA-1.
func (r *Legacy) recogniseSums(w *kube.Workload, e record.Entry) {
	for id, given := range e.Inputs {
		if s, exists := r.cache.Source(w.Key.Namespace, id); exists && given.Version.Sum == s.Legacy {
			given.Version = s.Content.Version(fingerprint.AllKeys())
			e.Inputs[id] = given
		}
	}
}

// digests reads a source's digests; the strong one is zero unless it belongs to the SHA-1 and
// was made as this program makes them.
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

// Put records a workload's delivered versions, and writes each source that has now been
// delivered to all its workloads.
func (r *Legacy) Put(key kube.Key, entry record.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivered[key] = entry.Clone()
	r.settleAll(key.Namespace, entry)
	return nil
}

// Forget removes a workload's entry. Afterwards all remaining workloads may have its sources, or
// none may be left.
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

// settle records the digests of a source that has been delivered to every workload. It records a
// missing source too, so its creation counts as a change.
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

// followers returns the workloads whose annotations name the source.
func (r *Legacy) followers(namespace string, id input.ID) []*kube.Workload {
	var found []*kube.Workload
	for _, key := range r.cache.Users(namespace, id) {
		if w, ok := r.cache.Workload(key); ok && slices.Contains(r.listed(w), id) {
			found = append(found, w)
		}
	}
	return found
}

// stateChanged adopts the current content of the state's ConfigMap.
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

// reportOdd reports entries that aren't digests; they are ignored.
func (r *Legacy) reportOdd(before map[string]string) {
	for key, text := range r.state.stored {
		_, ours := sourceOfKey(key)
		if ours && !strings.HasSuffix(key, strongSuffix) && !fingerprint.IsLegacy(text) && before[key] != text {
			r.options.Report(fmt.Errorf("configmap %s/%s: %s isn't a SHA-1; the current version counts as delivered", r.options.Namespace, r.options.Name, key))
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

// pruneOnce removes the original's leftovers, once the workloads are known.
func (r *Legacy) pruneOnce() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.prune()
}

// prune removes the digests of sources that no workload names; the original kept them until the
// ConfigMap was full. It reports whether it could decide: a kind of workload that cannot be
// listed may name any source.
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

// sourceOfKey parses the source of a digest's key. Object names don't contain the characters
// that the key rule replaces, so parsing is unambiguous.
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

// writeTimeout bounds a write: a hanging connection must not block all further writes.
const writeTimeout = 10 * time.Second

// retry spaces out failing attempts: every second at first, every minute in the end, so a
// permission that stays missing costs next to nothing. A busy or unreachable API server
// recovers, so delivered versions must not wait long for it.
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

// longestOutage is the maximum wait for an API server that did not respond.
const longestOutage = 4 * time.Second

func (r *Legacy) notBefore() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.retry.notBefore
}

// flush writes the changes with one patch, the only verb that the original's role allows.
// Without the object and without permission to create it, the process continues from memory.
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
			r.options.Report(fmt.Errorf("write configmap %s/%s (continuing from memory): %w", r.options.Namespace, r.options.Name, err))
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

// write sends changes and returns the resulting ConfigMap.
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
