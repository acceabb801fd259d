package run

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// FixedMapper knows the few kinds that are used, core kinds by name, and that of a permission
// review. So discovery isn't needed: an aggregated API that does not respond must not block the
// start.
func FixedMapper(workloads []kube.Kind, sources ...string) *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	for _, kind := range sources {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range workloads {
		mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
	}
	return mapper
}
