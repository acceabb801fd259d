package ledger

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// shardCopy is a ConfigMap of the record as the watch delivers it. Its texts are dropped when the shard has them.
type shardCopy struct {
	*corev1.ConfigMap
}

func slimShard(object any) (*shardCopy, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &shardCopy{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, ResourceVersion: cm.ResourceVersion}, Data: cm.Data}}, nil
}

// SameAs reports whether two copies are of one version.
func (s *shardCopy) SameAs(old *shardCopy) bool { return s.ResourceVersion == old.ResourceVersion }

// shard is one ConfigMap of the record as this process knows it: what the API
// server holds, and what has yet to be written there.
type shard struct {
	name string
	// writing is full while a request is under way, so that this process never
	// conflicts with itself.
	writing chan struct{}
	// busy is true from when a write is decided on until it is over.
	busy            bool
	resourceVersion string
	complaint       string // why the last write failed
	retry           retry
	stored          map[string]string
	// decoded are the entries that were read last, each with its text. Looks at one workload
	// come in series, and nothing has changed at most of them.
	decoded map[string]decoded
	// tooNew are the keys of entries that a newer program wrote.
	tooNew []string
	// dirty holds the texts that differ from stored; nil removes a key.
	dirty map[string]*string
	// sent is what was last sent to the API server, until it has taken it. The watch
	// may deliver it before the answer does.
	sent map[string]*string
	// sentAt is the version that was known when it was sent.
	sentAt string
	// insists is true where our texts stand against another writer's, and where what
	// another writer removes is written again; else the other writer's stand.
	insists bool
	// taken is what the newest texts take, and claims what is kept free for entries that
	// are about to be put.
	taken  tally
	claims map[string]lot
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

// set notes a text that has to be written; nil removes the key. What is sent may change
// what is stored, so that a text which equals that is to be written as well.
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

// send returns the changes that are to be written now.
func (s *shard) send() map[string]*string {
	s.sent, s.sentAt = maps.Clone(s.dirty), s.resourceVersion
	return s.sent
}

// refused is called when the API server does not have the version that changes were
// made of. Its own is newer then, even with a lower number: after a restore from a
// backup numbers begin again.
func (s *shard) refused(resourceVersion string) {
	if s.resourceVersion == resourceVersion {
		s.resourceVersion = ""
	}
}

// startedOver reports whether the answer to what was sent has a lower number than what
// was known when it was sent. A write comes after all that was known before it, so the
// numbers have begun again.
func (s *shard) startedOver(answer string) bool {
	return isOlder(answer, s.sentAt)
}

// adopt takes over what the API server holds, unless that is older than what we
// know. It returns the keys that another writer changed under our own unwritten
// change, each with a text that names its workload: theirs stands, and the
// decision behind ours has to be taken again.
func (s *shard) adopt(cm *corev1.ConfigMap) (overruled map[string]string) {
	if !s.olderThan(cm.ResourceVersion) {
		return nil
	}
	if s.insists {
		s.keepRemoved(cm.Data)
	} else {
		overruled = s.yield(cm.Data)
	}
	s.resourceVersion = cm.ResourceVersion
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

// yield drops those of our changes that another writer's stand against.
func (s *shard) yield(data map[string]string) (overruled map[string]string) {
	overruled = map[string]string{}
	for key, ours := range s.dirty {
		before, had := s.stored[key]
		after, has := data[key]
		switch {
		case had == has && before == after, isText(s.sent, key, after, has):
			// No other writer changed it: ours is still to be written.
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

// noteTooNew notes which entries a newer program wrote.
func (s *shard) noteTooNew() {
	s.tooNew = nil
	for key, text := range s.stored {
		if !strings.HasPrefix(key, unreadableWord) && record.IsTooNew(text) {
			s.tooNew = append(s.tooNew, key)
		}
	}
}

// keepRemoved notes what another writer removed, to be written again.
func (s *shard) keepRemoved(data map[string]string) {
	for key, text := range s.stored {
		_, kept := data[key]
		if _, newer := s.dirty[key]; !kept && !newer {
			s.dirty[key] = &text
		}
	}
}

// olderThan reports whether what we know is older than the given version; what cannot
// be compared counts as newer.
func (s *shard) olderThan(resourceVersion string) bool {
	return resourceVersion != s.resourceVersion && !isOlder(resourceVersion, s.resourceVersion)
}

// isOlder compares resource versions of one object; what cannot be compared is not
// older.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// isText reports whether the changes make of a key exactly this text, or remove
// it when it must not exist.
func isText(changes map[string]*string, key, text string, exists bool) bool {
	change, ok := changes[key]
	if !ok || change == nil {
		return ok && !exists
	}
	return exists && *change == text
}

// lost is called when the ConfigMap was deleted: everything we know has to be
// written again.
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

// forget drops all that is known, for a process that does not lead.
func (s *shard) forget() {
	s.resourceVersion, s.stored, s.dirty, s.sent = "", map[string]string{}, map[string]*string{}, nil
	s.tooNew = nil
	s.measureAll()
}

// written is called when the API server has taken a set of changes. When the
// watch has shown a newer state meanwhile, that one stands; where we insist, what it
// does not show stays to be written.
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
			s.set(key, newest) // it may be stored by now
		}
		s.measure(key)
	}
	if !overtaken {
		s.resourceVersion = resourceVersion
	}
}
