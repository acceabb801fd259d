package podrefs

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxPullSecrets bounds the pull secrets that count for one pod.
	MaxPullSecrets = 32
	// MaxName is the limit of Kubernetes for the name of a Secret.
	MaxName = 253
)

// PullSecrets returns the different names of a list: one more than there may be, so the excess is
// noticed. The API server doesn't limit the length of these names. A longer one than a Secret can
// have stays too long.
func PullSecrets(refs []corev1.LocalObjectReference) []string {
	var names []string
	seen := map[string]bool{}
	for _, ref := range refs {
		name := strings.Clone(ref.Name[:min(len(ref.Name), MaxName+1)])
		if seen[name] {
			continue
		}
		seen[name] = true
		if names = append(names, name); len(names) > MaxPullSecrets {
			break
		}
	}
	return names
}
