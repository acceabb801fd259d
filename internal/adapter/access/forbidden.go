package access

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// UnlessForbidden is the error, unless a permission is missing.
func UnlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
