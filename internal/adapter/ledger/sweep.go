package ledger

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
)

// Prefixes of keys that aren't workloads.
const (
	sinceWord      = "since."
	unreadableWord = "unreadable."
)

// owner is what a key of a shard belongs to: a kind, in one namespace or, if namespace is empty,
// in all of them. The kind is empty for a version that failed and for a series of changes.
type owner struct {
	schema.GroupKind
	namespace string
}

// ownerOf parses a key's owner. Keys that another writer added don't belong to a workload. The
// owner of a hashed key is in the text.
func ownerOf(key, text string) (owner, bool) {
	key = strings.TrimPrefix(key, unreadableWord)
	if strings.HasPrefix(key, hashedWord) {
		if id, ok := idOf(text); ok {
			return owner{id.GroupKind, id.Namespace}, true
		}
		_, key, _ = strings.Cut(text, " ") // a scope
	}
	parts, want := strings.Split(strings.TrimPrefix(key, sinceWord), "_"), 3
	switch {
	case strings.HasPrefix(key, sinceWord):
		want = 2
	case strings.HasPrefix(key, failedWord):
		want = 4 // its version
	}
	if len(parts) != want {
		return owner{}, false
	}
	if isChange(key) {
		return owner{namespace: parts[1]}, true
	}
	return owner{schema.ParseGroupKind(parts[0]), parts[1]}, true
}

// Sweep removes entries of deleted namespaces, and of kinds that were not installed at the
// previous sweep either. It queries the API server only when the record lists an unknown
// namespace.
func (r *Records) Sweep(ctx context.Context, known func(namespace string) bool) error {
	if !r.Status().Works() {
		return nil
	}
	all := r.owned()
	gone, err := r.goneNamespaces(ctx, all, known)
	if err != nil {
		return fmt.Errorf("find deleted namespaces: %w", err)
	}
	kinds := r.missingKinds(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range all {
		if gone[o.namespace] || kinds[o.GroupKind] && r.missed[o.GroupKind] {
			r.shards[o.shard].removeIf(o.key, o.text)
		}
	}
	r.missed = kinds
	return nil
}

// ownedKey is a key of the record whose owner is known.
type ownedKey struct {
	owner
	shard, key, text string
}

func (r *Records) owned() []ownedKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []ownedKey
	for _, s := range r.shards {
		for key, text := range s.stored {
			if o, ok := ownerOf(key, text); ok {
				all = append(all, ownedKey{o, s.name, key, text})
			}
		}
	}
	return all
}

// goneNamespaces returns the namespaces that do not exist. It lists them after the record was
// read, so a namespace created meanwhile counts as existing.
func (r *Records) goneNamespaces(ctx context.Context, all []ownedKey, known func(string) bool) (map[string]bool, error) {
	gone := map[string]bool{}
	for _, o := range all {
		if o.namespace != corev1.NamespaceAll && !known(o.namespace) {
			gone[o.namespace] = true
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	for ns, err := range pages.Items(ctx, r.client, list) {
		if err != nil {
			return nil, err
		}
		delete(gone, ns.GetName())
	}
	return gone, nil
}

// missingKinds returns the kinds that the API server does not know.
func (r *Records) missingKinds(all []ownedKey) map[schema.GroupKind]bool {
	missing, asked := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	for _, o := range all {
		if o.Empty() || asked[o.GroupKind] {
			continue
		}
		asked[o.GroupKind] = true
		if _, err := r.client.RESTMapper().RESTMapping(o.GroupKind); meta.IsNoMatchError(err) {
			missing[o.GroupKind] = true
		}
	}
	return missing
}

// removeIf removes a key if it still has the text.
func (s *shard) removeIf(key, text string) {
	if now, ok := s.get(key); ok && now == text {
		s.set(key, nil)
	}
}
