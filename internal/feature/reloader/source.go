package reloader

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// id names a source within its namespace.
type id struct {
	Type stakater.Type
	Name string
}

// source is what is kept of a ConfigMap, a Secret, or the status of a pod with a
// SecretProviderClass: digests, never contents.
type source struct {
	stakater.Source
	namespace string
	// object is the name of the API object. Each pod has its own status of a class.
	object  string
	version string
	created time.Time
	// hash is what templates show. It isn't unique, so strong decides.
	hash   string
	strong [sha256.Size]byte
	// keys is how many there are; a status without objects has none.
	keys int
	// own is true for a ConfigMap of the record.
	own bool
	// dataWrittenAt is the latest time of a data write in the managed fields. It is a hint.
	dataWrittenAt time.Time
	// born is true when the source was created while it was watched.
	born bool
}

func (s *source) id() id { return id{s.Type, s.Name} }

// number is the resource version, zero when it isn't a number.
func (s *source) number() uint64 { return number(s.version) }

func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// GetObjectMeta implements mirror.Slim.
func (s *source) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.namespace, Name: s.object, ResourceVersion: s.version}
}

// SameAs implements mirror.Slim.
func (s *source) SameAs(old *source) bool {
	return s.strong == old.strong && s.keys == old.keys && s.Source == old.Source
}

// Follow implements mirror.Tracked.
func (s *source) Follow(old *source, _ mirror.Arrival) { s.born = old.born }

// First implements mirror.Tracked. An object that a later list shows was created meanwhile.
func (s *source) First(how mirror.Arrival) { s.born = how.Watched || how.Since != "" }

// slim makes the copies of sources.
func slim(words stakater.Words) func(any) (*source, error) {
	return func(object any) (*source, error) {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			s := newSource(o, words.Source(stakater.ConfigMap, o.Name, o.Annotations))
			s.hash, s.keys, s.own = stakater.HashConfigMap(o.Data, o.BinaryData), len(o.Data)+len(o.BinaryData), o.Labels[settings.StateLabel] != ""
			sum := sha256.New()
			addAll(sum, o.Data)
			addAll(sum, o.BinaryData)
			sum.Sum(s.strong[:0])
			return s, nil
		case *corev1.Secret:
			s := newSource(o, words.Source(stakater.Secret, o.Name, o.Annotations))
			s.hash, s.keys = stakater.HashSecret(o.Data), len(o.Data)
			sum := sha256.New()
			addAll(sum, o.Data)
			sum.Sum(s.strong[:0])
			return s, nil
		case *unstructured.Unstructured:
			return slimStatus(o)
		}
		return nil, fmt.Errorf("unexpected type %T", object)
	}
}

func newSource(o client.Object, of stakater.Source) *source {
	return &source{
		Source:    of,
		namespace: unique.Make(o.GetNamespace()).Value(), // one copy for all objects
		object:    o.GetName(), version: o.GetResourceVersion(), created: o.GetCreationTimestamp().Time,
		dataWrittenAt: kube.DataWriter(o).At,
	}
}

// addAll adds entries with their lengths, so no two contents are the same bytes.
func addAll[V string | []byte](sum hash.Hash, data map[string]V) {
	size := make([]byte, 0, 24)
	size = binary.BigEndian.AppendUint64(size, uint64(len(data)))
	sum.Write(size)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		size = binary.BigEndian.AppendUint64(size[:0], uint64(len(key)))
		size = binary.BigEndian.AppendUint64(size, uint64(len(data[key])))
		sum.Write(size)
		sum.Write([]byte(key))
		sum.Write([]byte(data[key]))
	}
}

// slimStatus reads the status of a pod. Whether its class is ignored or matches is on the class,
// and read with each pass.
func slimStatus(o *unstructured.Unstructured) (*source, error) {
	class, _, _ := unstructured.NestedString(o.Object, "status", "secretProviderClassName")
	if class == "" {
		return nil, fmt.Errorf("%s names no class", o.GetName())
	}
	listed, _, _ := unstructured.NestedSlice(o.Object, "status", "objects")
	objects := make([]stakater.ClassObject, 0, len(listed))
	for _, each := range listed {
		fields, _ := each.(map[string]any)
		name, _ := fields["id"].(string)
		version, _ := fields["version"].(string)
		objects = append(objects, stakater.ClassObject{ID: name, Version: version})
	}
	s := newSource(o, stakater.Source{Type: stakater.SecretProviderClass, Name: class})
	s.hash, s.keys = stakater.HashClass(class, objects), len(listed)
	sum := sha256.New()
	for _, each := range objects {
		addAll(sum, map[string]string{each.ID: each.Version})
	}
	sum.Sum(s.strong[:0])
	return s, nil
}
