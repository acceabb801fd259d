package rollout

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Form writes an order as changes of the pod template.
type Form func(w *kube.Workload, order input.Order) ([]patch.Change, error)

// A Patcher moves workloads by changing their pod template.
type Patcher struct {
	client client.Client
	form   Form
	// Installation is noted on each workload that is moved, unless it is empty.
	Installation string
}

// NewPatcher makes a Patcher that writes through the client in the given form.
func NewPatcher(c client.Client, form Form) *Patcher {
	return &Patcher{client: c, form: form}
}

// RollOut gives the workload what is ordered, which starts a rollout, and returns what the
// API server says of the write. It fails with a conflict when the workload is no longer
// what was decided on.
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
	// The answer is read as a whole: admission may have changed more of the template, and
	// what the patch led to tells it from what another writer makes of it later.
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
	return kube.RolledOut{At: kube.WrittenBy(o, kube.FieldManager), Template: after.Template()}, nil
}

// imageChanges set the images that are to be moved. A container that the template does
// not have gets none: it was renamed or removed, and is not brought back.
func imageChanges(w *kube.Workload, order input.Order) []patch.Change {
	var changes []patch.Change
	for _, f := range order.Due {
		if at, ok := w.ImageOf(f.ID.Name); ok && f.ID.Kind == input.KindImage && f.Image != "" && f.Image != at.Image {
			changes = append(changes, patch.SetImage{Container: at.Position, Init: at.Init, Image: f.Image})
		}
	}
	return changes
}

// Unshown writes nothing besides the images that are moved.
func Unshown(*kube.Workload, input.Order) ([]patch.Change, error) { return nil, nil }

// AsAnnotation writes the versions into an annotation of the pod template.
func AsAnnotation(w *kube.Workload, order input.Order) ([]patch.Change, error) {
	return []patch.Change{patch.SetAnnotation{Key: settings.Inputs, Value: order.Text(w.Shown, w.Target.ResourceVersion)}}, nil
}

// AsVariable writes the versions into an environment variable of the container
// that has it already, or of the first one.
func AsVariable(w *kube.Workload, order input.Order) ([]patch.Change, error) {
	v := w.Place(settings.InputsVariable)
	v.Value = order.Text(w.Shown, w.Target.ResourceVersion)
	changes := []patch.Change{v}
	if w.Annotated {
		// The annotation wins over the variable, and would show for ever what was
		// given before the form was changed.
		changes = append(changes, patch.RemoveAnnotation{Key: settings.Inputs})
	}
	return changes, nil
}
