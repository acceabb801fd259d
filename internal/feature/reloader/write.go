package reloader

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// restartedAt is the annotation of "kubectl rollout restart". It restarts the pods of a workload
// whose template already shows the hash.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// action is a write that was decided on.
type action struct {
	do func(context.Context) error
	// paused is true when a Deployment has to be resumed later.
	paused bool
	// unmarked is true when the template doesn't show what it was reloaded for.
	unmarked bool
	// alone is true for a run of a CronJob that forbids a second one.
	alone bool
}

// actionFor is how a workload is reloaded.
func (r *Reloader) actionFor(kind Kind, o client.Object, in observation, all []due) (action, error) {
	switch kind.manner {
	case byRun:
		return r.runOf(o, all), nil
	case byReplacement:
		return r.replacementOf(o, all), nil
	case byTemplate:
	}
	if kind.Kind.Kind == rolloutKind && r.Words.Restarts(in.Annotations) {
		return r.restartOf(kind, o)
	}
	changes := r.marks(kind, in, all)
	period := r.pausePeriod(kind, in)
	if period > 0 && !isPaused(o) {
		changes = append(changes, patch.Pause{}, patch.SetObjectAnnotation{Key: r.Words.Keys.PausedAt, Value: r.Now().UTC().Format(time.RFC3339)})
	}
	doc, err := patch.Template(kind.PatchTarget(o, in.Template), changes)
	return action{do: r.patches(kind, o, doc), paused: period > 0}, err
}

// rolloutKind is the kind of Argo Rollouts.
const rolloutKind = "Rollout"

// restartOf lets Argo Rollouts restart the pods, without a trace in the template.
func (r *Reloader) restartOf(kind Kind, o client.Object) (action, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()},
		"spec":     map[string]any{"restartAt": r.Now().UTC().Format(time.RFC3339)},
	})
	return action{do: r.patches(kind, o, patch.Document{Type: types.MergePatchType, Body: body}), unmarked: true}, err
}

// writeTimeout limits a write that has begun when the process is to end.
const writeTimeout = 10 * time.Second

// patches sends a patch to an object. It doesn't keep the object. A patch that has begun isn't broken
// off: whether it was written has to be on record, or a Secret that is deleted next is missed.
func (r *Reloader) patches(kind Kind, o client.Object, doc patch.Document) func(context.Context) error {
	namespace, name := o.GetNamespace(), o.GetName()
	return func(ctx context.Context) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		target := kind.NewObject()
		target.SetNamespace(namespace)
		target.SetName(name)
		return r.Client.Patch(ctx, target, client.RawPatch(doc.Type, doc.Body), client.FieldOwner(FieldManager))
	}
}

// marks are the changes of a template that show what is due.
func (r *Reloader) marks(kind Kind, in observation, all []due) []patch.Change {
	var changes []patch.Change
	for _, d := range all {
		if d.unseen {
			changes = append(changes, patch.SetAnnotation{Key: restartedAt, Value: r.Now().Format(time.RFC3339)})
			break
		}
	}
	if r.Strategy == Annotations {
		return append(changes, patch.SetAnnotation{Key: stakater.LastReloadedFrom, Value: r.lastOf(in, all).Text()})
	}
	for _, v := range lastOfEach(all) {
		c := in.Template.Spec.Containers[v.container]
		name := stakater.Variable(v.Type, v.Name)
		at, value := variableIn(c, name)
		switch {
		case v.event == deleted:
			changes = append(changes, patch.RemoveVariable{Container: v.container, Index: at})
		case at < 0 || value != v.hash:
			changes = append(changes, patch.SetVariable{
				Name: name, Value: v.hash, Container: v.container, Index: at, First: len(c.Env) == 0, Last: kind.Kind.Kind == rolloutKind,
			})
		}
	}
	return changes
}

// lastOf is the mark of the last change: there is room for one.
func (r *Reloader) lastOf(in observation, all []due) stakater.Reloaded {
	last := all[len(all)-1]
	return stakater.Reloaded{
		Type: last.Type, Name: last.Name, Namespace: in.namespace, Hash: last.hash,
		Containers: []string{in.Template.Spec.Containers[last.container].Name}, ObservedAt: r.Now().Unix(),
	}
}

// shownBy are the changes that a template shows once a task is done.
func (r *Reloader) shownBy(t task) []due {
	switch {
	case t.action.unmarked:
		return nil
	case r.Strategy == Annotations:
		return t.due[len(t.due)-1:]
	default:
		return lastOfEach(t.due)
	}
}

// lastOfEach is the last change of each variable: several sources can share one.
func lastOfEach(all []due) []due {
	type place struct {
		container int
		variable  string
	}
	taken := map[place]bool{}
	var last []due
	for _, d := range slices.Backward(all) {
		if at := (place{d.container, stakater.Variable(d.Type, d.Name)}); !taken[at] {
			taken[at] = true
			last = append(last, d)
		}
	}
	slices.Reverse(last)
	return last
}

func newUnstructured(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o
}
