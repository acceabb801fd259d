package objectwatch

import (
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// object is a ConfigMap or a Secret as it comes over the wire, and what is left
// of it once its contents are stored. The types of k8s.io/api would bring every
// other core type into the binary: three megabytes in each pod.
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

// DeepCopyObject is what the client library's decoders ask for.
func (o *object) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta = *o.DeepCopy()
	return &c
}

// DeepCopyObject is what the client library's decoders ask for.
func (l *objectList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]object(nil), l.Items...)
	return &c
}

// values gives every key and its bytes to take, one after the other.
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

// drop forgets everything but the object's identity and one annotation.
func (o *object) drop(annotation string) {
	kept := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	if value, ok := o.Annotations[annotation]; ok && annotation != "" {
		kept.Annotations = map[string]string{annotation: value}
	}
	// The bookmark that ends a streamed list is known by its annotation.
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
