package access

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// NewDirectClient makes a client for a process that lives for seconds and knows which kinds of
// workloads it needs: it doesn't need discovery requests.
func NewDirectClient(config *rest.Config, kinds []kube.Kind) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	for _, kind := range kinds {
		mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
		mapper.Add(kind.Revisions.GroupVersionKind, meta.RESTScopeNamespace)
	}
	config = rest.CopyConfig(config)
	config.Wrap(retryafter.InSeconds)
	c, err := client.NewWithWatch(config, client.Options{Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return c, nil
}
