package ask

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// History reads a workload's past. Without permission to read its revisions or events, that is
// noted. If the workload doesn't exist, the error says NotFound.
func (r *Reader) History(ctx context.Context, kind kube.Kind, at client.ObjectKey) (History, error) {
	var (
		past Past
		err  error
	)
	if past.Workload, past.Authors, err = cluster.ReadWorkload(ctx, r.Client, settings.Native{}, kind, at); err != nil {
		return History{}, err
	}
	if past.Revisions, err = lineage.PastOf(ctx, r.Client, past.Workload); err != nil {
		past.Unread = append(past.Unread, "revisions cannot be read: "+err.Error())
	}
	if past.Events, err = announce.ReportedOf(ctx, r.Client, past.Workload.Key.Namespace, past.Workload.UID); err != nil {
		past.Unread = append(past.Unread, "events cannot be read: "+err.Error())
	}
	return HistoryOf(past), ctx.Err()
}
