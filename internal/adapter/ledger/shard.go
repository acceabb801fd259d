package ledger

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// shardCopy is a ConfigMap of the record from the watch. Its texts are dropped once the shard
// has them.
type shardCopy struct {
	*corev1.ConfigMap
}

func slimShard(object any) (*shardCopy, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	meta := metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, ResourceVersion: cm.ResourceVersion}
	if at := kube.WrittenBy(cm, kube.FieldManager); !at.IsZero() {
		meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.FieldManager, Time: &metav1.Time{Time: at}}}
	}
	return &shardCopy{&corev1.ConfigMap{ObjectMeta: meta, Data: cm.Data}}, nil
}

// SameAs reports whether two copies have the same version.
func (s *shardCopy) SameAs(old *shardCopy) bool { return s.ResourceVersion == old.ResourceVersion }

// shard is this process's state of one ConfigMap of the record: the content in the API server,
// and the changes that aren't written yet.
type shard struct {
	name string
	// writing is full while a request is in flight, so this process never conflicts with itself.
	writing chan struct{}
	// busy is true from the decision to write until the write is over.
	busy bool
	stamp
	complaint string // why the last write failed
	retry     retry
	stored    map[string]string
	// decoded caches the last read entries, each with its text. Decisions on one workload come
	// in series, and most don't change its entry.
	decoded map[string]decoded
	// tooNew are the keys of entries that a newer program wrote.
	tooNew []string
	// dirty holds the texts that differ from stored; nil removes a key.
	dirty map[string]*string
	// sent holds the changes last sent to the API server, until it has accepted them. The watch
	// may report them before the response arrives.
	sent map[string]*string
	// sentAt is the known version at the time of sending.
	sentAt string
	// insists is true where Lockstep's texts win over another writer's, and are written again
	// when another writer removes them; otherwise the other writer's texts win.
	insists bool
	// taken is the size of the newest texts, and claims is the room reserved for entries that
	// are about to be put.
	taken  tally
	claims map[string]lot
}

// stamp is the known version of a ConfigMap, and when Lockstep last wrote that or an earlier one, by the API
// server's clock.
type stamp struct {
	resourceVersion string
	writtenAt       time.Time
}

func newShard(name string) *shard {
	return &shard{
		name: name, writing: make(chan struct{}, 1), stored: map[string]string{}, dirty: map[string]*string{},
		decoded: map[string]decoded{}, taken: newTally(), claims: map[string]lot{},
	}
}

// get returns the newest text, written or not.
func (s *shard) get(key string) (string, bool) {
	if text, ok := s.dirty[key]; ok {
		if text == nil {
			return "", false
		}
		return *text, true
	}
	text, ok := s.stored[key]
	return text, ok
}

// storedAt is when the API server had stored the text of a key, and in which version, zero while a newer text
// isn't stored.
func (s *shard) storedAt(key string) (at time.Time, version uint64) {
	_, dirty := s.dirty[key]
	if _, sent := s.sent[key]; dirty || sent || s.resourceVersion == "" {
		return time.Time{}, 0
	}
	return s.writtenAt, timeline.WrittenUpTo(s.resourceVersion).Max
}

// set records a text to write; nil removes the key. Changes in flight may change the stored
// text, so even a text that equals the stored one has to be written then.
func (s *shard) set(key string, text *string) {
	defer s.measure(key)
	stored, known := s.stored[key]
	_, sent := s.sent[key]
	if sent {
		s.dirty[key] = text
		return
	}
	if text == nil && !known || text != nil && known && *text == stored {
		delete(s.dirty, key)
		return
	}
	s.dirty[key] = text
}

// send returns the changes to write now.
func (s *shard) send() map[string]*string {
	s.sent, s.sentAt = maps.Clone(s.dirty), s.resourceVersion
	return s.sent
}

// refused is called when the API server rejects the version that the changes are based on. Its
// own version is newer then, even with a lower number: after a restore from a backup, numbers
// start again.
func (s *shard) refused(resourceVersion string) {
	if s.resourceVersion == resourceVersion {
		s.resourceVersion = ""
	}
}

// startedOver reports whether the response has a lower version than the one known when the
// changes were sent. A write comes after everything known before it, so the numbers have started
// again.
func (s *shard) startedOver(answer string) bool {
	return isOlder(answer, s.sentAt)
}

// adopt takes over the API server's content, unless it is older than the known one. It returns
// the keys that another writer changed under an unwritten change of Lockstep, each with a text
// that identifies its workload. The other writer's text wins, and Lockstep has to decide again
// on that workload.
func (s *shard) adopt(cm *corev1.ConfigMap) (overruled map[string]string) {
	if !s.olderThan(cm.ResourceVersion) {
		return nil
	}
	if s.insists {
		s.keepRemoved(cm.Data)
	} else {
		overruled = s.yield(cm.Data)
	}
	s.resourceVersion, s.writtenAt = cm.ResourceVersion, kube.WrittenBy(cm, kube.FieldManager)
	s.stored = maps.Clone(cm.Data)
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	for key, ours := range s.dirty {
		s.set(key, ours) // another writer may have written the very same
	}
	s.measureAll()
	return overruled
}

// yield drops Lockstep's changes to keys that another writer changed.
func (s *shard) yield(data map[string]string) (overruled map[string]string) {
	overruled = map[string]string{}
	for key, ours := range s.dirty {
		before, had := s.stored[key]
		after, has := data[key]
		switch {
		case had == has && before == after, isText(s.sent, key, after, has):
			// No other writer changed it: Lockstep's change still has to be written.
		case ours == nil && has:
			overruled[key] = after
			delete(s.dirty, key)
		case ours != nil && (!has || *ours != after):
			overruled[key] = *ours
			delete(s.dirty, key)
		}
	}
	return overruled
}

// noteTooNew records which entries a newer program wrote.
func (s *shard) noteTooNew() {
	s.tooNew = nil
	for key, text := range s.stored {
		if !strings.HasPrefix(key, unreadableWord) && record.IsTooNew(text) {
			s.tooNew = append(s.tooNew, key)
		}
	}
}

// keepRemoved schedules texts that another writer removed to be written again.
func (s *shard) keepRemoved(data map[string]string) {
	for key, text := range s.stored {
		_, kept := data[key]
		if _, newer := s.dirty[key]; !kept && !newer {
			s.dirty[key] = &text
		}
	}
}

// olderThan reports whether the known version is older than the given one; a version that cannot
// be compared counts as newer.
func (s *shard) olderThan(resourceVersion string) bool {
	return resourceVersion != s.resourceVersion && !isOlder(resourceVersion, s.resourceVersion)
}

// isOlder compares resource versions of one object; a version that cannot be compared isn't
// older.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// isText reports whether the changes set a key to exactly this text, or remove it when it must
// not exist.
func isText(changes map[string]*string, key, text string, exists bool) bool {
	change, ok := changes[key]
	if !ok || change == nil {
		return ok && !exists
	}
	return exists && *change == text
}

// lost is called when the ConfigMap was deleted: all known texts have to be written again.
func (s *shard) lost() {
	s.keepRemoved(nil)
	for key, text := range s.dirty {
		if text == nil {
			delete(s.dirty, key)
		}
	}
	s.resourceVersion, s.stored = "", map[string]string{}
	s.measureAll()
}

// forget drops all state, for a process that does not lead.
func (s *shard) forget() {
	s.resourceVersion, s.stored, s.dirty, s.sent = "", map[string]string{}, map[string]*string{}, nil
	s.tooNew = nil
	s.measureAll()
}

// written is called when the API server has accepted a set of changes. If the watch has reported
// a newer state meanwhile, that state wins; with insists, texts missing there still have to be
// written.
func (s *shard) written(changes map[string]*string, resourceVersion string) {
	overtaken := isOlder(resourceVersion, s.resourceVersion)
	s.sent = nil
	for key, text := range changes {
		if s.dirty[key] == text {
			delete(s.dirty, key)
		}
		_, newer := s.dirty[key]
		switch {
		case overtaken && s.insists && !newer:
			s.set(key, text)
		case overtaken:
		case text == nil:
			delete(s.stored, key)
		default:
			s.stored[key] = *text
		}
		if newest, ok := s.dirty[key]; ok {
			s.set(key, newest) // it may be stored already
		}
		s.measure(key)
	}
	if !overtaken {
		s.resourceVersion = resourceVersion
	}
}
