package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// PatchByUID sends a patch that names the object's UID. When the object of that name has another
// UID, the API server calls the patch invalid. PatchByUID returns that as a conflict.
func PatchByUID(ctx context.Context, c client.Writer, o client.Object, p client.Patch) error {
	err := c.Patch(ctx, o, p, client.FieldOwner(kube.FieldManager))
	if anotherUID(err) {
		resource := schema.GroupResource{Resource: o.GetObjectKind().GroupVersionKind().Kind}
		return apierrors.NewConflict(resource, o.GetName(), err)
	}
	return err
}

// Denial returns why a ValidatingAdmissionPolicy denied a request, and whether one did. The policy's
// message comes first, because users need it most and texts are cut.
func Denial(err error) (text string, denied bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		policy, message, found := strings.Cut(cause.Message, " denied request: ")
		if found && strings.HasPrefix(policy, "ValidatingAdmissionPolicy ") {
			policy, _, _ = strings.Cut(policy, " with binding ")
			return message + " (" + policy + ")", true
		}
	}
	return "", false
}

// anotherUID recognises the API server's error for an object of that name with another UID.
func anotherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}
