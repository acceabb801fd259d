package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// FieldManager is the name under which Lockstep's writes show in managed fields.
const FieldManager = "lockstep"

// Document is a patch of a workload's object and how the API server is to read it.
type Document struct {
	Type types.PatchType
	Body []byte
}

// Form writes an order as a patch.
type Form func(w *Workload, order input.Order) (Document, error)

// A Patcher moves workloads by changing their pod template.
type Patcher struct {
	client client.Client
	form   Form
}

// NewPatcher makes a Patcher that writes through the client in the given form.
func NewPatcher(c client.Client, form Form) *Patcher {
	return &Patcher{client: c, form: form}
}

// Move gives the workload what is ordered, which starts a rollout, and returns
// the API server's time of the write. It fails with a conflict when the workload
// is no longer what was decided on.
func (p *Patcher) Move(ctx context.Context, w *Workload, order input.Order) (time.Time, error) {
	doc, err := p.form(w, order)
	if err != nil {
		return time.Time{}, err
	}
	// The answer is asked for as metadata only: nothing else of it is read.
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(w.Target.Kind.GroupVersionKind)
	o.SetNamespace(w.Key.Namespace)
	o.SetName(w.Target.Name)
	if err := p.client.Patch(ctx, o, client.RawPatch(doc.Type, doc.Body), client.FieldOwner(FieldManager)); err != nil {
		return time.Time{}, err
	}
	return WrittenBy(o, FieldManager), nil
}

// PatchThis sends a patch that names the object's UID. When an object of that name
// has another one, the API server calls the patch invalid; to everyone here that is
// what it is: a conflict.
func PatchThis(ctx context.Context, c client.Writer, o client.Object, p client.Patch) error {
	err := c.Patch(ctx, o, p, client.FieldOwner(FieldManager))
	if anotherUID(err) {
		resource := schema.GroupResource{Resource: o.GetObjectKind().GroupVersionKind().Kind}
		return apierrors.NewConflict(resource, o.GetName(), err)
	}
	return err
}

// anotherUID recognises how the API server says that an object of that name is
// not the one that was meant.
func anotherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}

// AsAnnotation writes the versions into an annotation of the pod template.
func AsAnnotation(w *Workload, order input.Order) (Document, error) {
	body, err := patch.TemplateAnnotations(w.patchTarget(), map[string]string{settings.Inputs: order.Text(w.Shown, w.Target.ResourceVersion)})
	return Document{types.MergePatchType, body}, err
}

// AsVariable writes the versions into an environment variable of the container
// that has it already, or of the first one.
func AsVariable(w *Workload, order input.Order) (Document, error) {
	v := w.Place(settings.InputsVariable)
	v.Value = order.Text(w.Shown, w.Target.ResourceVersion)
	var stale []string
	if w.annotated {
		// The annotation wins over the variable, and would show for ever what was
		// given before the form was changed.
		stale = append(stale, settings.Inputs)
	}
	body, err := patch.Environment(w.patchTarget(), []patch.Variable{v}, stale...)
	return Document{types.JSONPatchType, body}, err
}

// ShowsVariable reports whether the template shows versions in an environment
// variable, and not in an annotation.
func (w *Workload) ShowsVariable() bool {
	return !w.annotated && w.Place(settings.InputsVariable).Index >= 0
}

func (w *Workload) patchTarget() patch.Target {
	return patch.Target{UID: w.Target.UID, ResourceVersion: w.Target.ResourceVersion, Template: w.Target.Kind.Template}
}

// Place finds where an environment variable goes: to the container that has it
// already, else to the first one.
func (w *Workload) Place(name string) patch.Variable {
	for i, c := range w.Containers {
		if m, ok := c.Markers[name]; ok {
			return patch.Variable{Name: name, Container: i, Index: m.Index}
		}
	}
	return patch.Variable{Name: name, Index: -1, First: len(w.Containers) > 0 && w.Containers[0].EnvCount == 0}
}

// WrittenBy is when the manager last wrote the object, by the API server's clock.
func WrittenBy(o metav1.Object, manager string) time.Time {
	var latest time.Time
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager && e.Time != nil && e.Time.After(latest) {
			latest = e.Time.Time
		}
	}
	return latest
}
