package ask

import (
	"context"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// reading is what one question about a workload reads.
type reading struct {
	*Reader
	Situation

	kind kube.Kind
	at   client.ObjectKey
	own  Own
}

// Workload explains why a workload is in its state. A missing permission is noted instead of
// failing, except for the workload itself. If the workload doesn't exist, the error says NotFound.
func (r *Reader) Workload(ctx context.Context, kind kube.Kind, at client.ObjectKey) (Explanation, error) {
	heard, stored, err := r.Heard(ctx, at.Namespace)
	if err != nil {
		return Explanation{}, err
	}
	x := &reading{Reader: r, kind: kind, at: at, own: heard.Own}
	x.Controller, x.Readable, x.Stops = ControllerOf(&heard, r.Now()), heard.RecordProblem == nil, heard.StopsIn(at.Namespace)
	x.Blind = heard.StopProblem != nil
	x.Fleet = Fleet{Entries: stored.Entries, Failures: stored.Failures, Serves: heard.Serves}
	live, err := x.live(ctx)
	if err != nil {
		return Explanation{}, err
	}
	if err := x.gather(ctx, live); err != nil {
		return Explanation{}, err
	}
	told, err := r.unwritable(ctx, x.own, stored)
	if err != nil {
		return Explanation{}, err
	}
	shard := ledger.ShardOf(x.own.State, live.Key())
	for _, t := range told {
		if t.About == shard {
			x.Unwritable = append(x.Unwritable, t)
		}
	}
	if err := x.details(ctx); err != nil {
		return Explanation{}, err
	}
	instead := ""
	if x.state().From == FromEvent {
		instead = ", so the state comes from the newest event"
	}
	x.Unread = append(heard.unread("the record", instead), x.Unread...)
	if r := x.Entry.Decision.Reason; r == input.AwaitsTurn || r == input.AwaitsFirst {
		x.Fleet.First = x.first(ctx)
	}
	return Explain(x.Situation), ctx.Err()
}

// live is the view of the currently readable objects.
func (x *reading) live(ctx context.Context) (*cluster.Live, error) {
	hashers, err := x.hashers(ctx, x.own)
	if err != nil {
		return nil, err
	}
	live := cluster.NewLive(x.Client, hashers, x.kind, x.at, x.Now).Tolerate()
	live.Words = x.Fleet.Words(settings.Defaults{})
	if err := live.Read(ctx); err != nil {
		return nil, err
	}
	x.Hidden, x.Writers = live.Hidden(), live.Writers()
	if problem := live.NamespaceProblem(); problem != nil {
		x.Blind = true
		x.Unread = append(x.Unread, "the settings of its namespace, such as a hold, are "+NotVisible+": "+problem.Error())
	}
	return live, nil
}

// hashers digest sources; without the installation key they don't digest Secrets.
func (r *Reader) hashers(ctx context.Context, own Own) (kube.Hashers, error) {
	key, err := access.ReadInstallationKey(ctx, r.Client, own.Namespace, own.Key)
	hashers := kube.NewHashers(key)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		delete(hashers.Kinds, input.KindSecret)
		err = nil
	}
	return hashers, err
}

// gather reads the inputs of the controller's decision.
func (x *reading) gather(ctx context.Context, live *cluster.Live) error {
	w, _ := live.Workload(live.Key())
	entry, found := x.Fleet.Entries[w.Key]
	x.Situation.Workload, x.Entry = w, entry
	x.Namespace, _ = live.Namespace(w.Key.Namespace)
	x.Recorded = found && (entry.TooNew || entry.UID == w.UID)
	if !x.Recorded {
		x.Entry = record.Entry{}
	}
	inputs := configs.New(configs.Options{View: live, Since: unknownSince, Shared: x.Fleet.IsShared})
	families := []rollouts.Family{inputs}
	if !x.Fleet.ImagesOff {
		families = append(families, images.Recorded{Shared: x.Fleet.IsShared})
	}
	gatherer := &rollouts.Gatherer{
		// A source on record that isn't requested here is followed through a controller flag.
		Vocabulary: x.Fleet.Words(settings.Defaults{Auto: hasSource(x.Entry) || x.Entry.TooNew, Quiet: x.Quiet}),
		View:       live, Families: families, Read: func(context.Context) error { return nil },
		Entry:     func(kube.Key) (record.Entry, bool) { return x.Entry, x.Recorded },
		Revisions: x.revisions, MaxDelay: math.MaxInt64, Now: x.Now,
		Safety: x.Fleet.Safety(),
		Gatekeepers: rollouts.Gatekeepers{
			Stopped: func(string) (string, bool) { return StoppedBy(x.Stops) }, Failure: x.Fleet.Failure,
		},
	}
	got, err := gatherer.Gather(ctx, live.Key())
	if err != nil {
		return err
	}
	x.Live = got.Observation
	return nil
}

func unknownSince(*kube.Workload, input.Kind) (time.Time, bool) { return time.Time{}, false }

// revisions are those of the workload; without permission to read them nothing counts as
// reverted.
func (x *reading) revisions(ctx context.Context, w *kube.Workload) (timeline.Past, error) {
	return lineage.Revisions(ctx, x.Client, w)
}

// first are the workloads that go first, as far as they can be read: the place of the others
// depends on them.
func (x *reading) first(ctx context.Context) map[kube.Key]bool {
	namespace := x.at.Namespace
	if len(x.Fleet.Shared) > 0 {
		namespace = ""
	}
	var all []cluster.Header
	for _, kind := range kube.AllKinds(x.Kinds, x.Fleet.Kinds) {
		if found, _, err := x.headers(ctx, Scope{Namespace: namespace}, []kube.Kind{kind}); err == nil {
			all = append(all, found...)
		}
	}
	return FirstOf(all)
}

// details reads additional information for users.
func (x *reading) details(ctx context.Context) error {
	w := x.Situation.Workload
	template, err := cluster.ReadTemplate(ctx, x.Client, w)
	if err == nil && template != nil {
		x.Places = podrefs.Places(&template.Spec)
	}
	if x.Events, err = announce.ReportedOf(ctx, x.Client, w.Key.Namespace, w.UID); err != nil {
		x.Unread = append(x.Unread, "events are "+NotVisible+": "+err.Error())
	}
	return ctx.Err()
}
