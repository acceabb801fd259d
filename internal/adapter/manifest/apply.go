package manifest

import (
	"encoding/base64"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Applied is an object's state after "kubectl apply" of a file: the file's fields, plus the
// fields in the cluster that the file does not mention, minus those that an earlier apply set
// and this file doesn't. Live is nil for an object that does not exist yet.
func Applied(live, file *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	file = file.DeepCopy()
	if file.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret") {
		encodeTexts(file)
	}
	if live == nil {
		return file, nil
	}
	merged, err := threeWay(live, file)
	if err != nil {
		// The cause may quote the content.
		return nil, fmt.Errorf("%s %s cannot be merged with the one in the cluster", file.GetKind(), file.GetName())
	}
	return merged, nil
}

// threeWay merges as kubectl does: by merge keys for built-in kinds, and field by field for
// others.
func threeWay(live, file *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	applied := file.DeepCopy()
	if applied.GetAnnotations() == nil {
		// Objects that kubectl applies always have its own annotations. Without any, the
		// annotations of all others would count as removed.
		_ = unstructured.SetNestedMap(applied.Object, map[string]any{}, "metadata", "annotations")
	}
	modified, err := applied.MarshalJSON()
	if err != nil {
		return nil, err
	}
	states := states{[]byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), modified, current}
	merge := states.byField
	if typed, err := scheme.Scheme.New(file.GroupVersionKind()); err == nil {
		merge = func() ([]byte, error) { return states.byMergeKeys(typed) }
	}
	merged, err := merge()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(merged)
}

// states are an object as last applied, in the file, and in the cluster.
type states struct{ original, modified, current []byte }

func (s states) byMergeKeys(typed runtime.Object) ([]byte, error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	change, err := strategicpatch.CreateThreeWayMergePatch(s.original, s.modified, s.current, schema, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(s.current, change, schema)
}

func (s states) byField() ([]byte, error) {
	change, err := jsonmergepatch.CreateThreeWayJSONMergePatch(s.original, s.modified, s.current)
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergePatch(s.current, change)
}

// encodeTexts moves stringData of a Secret to its data, as the API server does.
func encodeTexts(secret *unstructured.Unstructured) {
	texts, found, err := unstructured.NestedStringMap(secret.Object, "stringData")
	if err != nil || !found {
		return
	}
	for key, text := range texts {
		_ = unstructured.SetNestedField(secret.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key)
	}
	unstructured.RemoveNestedField(secret.Object, "stringData")
}
