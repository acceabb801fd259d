package ask

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Source finds the workloads that follow a ConfigMap or Secret. A source that is gone, or that
// the user may not read, may still be on record. If neither is the case, the error says NotFound.
func (r *Reader) Source(ctx context.Context, namespace string, id input.ID) (SourceExplanation, error) {
	s := Source{ID: id, Namespace: namespace, Kinds: r.Kinds}
	heard, stored, err := r.Heard(ctx, namespace)
	if err != nil {
		return SourceExplanation{}, err
	}
	s.Controller, s.Stops = ControllerOf(&heard, r.Now()), heard.StopsIn(namespace)
	s.Fleet = Fleet{Entries: stored.Entries, Changes: stored.Changes, Serves: heard.Serves}
	s.RecordHidden = heard.RecordProblem != nil
	s.Unread = heard.unread("the record, and so who follows it,", "")
	s.Object, err = cluster.ReadHeader(ctx, r.Client, namespace, id)
	switch {
	case apierrors.IsForbidden(err):
		s.Unread = append(s.Unread, "it is "+NotVisible+": "+err.Error())
	case apierrors.IsNotFound(err) && s.isFollowed():
		s.Gone, s.Unread = true, append(s.Unread, "it does not exist")
	case err != nil:
		return SourceExplanation{}, err
	default:
		if s.Events, err = announce.ReportedOf(ctx, r.Client, namespace, string(s.Object.UID)); err != nil {
			s.Unread = append(s.Unread, "events are "+NotVisible+": "+err.Error())
		}
	}
	return ExplainSource(s), ctx.Err()
}

// isFollowed reports whether a workload has the source on record.
func (s *Source) isFollowed() bool {
	for key, entry := range s.Fleet.Entries {
		if _, follows := entry.Inputs[s.ID]; follows && key.Namespace == s.Namespace {
			return true
		}
	}
	return false
}
