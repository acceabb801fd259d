package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
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
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// explainOptions are the flags of "lockstep explain".
type explainOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	key          string
	quiet        time.Duration
	watch        bool
}

func newExplain(env Environment) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say why a workload was rolled out, or why it was not; or who uses a ConfigMap or Secret",
		Long: `Say where a workload stands: what it depends on, what it was given, what exists, who
changed that, what happens next, or why nothing does and what ends that. A further kind
that the controller was given need not be named again: it is read from its Deployment.

State is what the controller decided and has on record, with the reason and message of
its events and log; or, where the arguments of its Deployment rule the workload out,
NotWatched, KindOff, ReloadOff or ImagesOff. What the controller has not said is worked
out from what you may read, by the controller's own rules, and marked as an estimate.

A source that you may not read is "not visible to you"; its digest is then the one that
the controller has on record. Digests of Secrets need the installation key as well.

Of a ConfigMap or Secret it says which workloads follow it and how they stand, and what
was told of it.`,
		Example: `  lockstep explain deployment/web -n shop
  lockstep explain sts/db -o yaml
  lockstep explain deploy/web -w
  lockstep explain configmap/app`,
		Args:              oneObject,
		ValidArgsFunction: completeTarget(&o.kube, &o.scope),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.installation.namespace = ownNamespace(o.installation.namespace, env.Lookup)
			return o.run(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	o.scope.bindOne(fs)
	o.output.bind(cmd)
	o.installation.bind(fs)
	fs.StringVar(&o.key, "key-name", defaultKeyName, "name of the Secret with the key for digests of Secrets")
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "the controller's quiet window, for estimates")
	fs.BoolVarP(&o.watch, "watch", "w", false, "go on, and explain again when the controller has decided something else")
	return cmd
}

// kindsPatience limits the wait for the kinds that the cluster's controller knows.
const kindsPatience = 5 * time.Second

func (o *explainOptions) run(ctx context.Context, name string, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	t, err := targetAmong(name, within.namespace, within.kinds)
	c, clientErr := o.kube.client()
	if _, unknown := errors.AsType[unknownKindError](err); unknown && clientErr == nil {
		// Without a response of the cluster, the first error is the useful one.
		ctx, cancel := context.WithTimeout(ctx, kindsPatience)
		within.kinds = allOf(within.kinds, o.installation.kinds(ctx, c))
		cancel()
		t, err = targetAmong(name, within.namespace, within.kinds)
	}
	switch {
	case err != nil:
		return usageError{err}
	case clientErr != nil:
		return clientErr
	}
	question := &explaining{options: o, client: c, env: env, target: t, kinds: within.kinds}
	if t.isWorkload {
		question.kind, question.at, _ = workloadAmong(name, within.namespace, within.kinds)
	}
	if !o.watch {
		answer, err := question.ask(ctx)
		if err != nil {
			return err
		}
		return o.print(env, answer)
	}
	var before explained
	return ledger.WhenChanged(ctx, c, o.installation.namespace, func(ctx context.Context) error {
		answer, err := question.ask(ctx)
		if err != nil || reflect.DeepEqual(before, answer) {
			return err
		}
		if before != nil && o.output.isForUsers() {
			_, _ = fmt.Fprintln(env.Stdout)
		}
		before = answer
		return o.print(env, answer)
	})
}

// explained is an answer that can be printed for users.
type explained interface {
	// print writes it, and returns the state that colours its third line.
	print(to *bytes.Buffer, now time.Time, wide bool) ask.Report
}

// explaining is one run of the command.
type explaining struct {
	options *explainOptions
	client  client.Client
	env     Environment
	target  target
	kinds   []kube.Kind
	// kind and at are the workload, if the target is one.
	kind kube.Kind
	at   client.ObjectKey
}

func (x *explaining) ask(ctx context.Context) (explained, error) {
	if x.target.isWorkload {
		answer, err := x.askWorkload(ctx)
		return workloadAnswer{answer}, err
	}
	answer, err := x.askSource(ctx)
	return sourceAnswer{answer}, err
}

// askWorkload reads everything known about the workload. A missing permission is reported
// instead of failing, except for the workload itself.
func (x *explaining) askWorkload(ctx context.Context) (ask.Explanation, error) {
	var s ask.Situation
	heard, stored, err := x.options.installation.heard(ctx, x.client, x.env, x.at.Namespace)
	if err != nil {
		return ask.Explanation{}, err
	}
	s.Controller, s.Readable, s.Stops = x.options.installation.controller(heard, x.env), heard.RecordProblem == nil, heard.StopsIn(x.at.Namespace)
	s.Fleet = ask.Fleet{Entries: stored.Entries, Changes: stored.Changes, Serves: heard.Serves}
	if !s.Readable {
		s.Unread = append(s.Unread, "the record is "+ask.NotVisible+", so the state is that of the newest event: "+heard.RecordProblem.Error())
	}
	live, err := x.live(ctx, &s)
	if err != nil {
		return ask.Explanation{}, err
	}
	if err := x.gather(ctx, &s, live); err != nil {
		return ask.Explanation{}, err
	}
	told, err := x.options.installation.unwritable(ctx, x.client, stored)
	if err != nil {
		return ask.Explanation{}, err
	}
	shard := ledger.ShardOf(x.options.installation.state, live.Key())
	s.Unwritable = slices.DeleteFunc(told, func(t announce.Reported) bool { return t.About != shard })
	if err := x.details(ctx, &s); err != nil {
		return ask.Explanation{}, err
	}
	if s.Entry.Decision.Reason == input.AwaitsTurn {
		s.Fleet.First = x.first(ctx, &s)
	}
	return ask.Explain(s), ctx.Err()
}

// live is the view of the currently readable objects.
func (x *explaining) live(ctx context.Context, s *ask.Situation) (*cluster.Live, error) {
	key, err := access.ReadInstallationKey(ctx, x.client, x.options.installation.namespace, x.options.key)
	hashers := run.Hashers(key)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		delete(hashers.Kinds, input.KindSecret)
	case err != nil:
		return nil, err
	}
	live := cluster.NewLive(x.client, hashers, x.kind, x.at, x.env.Now).Tolerate()
	live.Words = s.Fleet.Words(settings.Defaults{})
	if err := live.Read(ctx); err != nil {
		return nil, notFound(ctx, x.client, workloadTarget(x.kind, x.at), err)
	}
	s.Hidden = live.Hidden()
	return live, nil
}

// gather reads the inputs of the controller's decision.
func (x *explaining) gather(ctx context.Context, s *ask.Situation, live *cluster.Live) error {
	w, _ := live.Workload(live.Key())
	entry, found := s.Fleet.Entries[w.Key]
	s.Workload, s.Entry = w, entry
	s.Namespace, _ = live.Namespace(w.Key.Namespace)
	s.Recorded = found && (entry.TooNew || entry.UID == w.UID)
	if !s.Recorded {
		s.Entry = record.Entry{}
	}
	inputs := configs.New(configs.Options{View: live, Since: unknownSince, Shared: s.Fleet.IsShared})
	gatherer := &rollouts.Gatherer{
		// An input on record that isn't requested here is followed through a controller flag.
		Vocabulary: s.Fleet.Words(settings.Defaults{Auto: s.Recorded, Quiet: x.options.quiet}),
		View:       live, Families: []rollouts.Family{inputs}, Read: func(context.Context) error { return nil },
		Entry:     func(kube.Key) (record.Entry, bool) { return s.Entry, s.Recorded },
		Revisions: x.revisions, MaxDelay: math.MaxInt64, Now: x.env.Now,
		Safety: s.Fleet.Safety(),
		Gatekeepers: rollouts.Gatekeepers{
			Stopped: func(string) (string, bool) { return ask.StoppedBy(s.Stops) }, Change: s.Fleet.Change,
		},
	}
	got, err := gatherer.Gather(ctx, live.Key())
	if err != nil {
		return err
	}
	s.Live = got.Observation
	return nil
}

// revisions are those of the workload; without permission to read them nothing counts as
// reverted.
func (x *explaining) revisions(ctx context.Context, w *kube.Workload) (timeline.Past, error) {
	return lineage.Revisions(ctx, x.client, w)
}

// first are the workloads that go first, as far as they can be read: the place of the others
// depends on them.
func (x *explaining) first(ctx context.Context, s *ask.Situation) map[kube.Key]bool {
	namespace := x.at.Namespace
	if len(s.Fleet.Shared) > 0 {
		namespace = ""
	}
	var all []cluster.Header
	for _, kind := range allOf(x.kinds, s.Fleet.Kinds) {
		if found, err := cluster.Headers(ctx, x.client, kind, namespace, labels.Everything()); err == nil {
			all = append(all, found...)
		}
	}
	return ask.FirstOf(all)
}

// details reads additional information for users.
func (x *explaining) details(ctx context.Context, s *ask.Situation) error {
	template, err := cluster.ReadTemplate(ctx, x.client, s.Workload)
	if err == nil && template != nil {
		s.Places = podrefs.Places(&template.Spec)
	}
	if s.Events, err = announce.ReportedOf(ctx, x.client, s.Workload.Key.Namespace, s.Workload.UID); err != nil {
		s.Unread = append(s.Unread, "events are "+ask.NotVisible+": "+err.Error())
	}
	s.Writers = map[input.ID]kube.Writer{}
	for _, id := range sourcesOf(s) {
		if o, err := cluster.ReadHeader(ctx, x.client, x.at.Namespace, id); err == nil {
			s.Writers[id] = kube.DataWriter(o)
		}
	}
	return ctx.Err()
}

// sourcesOf are the followed ConfigMaps and Secrets that exist.
func sourcesOf(s *ask.Situation) []input.ID {
	var all []input.ID
	for _, f := range s.Live.Findings {
		if f.ID.IsSource() && !f.Current.IsAbsent() {
			all = append(all, f.ID)
		}
	}
	return all
}

func (o *explainOptions) print(env Environment, answer explained) error {
	return o.output.write(env.Stdout, answer, func(to io.Writer) error {
		var text bytes.Buffer
		state := answer.print(&text, env.Now(), o.output.isWide())
		return paint(to, text.Bytes(), func(line int) string {
			if stateLine := 2; line != stateLine || !usesColour(env) {
				return ""
			}
			return stateColour(state)
		})
	})
}
