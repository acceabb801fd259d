package objectwatch

import (
	"encoding/base64"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// object is a ConfigMap or a Secret as decoded, and the rest of it once its contents are
// stored. The types of k8s.io/api would link every other core type: three megabytes in each
// pod.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Data holds text in a ConfigMap and base64 in a Secret.
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"`

	hold *hold
}

// objectList is one page of a list.
type objectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []object `json:"items"`
}

// DeepCopyObject is required by the client library's decoders.
func (o *object) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta = *o.DeepCopy()
	return &c
}

// DeepCopyObject is required by the client library's decoders.
func (l *objectList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]object(nil), l.Items...)
	return &c
}

// values calls take with every key and its bytes.
func (o *object) values(kind filemap.Kind, take func(key string, value []byte) error) error {
	for key, text := range o.Data {
		value := []byte(text)
		if kind == filemap.Secret {
			var err error
			if value, err = base64.StdEncoding.DecodeString(text); err != nil {
				return fmt.Errorf("key %q of secret %s/%s is not base64", key, o.Namespace, o.Name)
			}
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	for key, value := range o.BinaryData {
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}

// ref names the object.
func (o *object) ref(kind filemap.Kind) filemap.Ref {
	return filemap.Ref{Kind: kind, Namespace: o.Namespace, Name: o.Name}
}

// weight is how much the values count towards the size of a set. It reads no value.
func (o *object) weight(kind filemap.Kind) int64 {
	var weight int64
	for _, text := range o.Data {
		size := len(text)
		if kind == filemap.Secret {
			size = base64.StdEncoding.DecodedLen(size)
		}
		weight += filemap.Weight(int64(size))
	}
	for _, value := range o.BinaryData {
		weight += filemap.Weight(int64(len(value)))
	}
	return max(weight, filemap.Weight(0))
}

// drop clears everything except the object's identity, its age and one annotation. It cuts the
// annotation just beyond its limit: a longer one is refused, and not worth its memory.
func (o *object) drop(annotation string) {
	kept := metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
	}
	if value, ok := o.Annotations[annotation]; ok && annotation != "" {
		value = strings.Clone(value[:min(len(value), filemap.MaxSubdir+1)])
		kept.Annotations = map[string]string{annotation: value}
	}
	// An annotation marks the bookmark that ends a streamed list.
	if value, ok := o.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		kept.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	o.ObjectMeta, o.Data, o.BinaryData = kept, nil, nil
}

func groupVersion() schema.GroupVersion { return schema.GroupVersion{Version: "v1"} }

func serializers() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	for _, kind := range []string{"ConfigMap", "Secret"} {
		scheme.AddKnownTypeWithName(groupVersion().WithKind(kind), &object{})
		scheme.AddKnownTypeWithName(groupVersion().WithKind(kind+"List"), &objectList{})
	}
	metav1.AddToGroupVersion(scheme, groupVersion())
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}
