package reloader

import (
	"context"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// pausePeriod is how long a Deployment is paused when it is reloaded, zero for not at all.
func (r *Reloader) pausePeriod(kind Kind, in observation) time.Duration {
	if kind.Kind.Kind != "Deployment" {
		return 0
	}
	return r.Words.Pause(in.Annotations)
}

// resume ends the pause of a Deployment when its time has come, and returns how long that takes
// still. The times are on the Deployment, so a new process goes on. After a pause that a user ended,
// only its time is removed, so a later pause of theirs isn't taken for this one.
func (r *Reloader) resume(ctx context.Context, k kube.Key) (time.Duration, error) {
	o := &appsv1.Deployment{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name}, o); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	until, ours := r.Words.PausedUntil(o.Annotations)
	if !ours {
		return 0, nil
	}
	if left := until.Sub(r.Now()); left > 0 {
		return left, nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": o.UID, "resourceVersion": o.ResourceVersion, "annotations": map[string]any{r.Words.Keys.PausedAt: nil},
		},
		"spec": map[string]any{"paused": false},
	})
	if err != nil {
		return 0, err
	}
	return 0, r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, body), client.FieldOwner(FieldManager))
}
