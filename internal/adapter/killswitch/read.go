package killswitch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Read reads the ConfigMap once, for a command, and when its content was last written. It lists:
// a command that reads the record may do that, and not get other ConfigMaps.
func Read(ctx context.Context, c client.Reader, namespace string) (stop settings.Stop, at time.Time, err error) {
	for o, err := range pages.Items(ctx, c, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": settings.StopName}) {
		if err != nil {
			return stop, at, fmt.Errorf("read configmap/%s in namespace %s: %w", settings.StopName, namespace, err)
		}
		cm, _ := o.(*corev1.ConfigMap)
		if at = kube.DataWriter(cm).At; at.IsZero() { // It has no content: everything is stopped since it exists.
			at = cm.CreationTimestamp.Time
		}
		stop = settings.ParseStop(cm.Data, cm.DeletionTimestamp == nil)
	}
	return stop, at, nil
}
