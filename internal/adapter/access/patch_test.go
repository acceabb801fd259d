package access_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
)

// TestDenial: only a policy's denial waits for an administrator. test/install gets one from a real API server.
func TestDenial(t *testing.T) {
	t.Parallel()
	forbidden := func(cause string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New(cause))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: cause}}
		return err
	}
	policy := forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not here")
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"policy":  {"the policy's message, then its name", policy, "not here (ValidatingAdmissionPolicy 'p')"},
		"unbound": {"a policy that can't be configured has no binding", forbidden("ValidatingAdmissionPolicy 'p' denied request: broken"), "broken (ValidatingAdmissionPolicy 'p')"},
		"wrapped": {"of several pods, the first denial", errors.Join(errors.New("gone"), fmt.Errorf("touch: %w", policy)), "not here (ValidatingAdmissionPolicy 'p')"},
		"role":    {"a missing permission may be granted any time", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no")), ""},
		"webhook": {"a webhook may be unreachable", forbidden(`admission webhook "w" denied the request: no`), ""},
		"other":   {"not from the API server", errors.New("ValidatingAdmissionPolicy 'p' denied request: x"), ""},
		"none":    {"no error", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, denied := access.Denial(tc.err); got != tc.want || denied != (tc.want != "") {
				t.Errorf("%s: %q, %t; want %q", tc.reason, got, denied, tc.want)
			}
		})
	}
}
