package ask

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// NotWatched is the state of a workload whose namespace the controller does not watch.
const NotWatched = "NotWatched"

// notWatched explains the same.
const notWatched = "the controller does not watch this namespace"

// Serves is what the controller follows according to its flags. The zero value stands for
// everything: the flags aren't known.
type Serves struct {
	ReloadOff, ImagesOff bool
	// Observe is true for a controller that doesn't write to workloads.
	Observe bool
	// Kinds are the kinds of workloads; nil when nothing is known.
	Kinds []kube.Kind
	// Reads are other tools' annotations that it reads as ours.
	Reads []settings.ReloadWords
	// Watches reports whether a namespace is watched; nil when nothing is known.
	Watches func(namespace string) bool
	installation.Pace
}

// ServedBy is what a Deployment's controller handles according to its flags: everything when there
// is no Deployment, or more than one.
func ServedBy(ctx context.Context, c client.Reader, found []installation.Found) (Serves, error) {
	if len(found) != 1 {
		return Serves{}, nil
	}
	configured := found[0].Configured
	v := Serves{
		ReloadOff: !configured.Reload, ImagesOff: !configured.Images, Kinds: configured.Kinds,
		Observe: configured.Words.Intent(nil, nil).Observe, Pace: configured.Pace,
	}
	if words, native := configured.Words.(settings.Native); native {
		v.Reads = words.Reads
	}
	labelled := map[string]labels.Set{}
	if configured.Selector != nil {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		for ns, err := range pages.Items(ctx, c, list) {
			if err != nil {
				if apierrors.IsForbidden(err) {
					err = nil
				}
				return v, err
			}
			labelled[ns.GetName()] = maps.Clone(ns.GetLabels())
		}
	}
	v.Watches = func(namespace string) bool { return configured.Watches(namespace, labelled[namespace]) }
	return v, nil
}

// Words is the vocabulary of the controller, with these defaults.
func (v Serves) Words(defaults settings.Defaults) settings.Native {
	return settings.Native{Defaults: defaults, Reads: v.Reads}
}

// State corrects a state by the flags: an input that the controller doesn't follow may have
// changed since, whatever the record shows. Sources and images are what the workload asks for.
func (v Serves) State(s Report, workload kube.Key, sources, images bool) Report {
	sourcesOff, imagesOff := sources && v.ReloadOff, images && v.ImagesOff
	// The record may still be about the inputs that the controller follows.
	isOpen := s.IsInStep() || s.From == FromEstimate || sources == sourcesOff && images == imagesOff
	off := func(reason input.Reason) Report {
		return Report{Reason: string(reason), Ends: input.Ends(reason), From: FromFlags}
	}
	switch {
	case !v.watches(workload.Namespace):
		return Report{Reason: NotWatched, Message: notWatched, Ends: "a controller that watches the namespace, by its flags or a label", From: FromFlags}
	case !v.follows(workload):
		return off(input.KindOff)
	case isOpen && sourcesOff:
		return off(input.ReloadOff)
	case isOpen && imagesOff:
		return off(input.ImagesOff)
	}
	return s
}

// inputs are those of a row. The record of inputs that the controller no longer follows is
// outdated.
func (v Serves) inputs(row Summary, e record.Entry) []InputStatus {
	if row.State.From != FromFlags {
		return row.Inputs
	}
	kept := maps.Clone(e.Inputs)
	maps.DeleteFunc(kept, func(id input.ID, _ record.Delivered) bool {
		return !v.watches(row.Namespace) || row.State.Reason == string(input.KindOff) || id.IsSource() && v.ReloadOff || !id.IsSource() && v.ImagesOff
	})
	return inputsOnRecord(record.Entry{Inputs: kept})
}

func (v Serves) watches(namespace string) bool { return v.Watches == nil || v.Watches(namespace) }

func (v Serves) follows(workload kube.Key) bool {
	return v.Kinds == nil || kube.HasKind(v.Kinds, workload.GroupKind)
}

// isPast reports whether a warning about flags is outdated.
func (v Serves) isPast(reason string) bool {
	return v.Watches != nil && (reason == string(input.ReloadOff) && !v.ReloadOff || reason == string(input.ImagesOff) && !v.ImagesOff)
}

// planned corrects a plan by the flags: the controller doesn't roll out inputs that it
// doesn't follow.
func (v Serves) planned(row PlannedWorkload, workload kube.Key) PlannedWorkload {
	reason, because := input.Reason(NotWatched), notWatched
	switch {
	case !v.watches(row.Namespace):
	case !v.follows(workload):
		reason, because = input.KindOff, "the controller does not follow this kind of workload"
	case v.ReloadOff:
		reason, because = input.ReloadOff, "the controller does not follow ConfigMaps and Secrets"
	default:
		return row
	}
	switch row.Would {
	case WouldStart, WouldNothing, WouldUnfollow, WouldRollByTemplate:
		return row
	case WouldRollTwice:
		row.Would = WouldRollByTemplate
	default:
		row.Would = WouldNothing
	}
	row.Reason, row.Because, row.Rule = reason, because, rule(reason)
	return row
}
