package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// FieldManager is the name under which Lockstep's writes show in managed fields.
const FieldManager = "lockstep"

// A Patcher moves workloads.
type Patcher struct {
	client client.Client
}

// NewPatcher makes a Patcher that writes through the client.
func NewPatcher(c client.Client) *Patcher {
	return &Patcher{client: c}
}

// Show writes the versions that the workload is given into its pod template,
// which starts a rollout, and returns the API server's time of the write. It
// fails with a conflict when the workload is no longer what was decided on.
func (p *Patcher) Show(ctx context.Context, w *Workload, shown string) (time.Time, error) {
	body, err := patch.TemplateAnnotations(patch.Target{
		UID: w.UID, ResourceVersion: w.ResourceVersion, Template: w.Kind.Template,
	}, map[string]string{settings.Inputs: shown})
	if err != nil {
		return time.Time{}, err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(w.Kind.GroupVersionKind)
	o.SetNamespace(w.Key.Namespace)
	o.SetName(w.Key.Name)
	if err := p.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, body), client.FieldOwner(FieldManager)); err != nil {
		return time.Time{}, err
	}
	return writtenBy(o, FieldManager), nil
}

// writtenBy is when the manager last wrote the object, by the API server's clock.
func writtenBy(o client.Object, manager string) time.Time {
	var latest time.Time
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager && e.Time != nil && e.Time.After(latest) {
			latest = e.Time.Time
		}
	}
	return latest
}
