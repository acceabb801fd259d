package ownership

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// ObjectKey names a ConfigMap or Secret of the cluster.
type ObjectKey struct {
	Namespace string
	Source    input.ID
}

// String is the form for users: "configmap/web-3fa9c1d2e4 in namespace shop".
func (k ObjectKey) String() string {
	return objectname.In(k.Source.String(), k.Namespace)
}

// AddOwners adds owners to an object and keeps the existing ones: the list's merge key is the
// UID, so one request adds without reading. When uid is not empty, an object of that name with
// another UID is refused with a conflict.
//
// The request returns metadata only, so the content is never read, not even of a Secret.
func AddOwners(ctx context.Context, c client.Writer, object ObjectKey, uid string, owners []metav1.OwnerReference) error {
	body, err := ownersPatch(uid, owners)
	if err != nil {
		return fmt.Errorf("word the owners of %s: %w", object, err)
	}
	return access.PatchByUID(ctx, c, metadataOf(object), client.RawPatch(types.StrategicMergePatchType, body))
}

// Owners returns the owners of an object. It reads them with a patch that doesn't change
// anything, so the permission to add owners is enough, without permission to read Secrets.
func Owners(ctx context.Context, c client.Writer, object ObjectKey) ([]metav1.OwnerReference, error) {
	o := metadataOf(object)
	err := c.Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, []byte("{}")))
	return o.GetOwnerReferences(), err
}

// metadataOf is the object without its content, for requests.
func metadataOf(object ObjectKey) client.Object {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Source.Name}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(object.Source.Kind)))
	return o
}

func ownersPatch(uid string, owners []metav1.OwnerReference) ([]byte, error) {
	type metadata struct {
		UID    string                  `json:"uid,omitempty"`
		Owners []metav1.OwnerReference `json:"ownerReferences"`
	}
	return json.Marshal(struct {
		Metadata metadata `json:"metadata"`
	}{metadata{uid, owners}})
}
