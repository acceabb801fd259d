package lineage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

// Holder is an object that pods are made from as long as it exists, and that therefore must keep
// its configuration: a ReplicaSet, a ControllerRevision, a CronJob or a Job. It never changes
// after it was made.
type Holder struct {
	GVK             schema.GroupVersionKind
	Namespace       string
	Name            string
	UID             string
	ResourceVersion string
	// ControllerUID is that of the workload that made the holder, empty without a workload that
	// outlives it; a CronJob's is its own UID.
	ControllerUID string
	// Uses are the sources that the pod template names, sorted. TooLarge is true for a template
	// that names too many to be kept: it uses any source of its namespace, for all Lockstep knows.
	Uses     []input.ID
	TooLarge bool
	// Over is true for a holder that is being deleted and for a finished Job: it won't create
	// pods any more.
	Over bool
}

// String is the form for users: "ReplicaSet/web-6f4d".
func (h *Holder) String() string {
	return h.GVK.Kind + "/" + h.Name
}

// UsesSource reports whether the holder's pod template names the source.
func (h *Holder) UsesSource(s input.ID) bool {
	return slices.Contains(h.Uses, s)
}

// Holds reports whether the holder is a living revision of a workload. Users create and delete
// objects without a controller by hand, and deleting these must not delete the objects they use.
func (h *Holder) Holds() bool {
	return !h.Over && h.ControllerUID != ""
}

// OwnerReference makes the holder a plain owner: not the controller, and not blocking its own
// deletion.
func (h *Holder) OwnerReference() metav1.OwnerReference {
	apiVersion, kind := h.GVK.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: h.Name, UID: types.UID(h.UID)}
}

// GetObjectMeta lets client-go's stores find the holder's name.
func (h *Holder) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name, ResourceVersion: h.ResourceVersion}
}

// SameAs reports whether two copies are equal in everything that matters to Lockstep.
func (h *Holder) SameAs(old *Holder) bool {
	return h.UID == old.UID && h.Over == old.Over && h.ControllerUID == old.ControllerUID && h.TooLarge == old.TooLarge && slices.Equal(h.Uses, old.Uses)
}

// Bound drops the sources of a holder that names too many. A watch keeps every holder in memory.
func (h *Holder) Bound() {
	if input.Excess(h.Uses) != "" {
		h.Uses, h.TooLarge = nil, true
	}
}

// NewHolder makes a Holder from a revision. The makers are the kinds of workloads whose
// revisions are known.
func NewHolder(sort kube.Revisions, makers []kube.Kind, object any) (*Holder, error) {
	o, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	template, err := sort.TemplateOf(o)
	if err != nil {
		return nil, err
	}
	h := holderOf(sort.GroupVersionKind, o, &template.Spec)
	if owner := kube.ControllerOf(o); owner != nil && mayHold(sort, makers, owner) {
		h.ControllerUID = string(owner.UID)
	}
	h.Over = h.Over || sort.EndedOf != nil && sort.EndedOf(o)
	return h, nil
}

// mayHold reports whether revisions of this controller hold objects. A Job is deleted before the
// next one is created, and garbage collection would delete objects that the next one needs,
// unless the Job's maker is a holder itself.
func mayHold(sort kube.Revisions, makers []kube.Kind, controller *metav1.OwnerReference) bool {
	if !sort.Transient {
		return true
	}
	made := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()
	return slices.ContainsFunc(makers, func(k kube.Kind) bool {
		return k.GroupKind() == made && k.Revisions.GroupVersionKind == sort.GroupVersionKind
	})
}

// slimWorkload makes a Holder from a workload that is its own revision.
func slimWorkload(kind kube.Kind, o client.Object) (*Holder, error) {
	template, err := kind.PodTemplate(o)
	if err != nil {
		return nil, err
	}
	h := holderOf(kind.GroupVersionKind, o, &template.Spec)
	h.ControllerUID = h.UID
	return h, nil
}

// WorkloadHolder makes a Holder from a workload that is its own revision; nil for every other.
func WorkloadHolder(w *kube.Workload) *Holder {
	if w == nil || !w.Kind.Revisions.Transient {
		return nil
	}
	h := &Holder{
		GVK: w.Kind.GroupVersionKind, Namespace: w.Key.Namespace, Name: w.Key.Name, UID: w.UID,
		ResourceVersion: w.ResourceVersion, ControllerUID: w.UID, Uses: w.Keeps, TooLarge: w.Excess != "", Over: w.Deleting,
	}
	h.Bound()
	return h
}

func holderOf(gvk schema.GroupVersionKind, o client.Object, spec *corev1.PodSpec) *Holder {
	return &Holder{
		GVK: gvk, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		ResourceVersion: o.GetResourceVersion(),
		Over:            o.GetDeletionTimestamp() != nil,
		Uses:            podrefs.Named(spec),
	}
}
