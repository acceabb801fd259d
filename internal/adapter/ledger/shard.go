package ledger

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// shardCopy is a ConfigMap of the record as the watch delivers it.
type shardCopy struct {
	*corev1.ConfigMap
}

func slimShard(object any) (*shardCopy, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &shardCopy{cm}, nil
}

func (s *shardCopy) Follow(*shardCopy, mirror.Arrival) {}
func (s *shardCopy) First(mirror.Arrival)              {}
func (s *shardCopy) SameAs(old *shardCopy) bool        { return s.ResourceVersion == old.ResourceVersion }

// shard is one ConfigMap of the record as this process knows it: what the API
// server holds, and what has yet to be written there.
type shard struct {
	name string
	// writing is full while a request is under way, so that this process never
	// conflicts with itself.
	writing         chan struct{}
	resourceVersion string
	complaint       string // why the last write failed
	retry           retry
	stored          map[string]string
	// tooNew are the keys of entries that a newer program wrote.
	tooNew []string
	// dirty holds the texts that differ from stored; nil removes a key.
	dirty map[string]*string
	// sent is what was last sent to the API server. The watch may deliver it
	// before the answer does.
	sent map[string]*string
}

func newShard(name string) *shard {
	return &shard{name: name, writing: make(chan struct{}, 1), stored: map[string]string{}, dirty: map[string]*string{}}
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

// set notes a text that has to be written; nil removes the key.
func (s *shard) set(key string, text *string) {
	stored, known := s.stored[key]
	if text == nil && !known || text != nil && known && *text == stored {
		delete(s.dirty, key)
		return
	}
	s.dirty[key] = text
}

// send returns the changes that are to be written now.
func (s *shard) send() map[string]*string {
	s.sent = maps.Clone(s.dirty)
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

// adopt takes over what the API server holds, unless that is older than what we
// know. It returns the keys that somebody else changed under our own unwritten
// change, each with a text that names its workload: theirs stands, and the
// decision behind ours has to be taken again.
func (s *shard) adopt(cm *corev1.ConfigMap) (overruled map[string]string) {
	if !s.olderThan(cm.ResourceVersion) {
		return nil
	}
	overruled = map[string]string{}
	for key, ours := range s.dirty {
		before, had := s.stored[key]
		after, has := cm.Data[key]
		switch {
		case had == has && before == after, isText(s.sent, key, after, has):
			// Nobody else wrote it: ours is still to be written.
		case ours == nil && has:
			overruled[key] = after
			delete(s.dirty, key)
		case ours != nil && (!has || *ours != after):
			overruled[key] = *ours
			delete(s.dirty, key)
		}
	}
	s.resourceVersion = cm.ResourceVersion
	s.stored = maps.Clone(cm.Data)
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	for key, ours := range s.dirty {
		s.set(key, ours) // somebody may have written the very same
	}
	return overruled
}

// noteTooNew notes which entries a newer program wrote.
func (s *shard) noteTooNew() {
	s.tooNew = nil
	for key, text := range s.stored {
		if !strings.HasPrefix(key, "unreadable.") && record.IsTooNew(text) {
			s.tooNew = append(s.tooNew, key)
		}
	}
}

// olderThan reports whether what we know is older than the given version.
func (s *shard) olderThan(resourceVersion string) bool {
	if s.resourceVersion == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(resourceVersion, s.resourceVersion)
	return err != nil || order > 0
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
	for key, text := range s.stored {
		if _, newer := s.dirty[key]; !newer {
			s.dirty[key] = &text
		}
	}
	for key, text := range s.dirty {
		if text == nil {
			delete(s.dirty, key)
		}
	}
	s.resourceVersion, s.stored = "", map[string]string{}
}

// forget drops all that is known, for a process that does not lead.
func (s *shard) forget() {
	s.resourceVersion, s.stored, s.dirty, s.sent = "", map[string]string{}, map[string]*string{}, nil
}

// written is called when the API server has taken a set of changes. When the
// watch has shown a newer state meanwhile, that one stands.
func (s *shard) written(changes map[string]*string, resourceVersion string) {
	newest := s.olderThan(resourceVersion)
	s.sent = nil
	for key, text := range changes {
		if s.dirty[key] == text {
			delete(s.dirty, key)
		}
		switch {
		case !newest:
		case text == nil:
			delete(s.stored, key)
		default:
			s.stored[key] = *text
		}
	}
	if newest {
		s.resourceVersion = resourceVersion
	}
}
