package patcher

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Form turns an order into changes of the pod template.
type Form func(w *kube.Workload, order input.Order) ([]patch.Change, error)

// A Patcher rolls out workloads by changing their pod template.
type Patcher struct {
	client client.Client
	form   Form
	// Installation is written to each workload that is rolled out, unless it is empty.
	Installation string
}

// NewPatcher makes a Patcher that writes through the client in the given form.
func NewPatcher(c client.Client, form Form) *Patcher {
	return &Patcher{client: c, form: form}
}

// RollOut delivers the ordered versions to the workload, which starts a rollout, and returns the
// API server's response. It fails with a conflict when the workload has changed since the
// decision.
func (p *Patcher) RollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error) {
	order.Aborted = w.Status.Aborted
	changes, err := p.form(w, order)
	if err != nil {
		return kube.RolledOut{}, err
	}
	changes = append(changes, imageChanges(w, order)...)
	if p.Installation != "" {
		changes = append(changes, patch.SetObjectAnnotation{Key: settings.RolledOutBy, Value: p.Installation})
	}
	doc, err := patch.Template(w.PatchTarget(), changes)
	if err != nil {
		return kube.RolledOut{}, err
	}
	// The whole response is read: admission may have changed more of the template, and the
	// resulting template distinguishes this patch from later changes by another writer.
	o := w.Target.Kind.NewObject()
	o.SetNamespace(w.Key.Namespace)
	o.SetName(w.Target.Name)
	if err := p.client.Patch(ctx, o, client.RawPatch(doc.Type, doc.Body), client.FieldOwner(kube.FieldManager)); err != nil {
		return kube.RolledOut{}, err
	}
	after, err := kube.SlimWorkload(w.Target.Kind, o, settings.Native{})
	if err != nil {
		return kube.RolledOut{}, err
	}
	template := after.Template()
	template.Object = w.Template().Object // the object by itself doesn't show that it lends its template
	return kube.RolledOut{At: kube.WrittenBy(o, kube.FieldManager), Template: template}, nil
}

// imageChanges set the images to roll out. A container that the template lacks is skipped: it
// was renamed or removed, and must not be restored.
func imageChanges(w *kube.Workload, order input.Order) []patch.Change {
	var changes []patch.Change
	for _, f := range order.Due {
		if at, ok := w.ImageOf(f.ID.Name); ok && f.ID.Kind == input.KindImage && f.Image != "" && f.Image != at.Image {
			changes = append(changes, patch.SetImage{Container: at.Position, Init: at.Init, Image: f.Image})
		}
	}
	return changes
}

// Unshown doesn't write anything besides the images that are rolled out.
func Unshown(*kube.Workload, input.Order) ([]patch.Change, error) { return nil, nil }

// AsAnnotation writes the versions into an annotation of the pod template.
func AsAnnotation(w *kube.Workload, order input.Order) ([]patch.Change, error) {
	return []patch.Change{patch.SetAnnotation{Key: settings.Inputs, Value: order.Text(w.Shown, w.Target.ResourceVersion)}}, nil
}

// AsVariable writes the versions into an environment variable of the container that already has
// it, or of the first one.
func AsVariable(w *kube.Workload, order input.Order) ([]patch.Change, error) {
	v := w.Place(settings.InputsVariable)
	v.Value = order.Text(w.Shown, w.Target.ResourceVersion)
	changes := []patch.Change{v}
	if w.Annotated {
		// The annotation wins over the variable, and would keep showing the versions delivered
		// before the form changed.
		changes = append(changes, patch.RemoveAnnotation{Key: settings.Inputs})
	}
	return changes, nil
}
