package kube

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Source is what is kept of a ConfigMap or Secret: digests and times, never
// contents. It is shared between readers and never changed after it was stored.
type Source struct {
	ID              input.ID
	Namespace       string
	ResourceVersion string
	Created         time.Time
	// Annotations are the source's own settings for Lockstep, nothing else.
	Annotations map[string]string
	// OwnRecord is true for a ConfigMap in which Lockstep keeps its record. It is no
	// source: each rollout would change it, and so lead to the next one.
	OwnRecord bool
	// Immutable is true for an object whose content cannot be changed. Nodes do not watch
	// it: they keep what they have loaded while a pod refers to it.
	Immutable bool
	// Token is true for a Secret that holds the token of a service account, which the
	// cluster renews by itself.
	Token bool
	// Content is a digest per key.
	Content fingerprint.Content
	// Legacy is the digest that a predecessor would have made of the content, where
	// one is replaced; empty otherwise.
	Legacy string
	SourceHistory
	// DataWrittenAt is the latest time that the managed fields give for a write to
	// the data, by the API server's clock; zero when they give none. Removing a key
	// does not move it and a write of labels may: a hint, never evidence.
	DataWrittenAt time.Time
}

// SourceHistory is what only a comparison with earlier copies of the source can tell.
type SourceHistory struct {
	// ContentWritten bounds the last change of the content.
	ContentWritten timeline.Bounds
	// AskWritten bounds the last change of the annotation by which the source asks
	// for its users, zero when it has not changed since we first saw the source.
	AskWritten timeline.Bounds
	// New is true while the content is the one that the source was made with, before
	// our eyes.
	New bool
	// ChangedAt is when our watch saw the content change, by our clock; zero when
	// it has not changed since we first saw it.
	ChangedAt time.Time
	// SeenAt is when we first saw the source, by our clock.
	SeenAt time.Time
}

// GetObjectMeta lets client-go's stores find the source's name.
func (s *Source) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.ID.Name, ResourceVersion: s.ResourceVersion}
}

// Follow carries over from the earlier copy what only a comparison can tell.
func (s *Source) Follow(old *Source, how mirror.Arrival) {
	s.SourceHistory = old.SourceHistory
	if !s.Content.Equal(old.Content) {
		s.ContentWritten = writtenSince(old.ResourceVersion, s.ResourceVersion, how)
		s.ChangedAt, s.New = how.At, false
	}
	if s.Annotations[settings.Reload] != old.Annotations[settings.Reload] {
		s.AskWritten = timeline.WrittenBetween(old.ResourceVersion, s.ResourceVersion, how.Watched)
	}
}

// First bounds what is known of an object that had no earlier copy. One that a
// watch delivers was made just now.
func (s *Source) First(how mirror.Arrival) {
	s.ContentWritten, s.SeenAt = timeline.WrittenUpTo(s.ResourceVersion), how.At
	if how.Watched {
		s.ContentWritten = timeline.WrittenBetween("", s.ResourceVersion, true)
		s.ChangedAt, s.New = how.At, true
	}
}

// SameAs reports whether the difference between two copies can matter to anyone.
func (s *Source) SameAs(old *Source) bool {
	return s.Content.Equal(old.Content) && s.Immutable == old.Immutable && maps.Equal(s.Annotations, old.Annotations)
}

// Hashers digests each kind of source in its own way.
type Hashers struct {
	Kinds map[input.Kind]fingerprint.Hasher
	// Legacy makes a predecessor's digests as well.
	Legacy bool
}

// Slim makes a Source of a ConfigMap or Secret.
func (h Hashers) Slim(object any, words settings.Vocabulary) (*Source, error) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		s := newSource(input.ConfigMap(o.Name), o, words)
		s.Immutable = ptr.Deref(o.Immutable, false)
		s.Content = h.Kinds[input.KindConfigMap].Content(o.Data, o.BinaryData)
		if h.Legacy {
			s.Legacy = fingerprint.LegacyConfigMap(o.Data)
		}
		return s, nil
	case *corev1.Secret:
		s := newSource(input.Secret(o.Name), o, words)
		s.Immutable, s.Token = ptr.Deref(o.Immutable, false), o.Type == corev1.SecretTypeServiceAccountToken
		s.Content = h.Kinds[input.KindSecret].At(o.Namespace, string(input.KindSecret), o.Name).Content(nil, o.Data)
		if h.Legacy {
			s.Legacy = fingerprint.LegacySecret(o.Data)
		}
		return s, nil
	}
	return nil, fmt.Errorf("unexpected type %T", object)
}

func newSource(id input.ID, o client.Object, words settings.Vocabulary) *Source {
	return &Source{
		ID:              id,
		Namespace:       o.GetNamespace(),
		ResourceVersion: o.GetResourceVersion(),
		Created:         o.GetCreationTimestamp().Time,
		Annotations:     ownSettings(o, words),
		OwnRecord:       o.GetLabels()[settings.StateLabel] != "",
		DataWrittenAt:   DataWriter(o).At,
	}
}

// owns looks for the field names without parsing: at 35,000 objects a parse of
// every entry would be most of the start-up's work. The API server's parser needs 71
// allocations for the entry of a ConfigMap and 513 for that of a Deployment, the search
// none: see BenchmarkManagedFields.
func owns(entry []byte, fields []string) bool {
	for _, field := range fields {
		if bytes.Contains(entry, []byte(field)) {
			return true
		}
	}
	return false
}

// NewSourceList returns an empty list of a kind of sources.
func NewSourceList(kind input.Kind) client.ObjectList {
	if kind == input.KindSecret {
		return &corev1.SecretList{}
	}
	return &corev1.ConfigMapList{}
}
