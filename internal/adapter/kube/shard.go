package kube

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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

func (s *shardCopy) follow(*shardCopy, arrival) {}
func (s *shardCopy) first(arrival)              {}
func (s *shardCopy) sameAs(old *shardCopy) bool { return s.ResourceVersion == old.ResourceVersion }

// shard is one ConfigMap of the record as this process knows it: what the API
// server holds, and what has yet to be written there.
type shard struct {
	name string
	// writing is held while a request is under way, so that this process never
	// conflicts with itself.
	writing         sync.Mutex
	resourceVersion string
	stored          map[string]string
	// dirty holds the texts that differ from stored; nil removes a key.
	dirty map[string]*string
}

func newShard(name string) *shard {
	return &shard{name: name, stored: map[string]string{}, dirty: map[string]*string{}}
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

// adopt takes over what the API server holds, unless that is older than what we
// know. It returns the keys that somebody else changed under our own unwritten
// change: theirs stands, and the decision behind ours has to be taken again.
func (s *shard) adopt(cm *corev1.ConfigMap) (overruled []string) {
	if s.resourceVersion != "" {
		order, err := resourceversion.CompareResourceVersion(cm.ResourceVersion, s.resourceVersion)
		if err == nil && order <= 0 {
			return nil
		}
	}
	for key := range s.dirty {
		before, had := s.stored[key]
		after, has := cm.Data[key]
		if had != has || before != after {
			overruled = append(overruled, key)
			delete(s.dirty, key)
		}
	}
	s.resourceVersion = cm.ResourceVersion
	s.stored = maps.Clone(cm.Data)
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	return overruled
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
	s.resourceVersion, s.stored, s.dirty = "", map[string]string{}, map[string]*string{}
}

// written is called when the API server has taken a set of changes.
func (s *shard) written(changes map[string]*string, resourceVersion string) {
	for key, text := range changes {
		if text == nil {
			delete(s.stored, key)
		} else {
			s.stored[key] = *text
		}
		if s.dirty[key] == text {
			delete(s.dirty, key)
		}
	}
	s.resourceVersion = resourceVersion
}
