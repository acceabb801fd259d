package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// oneObject accepts only the name of one object.
func oneObject(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{errors.New("name one workload or source, such as deployment/web or configmap/app")}
	}
	return nil
}

// askSource finds the workloads that follow a ConfigMap or Secret. A source that is gone, or
// that the user may not read, may still be on record.
func (x *explaining) askSource(ctx context.Context) (ask.SourceExplanation, error) {
	t := x.target
	s := ask.Source{ID: input.ID{Kind: input.Kind(t.Kind), Name: t.Name}, Namespace: t.Namespace}
	heard, stored, err := x.options.installation.heard(ctx, x.client, x.env, t.Namespace)
	if err != nil {
		return ask.SourceExplanation{}, err
	}
	s.Controller, s.Stops = x.options.installation.controller(heard, x.env), heard.StopsIn(t.Namespace)
	s.Fleet = ask.Fleet{Entries: stored.Entries, Changes: stored.Changes, Serves: heard.Serves}
	s.RecordHidden = heard.RecordProblem != nil
	if s.RecordHidden {
		s.Unread = append(s.Unread, "the record, and so who follows it, is "+ask.NotVisible+": "+heard.RecordProblem.Error())
	}
	if s.Kinds, err = allKinds(x.options.scope.kinds); err != nil {
		return ask.SourceExplanation{}, usageError{err}
	}
	s.Object, err = cluster.ReadHeader(ctx, x.client, t.Namespace, s.ID)
	switch {
	case apierrors.IsForbidden(err):
		s.Unread = append(s.Unread, "it is "+ask.NotVisible+": "+err.Error())
	case apierrors.IsNotFound(err) && isFollowed(s):
		s.Gone, s.Unread = true, append(s.Unread, "it does not exist")
	case err != nil:
		return ask.SourceExplanation{}, notFound(ctx, x.client, t, err)
	default:
		if s.Events, err = announce.ReportedOf(ctx, x.client, t.Namespace, string(s.Object.UID)); err != nil {
			s.Unread = append(s.Unread, "events are "+ask.NotVisible+": "+err.Error())
		}
	}
	return ask.ExplainSource(s), ctx.Err()
}

// isFollowed reports whether a workload has the source on record.
func isFollowed(s ask.Source) bool {
	for key, entry := range s.Fleet.Entries {
		if _, follows := entry.Inputs[s.ID]; follows && key.Namespace == s.Namespace {
			return true
		}
	}
	return false
}
