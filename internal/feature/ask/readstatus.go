package ask

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

// Status is how many workloads stand.
type Status struct {
	// Controller is the state of the controller itself.
	Controller Controller `json:"controller"`
	// Stops are the stops of automatic changes by an operator.
	Stops []Stop `json:"stops,omitempty"`
	// Workloads are the followed workloads, and those that request to be followed.
	Workloads []Summary `json:"workloads"`
	// Partial is true if workloads may be missing, because a kind of workload or the record can't be
	// read.
	Partial bool `json:"partial,omitempty"`
	// Notes are messages about objects that could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Status reads how the workloads of a scope stand: one list for each kind, and the record.
func (r *Reader) Status(ctx context.Context, within Scope) (Status, error) {
	heard, stored, err := r.Heard(ctx, within.Namespace)
	if err != nil {
		return Status{}, err
	}
	kinds := within.Only
	if kinds == nil {
		kinds = kube.AllKinds(r.Kinds, heard.Serves.Kinds)
	}
	workloads, notes, err := r.headers(ctx, within, kinds)
	if err != nil {
		return Status{Notes: notes}, err
	}
	status, err := r.status(ctx, workloads, within.Namespace, &heard, &stored)
	status.Notes, status.Partial = slices.Concat(notes, status.Notes), status.Partial || len(notes) > 0
	return status, err
}

// StatusOf does the same for a caller that has the workloads of the scope already.
func (r *Reader) StatusOf(ctx context.Context, within Scope, workloads []cluster.Header) (Status, error) {
	heard, stored, err := r.Heard(ctx, within.Namespace)
	if err != nil {
		return Status{}, err
	}
	return r.status(ctx, workloads, within.Namespace, &heard, &stored)
}

func (r *Reader) status(ctx context.Context, workloads []cluster.Header, namespace string, heard *Heard, stored *ledger.Stored) (Status, error) {
	notes := r.missing(ctx, workloads, namespace)
	known := Known{Workloads: workloads, Serves: heard.Serves}
	if heard.RecordProblem == nil {
		known.Entries, known.Failures = stored.Entries, stored.Failures
		unwritable, err := r.unwritable(ctx, heard.Own, *stored)
		if err != nil {
			return Status{Notes: notes}, err
		}
		for _, t := range unwritable {
			notes = append(notes, fmt.Sprintf("%s %s: %s", t.Reason, t.About, t.Note))
		}
	}
	var err error
	if known.NeedsEvents() {
		known.Events, err = announce.ReportedIn(ctx, r.Client, namespace)
	}
	notes = append(notes, heard.unread("the record", byEvents(err))...)
	if err != nil {
		notes = append(notes, err.Error())
	}
	return Status{
		Controller: ControllerOf(heard, r.Now()), Stops: heard.StopsIn(namespace),
		Workloads: StatusOf(known), Partial: heard.RecordProblem != nil, Notes: notes,
	}, access.UnlessForbidden(err)
}

// missing notes that the namespace of a list without workloads doesn't exist, as far as that is visible.
func (r *Reader) missing(ctx context.Context, workloads []cluster.Header, namespace string) []string {
	if namespace == "" || len(workloads) > 0 {
		return nil
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		return nil
	}
	return []string{"namespace " + namespace + " doesn't exist"}
}

// byEvents says what a list shows instead of the record, if events could be read.
func byEvents(problem error) string {
	if problem != nil {
		return ""
	}
	return ", so the states come from events"
}
