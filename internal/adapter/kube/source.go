package kube

import (
	"bytes"
	"fmt"
	"maps"
	"time"
	"unique"

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

// Source is the part of a ConfigMap or Secret that Lockstep keeps: digests and times, never
// contents. Readers share it, so it never changes after it was stored.
type Source struct {
	ID              input.ID
	Namespace       string
	ResourceVersion string
	Created         time.Time
	// Annotations are only the source's settings for Lockstep.
	Annotations map[string]string
	// OwnRecord is true for a ConfigMap in which Lockstep keeps its record. It isn't a source:
	// each rollout would change it and cause the next one.
	OwnRecord bool
	// Immutable is true for an object whose content cannot change. Nodes don't watch it: they
	// keep the loaded content while a pod refers to it.
	Immutable bool
	// Token is true for a Secret with a service account token, which the cluster renews by
	// itself.
	Token bool
	// Content is a digest per key.
	Content fingerprint.Content
	// Legacy is the digest that a replaced predecessor would compute of the content; empty
	// otherwise.
	Legacy string
	SourceHistory
	// DataWrittenAt is the latest time of a data write in the managed fields, by the API
	// server's clock; zero without one. Removing a key doesn't change it and writing labels may,
	// so it is a hint, never evidence.
	DataWrittenAt time.Time
}

// SourceHistory is what only a comparison with earlier copies of the source shows.
type SourceHistory struct {
	// ContentWritten bounds the last change of the content.
	ContentWritten timeline.Bounds
	// Missed bounds the last write that no watch delivered and that left the content as it was, zero without
	// one: before it, the content may have been another one.
	Missed timeline.Bounds
	// AskWritten bounds the last change of the source's reload annotation, zero when it hasn't
	// changed since Lockstep first saw the source.
	AskWritten timeline.Bounds
	// ContentWrittenAt is when the content was last written, as far as managed fields show; zero when that
	// isn't known, because that write may only have removed keys, which leaves no time.
	ContentWrittenAt time.Time
	// New is true while the source still has its initial content and the watch saw its creation.
	New bool
	// ChangedAt is when the watch saw the content change, by Lockstep's clock; zero when it has
	// not changed since the first sight.
	ChangedAt time.Time
	// SeenAt is when Lockstep first saw the source, by its own clock.
	SeenAt time.Time
}

// GetObjectMeta lets client-go's stores find the source's name.
func (s *Source) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.ID.Name, ResourceVersion: s.ResourceVersion}
}

// Follow carries over the history that only a comparison with the earlier copy shows.
func (s *Source) Follow(old *Source, how mirror.Arrival) {
	s.SourceHistory = old.SourceHistory
	switch leavesTime := s.DataWrittenAt.After(old.DataWrittenAt) || !s.Content.MayHaveFewerKeys(old.Content); {
	case !s.Content.Equal(old.Content):
		s.ContentWritten, s.Missed = writtenSince(old.ResourceVersion, s.ResourceVersion, how), timeline.Bounds{}
		s.ChangedAt, s.New, s.ContentWrittenAt = how.At, false, s.DataWrittenAt
		if !leavesTime {
			s.ContentWrittenAt = time.Time{}
		}
	case !how.Watched && s.ResourceVersion != old.ResourceVersion: // it may have been another one meanwhile
		s.Missed = writtenSince(old.ResourceVersion, s.ResourceVersion, how)
		s.ContentWritten.Max, s.ContentWrittenAt = s.Missed.Max, s.DataWrittenAt
	}
	if s.Annotations[settings.Reload] != old.Annotations[settings.Reload] {
		s.AskWritten = timeline.WrittenBetween(old.ResourceVersion, s.ResourceVersion, how.Watched)
	}
}

// First sets the bounds for an object without an earlier copy. One that arrives through a watch
// was just created.
func (s *Source) First(how mirror.Arrival) {
	s.ContentWritten, s.SeenAt, s.ContentWrittenAt = timeline.WrittenUpTo(s.ResourceVersion), how.At, s.DataWrittenAt
	if how.Watched {
		s.ContentWritten = timeline.WrittenBetween("", s.ResourceVersion, true)
		s.ChangedAt, s.New = how.At, true
	}
}

// SameAs reports whether two copies are equal in everything that matters to Lockstep.
func (s *Source) SameAs(old *Source) bool {
	return s.Content.Equal(old.Content) && s.Missed == old.Missed && s.Immutable == old.Immutable && maps.Equal(s.Annotations, old.Annotations)
}

// Hashers digests each kind of source in its own way.
type Hashers struct {
	Kinds map[input.Kind]fingerprint.Hasher
	// Legacy adds a predecessor's digests.
	Legacy bool
}

// NewHashers digest content; Secrets are digested with the installation key.
func NewHashers(key []byte) Hashers {
	return Hashers{Kinds: map[input.Kind]fingerprint.Hasher{
		input.KindConfigMap: {},
		input.KindSecret:    fingerprint.NewKeyedHasher(key),
	}}
}

// Slim makes a Source from a ConfigMap or Secret.
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
	own := ownSettings(o, words)
	if translator, ok := words.(settings.Translator); ok {
		own = translator.OfSource(string(id.Kind), own)
	}
	return &Source{
		ID:              id,
		Namespace:       unique.Make(o.GetNamespace()).Value(), // one copy for all objects
		ResourceVersion: o.GetResourceVersion(),
		Created:         o.GetCreationTimestamp().Time,
		Annotations:     settings.Only(settings.ForSources(), own),
		OwnRecord:       o.GetLabels()[settings.StateLabel] != "",
		DataWrittenAt:   DataWriter(o).At,
	}
}

// owns searches for the field names without parsing, because every watched object goes through
// it. The API server's parser is 170 to 330 times slower: see BenchmarkManagedFields and
// docs/decisions/0092-managed-fields-are-searched.md.
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
