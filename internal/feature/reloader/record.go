package reloader

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

const (
	// recordLabel is the value of the label on the ConfigMaps of the record.
	recordLabel = "reloader"
	// shards is the number of these ConfigMaps, and maxShard bounds the size of one.
	shards   = 16
	maxShard = 900 << 10
	// horizonKey is the key of the horizons, which no namespace can have.
	horizonKey = ".horizons"
	// writeEvery is how often the record is written if it has changed, and horizonEvery if only
	// the horizons have.
	writeEvery   = time.Second
	horizonEvery = time.Minute
)

// entry is what is on record of a source.
type entry struct {
	// hash is the version that was delivered.
	hash string
	// owed are the workloads that don't have it yet.
	owed []string
}

// horizon is up to where everything in an area was seen.
type horizon struct {
	Version uint64
	// At is when that was so, by the API server's clock. A record without it was written then.
	At time.Time
}

// record remembers which versions were delivered, in ConfigMaps that are written as a whole: the
// role allows to create and update them, and not to patch them. It knows followed sources only. Of
// all others, the horizons tell whether they were written while no process watched.
type record struct {
	// wrote is told whether the record could be read or written.
	wrote           func(name string, err error)
	namespace, name string
	Dependencies

	mu       sync.Mutex
	by       map[string]map[id]entry
	horizons map[string]horizon
	dirty    [shards]bool
	versions [shards]string
	// aged is when the horizons were last written, and written the same by the API server's clock.
	aged, written time.Time
	said          string
}

func newRecord(namespace, name string, d Dependencies) *record {
	return &record{namespace: namespace, name: name, wrote: func(string, error) {}, Dependencies: d, by: map[string]map[id]entry{}, horizons: map[string]horizon{}}
}

// read replaces what is known by what is stored.
func (r *record) read(ctx context.Context) error {
	if r.namespace == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by, r.horizons, r.dirty, r.versions = map[string]map[id]entry{}, map[string]horizon{}, [shards]bool{}, [shards]string{}
	return pages.Each(ctx, r.Client, &corev1.ConfigMapList{}, func(o client.Object) bool {
		r.readShard(o.(*corev1.ConfigMap))
		return true
	}, client.InNamespace(r.namespace), client.MatchingLabels{settings.StateLabel: recordLabel})
}

func (r *record) readShard(o *corev1.ConfigMap) {
	number, own := strings.CutPrefix(o.Name, r.shardName(""))
	i, err := strconv.Atoi(number)
	if !own || err != nil || i < 0 || i >= shards {
		return // It belongs to another installation.
	}
	r.versions[i] = o.ResourceVersion
	for namespace, text := range o.Data {
		if namespace == horizonKey {
			r.readHorizons(text, kube.WrittenBy(o, FieldManager))
			continue
		}
		r.by[namespace] = parseEntries(text)
	}
}

// readHorizons reads lines like "CONFIGMAP/shop 1234 1794969990". An unreadable one is like none.
func (r *record) readHorizons(text string, at time.Time) {
	r.written = at
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || number(fields[1]) == 0 {
			continue
		}
		h := horizon{Version: number(fields[1]), At: at}
		if len(fields) > 2 {
			seconds, _ := strconv.ParseInt(fields[2], 10, 64)
			h.At = time.Unix(seconds, 0)
		}
		r.horizons[strings.Clone(fields[0])] = h
	}
}

func formatHorizons(all map[string]horizon) string {
	var text strings.Builder
	for _, area := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s %d", area, all[area].Version)
		if at := all[area].At; !at.IsZero() {
			fmt.Fprintf(&text, " %d", at.Unix())
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// parseEntries reads lines like "CONFIGMAP app 3fa9… Deployment/web,Job/load".
func parseEntries(text string) map[id]entry {
	all := map[id]entry{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		e := entry{hash: strings.Clone(fields[2])}
		if len(fields) > 3 {
			e.owed = strings.Split(strings.Clone(fields[3]), ",")
		}
		all[id{stakater.Type(strings.Clone(fields[0])), strings.Clone(fields[1])}] = e
	}
	return all
}

func formatEntries(all map[id]entry) string {
	var text strings.Builder
	for _, of := range sorting.Keys(all, compareIDs) {
		e := all[of]
		fmt.Fprintf(&text, "%s %s %s", of.Type, of.Name, e.hash)
		if len(e.owed) > 0 {
			text.WriteString(" " + strings.Join(e.owed, ","))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// entry is what is on record of a source.
func (r *record) entry(namespace string, of id) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.by[namespace][of]
	return e, ok
}

// entries are those of a namespace.
func (r *record) entries() map[string][]id {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string][]id, len(r.by))
	for namespace, entries := range r.by {
		all[namespace] = slices.Collect(maps.Keys(entries))
	}
	return all
}

// put records the delivered version of a source.
func (r *record) put(namespace string, of id, e entry) {
	slices.Sort(e.owed)
	e.owed = slices.Compact(e.owed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.by[namespace][of]; ok && old.hash == e.hash && slices.Equal(old.owed, e.owed) {
		return
	}
	if r.by[namespace] == nil {
		r.by[namespace] = map[id]entry{}
	}
	r.by[namespace][of] = e
	r.dirty[shardOf(namespace)] = true
}

// forget removes a source.
func (r *record) forget(namespace string, of id) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.by[namespace][of]; !ok {
		return
	}
	delete(r.by[namespace], of)
	if len(r.by[namespace]) == 0 {
		delete(r.by, namespace)
	}
	r.dirty[shardOf(namespace)] = true
}

// isKnown reports whether an earlier process left a record.
func (r *record) isKnown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.horizons) > 0
}

// horizon is up to where an area was seen by an earlier process.
func (r *record) horizon(area string) (horizon, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.horizons[area]
	return h, ok
}

// sight is up to where an area has been seen.
type sight struct {
	version uint64
	// held is true when something after it was seen too, or can't be: the record that is written
	// next says nothing about when the version was the last one.
	held bool
}

// see notes up to where areas have been seen.
func (r *record) see(seen map[string]sight) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := len(r.horizons) > 0
	for area, s := range seen {
		h := r.horizons[area]
		if s.version > h.Version {
			h.Version = s.version
			r.dirty[0] = r.dirty[0] || !known || now.Sub(r.aged) >= horizonEvery
		}
		switch {
		case !s.held:
			h.At = time.Time{}
		case h.At.IsZero():
			h.At = r.written
		}
		r.horizons[area] = h
	}
}

// run writes the record when it has changed, and once more at the end, when nothing is under way.
func (r *record) run(ctx context.Context, see func(), passes sync.Locker) {
	if r.namespace == "" {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		see()
		r.write(ctx)
	}, writeEvery)
	passes.Lock()
	defer passes.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	see()
	r.mu.Lock()
	r.dirty[0] = true
	r.mu.Unlock()
	r.write(ctx)
}

// write writes the shards that have changed. One that can't be written is tried again.
func (r *record) write(ctx context.Context) {
	for i := range shards {
		o := r.take(i)
		if o == nil {
			continue
		}
		err := r.store(ctx, i, o)
		r.report(err)
		if err != nil {
			r.mu.Lock()
			r.dirty[i] = true
			r.mu.Unlock()
		}
	}
}

// take is a shard that has to be written, nil if it hasn't changed.
func (r *record) take(i int) *corev1.ConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty[i] {
		return nil
	}
	r.dirty[i] = false
	return r.shard(i)
}

// store creates or replaces a shard. Only the leader writes, so what it knows replaces what
// another process wrote.
func (r *record) store(ctx context.Context, i int, o *corev1.ConfigMap) error {
	o.ResourceVersion = r.versions[i]
	write := func() error {
		if o.ResourceVersion == "" {
			return r.Client.Create(ctx, o, client.FieldOwner(FieldManager))
		}
		return r.Client.Update(ctx, o, client.FieldOwner(FieldManager))
	}
	err := write()
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		stored := &corev1.ConfigMap{}
		found := r.Client.Get(ctx, client.ObjectKeyFromObject(o), stored)
		if client.IgnoreNotFound(found) != nil {
			return found
		}
		o.ResourceVersion = stored.ResourceVersion
		err = write()
	}
	if err != nil {
		return fmt.Errorf("write the record %s/%s: %w", o.Namespace, o.Name, err)
	}
	r.versions[i] = o.ResourceVersion
	if i == 0 {
		r.mu.Lock()
		r.written = kube.WrittenBy(o, FieldManager)
		r.mu.Unlock()
	}
	return nil
}

// shard is the ConfigMap as it is to be stored. Namespaces without room are left out, the largest
// first.
func (r *record) shard(i int) *corev1.ConfigMap {
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.shardName(fmt.Sprintf("%02d", i)), Labels: map[string]string{settings.StateLabel: recordLabel}},
		Data:       map[string]string{},
	}
	size := 0
	for namespace, entries := range r.by {
		if shardOf(namespace) == i {
			o.Data[namespace] = formatEntries(entries)
			size += len(o.Data[namespace])
		}
	}
	for size > maxShard {
		largest := slices.MaxFunc(slices.Collect(maps.Keys(o.Data)), func(a, b string) int { return len(o.Data[a]) - len(o.Data[b]) })
		size -= len(o.Data[largest])
		delete(o.Data, largest)
	}
	if i == 0 {
		o.Data[horizonKey] = formatHorizons(r.horizons)
		r.aged = r.Now()
	}
	return o
}

// report logs once that the record can't be written.
func (r *record) report(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	said := ""
	if err != nil {
		said = string(apierrors.ReasonForError(err))
	}
	r.wrote("record in "+r.namespace, err)
	if said != r.said && err != nil {
		r.Log.Error(err, "cannot record delivered versions, so a change while this process is down is found only where templates show it")
	}
	r.said = said
}

func (r *record) shardName(number string) string { return r.name + "-state-" + number }

func shardOf(namespace string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace))
	return int(h.Sum32() % shards)
}
