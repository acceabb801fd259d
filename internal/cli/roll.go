package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// rollOptions are the flags of "lockstep roll".
type rollOptions struct {
	kube    kubeOptions
	several severalOptions
	ownNS   string
	key     string
	state   string
	now     bool
	force   bool
	dryRun  bool
	waiting waitOptions
	quiet   time.Duration
	images  imagesOptions
	form    string
	why     whyOptions
}

func newRoll(env Environment) *cobra.Command {
	o := rollOptions{several: severalOptions{workloadsOnly: true}}
	cmd := &cobra.Command{
		Use:   "roll KIND/NAME...",
		Short: "Roll out workloads with the current versions of their inputs, by hand",
		Long: `Roll out workloads with the current versions of their ConfigMaps, Secrets and images,
by hand.

The command writes the same pod template as the controller would, and the controller records the
versions as delivered. Pods restart even if lockstep.dev/strategy is evict or refresh. After an
undo or an abort, the controller follows the workload again. The command refuses a CronJob unless
it gets another image, because its next Job loads the new content anyway.

Name one or more workloads, or select them: -l and --all select those that "lockstep status"
lists for the namespace. A kind as argument restricts the selection ("roll deployment -l
app=web"). The command rolls them out one after the other. If one fails, it continues with the
next, reports each failure and exits with 1. It also exits with 1 if some can't be listed, or the
controller's record can't be read. A selected CronJob that doesn't need a rollout isn't a failure.

With --dry-run, the command only prints what it would roll out, and doesn't wait for the quiet
window. With --wait, it waits until the rollout is done, and reports the progress on standard error.
If the workload is in step, it waits for the rollout in progress, if any. It exits with 1 if the
rollout fails or --timeout expires. Ctrl-C ends the command, and the rollout continues. With several
workloads, each rollout starts after the previous one is done.

Without --now, the command waits until the workload's sources have been unchanged for --quiet. It
refuses to roll out a workload if the workload or a source is held, and doesn't change a
quarantined or contested image. It ignores a stop ("lockstep stop"), maintenance windows, and the
order in which a change reaches workloads.

Without --force, the command doesn't roll out a workload that is in step. The controller's record
decides: the annotation lockstep.dev/inputs shows only the versions that Lockstep wrote, not those
that another tool's rollout has loaded. Versions that were only observed count as delivered, so
they need --force. So does an image that another writer pinned to a digest, or that was released.

Images are those of the annotations image.lockstep.dev/CONTAINER. The command queries each registry
once, with the pods' pull secrets if you have permission to read them, then with Docker's
configuration. One patch delivers configuration and images. If a registry doesn't answer, the
command rolls out the rest and exits with 1.`,
		Example: `  lockstep roll deployment/web -n shop
  lockstep roll deployment/web deployment/api -n shop
  lockstep roll -l team=web -n shop
  lockstep roll --all --dry-run -n shop
  lockstep roll deployment/web --wait --timeout 5m -n shop
  lockstep roll statefulset/db --now
  lockstep roll statefulset.apps.kruise.io/db --kind apps.kruise.io/v1beta1/StatefulSet=spec.template`,
		Args: func(cmd *cobra.Command, args []string) error {
			o.waiting.limited = cmd.Flags().Changed("timeout")
			return o.several.read(args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ownNS = controllerNamespace(o.ownNS)
			return o.run(cmd.Context(), env)
		},
		ValidArgsFunction: completeSeveral(completeWorkload(&o.kube, &o.several.scopeOptions)),
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.several.bind(fs)
	bindControllerNamespace(fs, &o.ownNS)
	fs.StringVar(&o.key, "key-name", ask.DefaultKey, "name of the Secret with the key for Secret digests")
	fs.StringVar(&o.state, "state-name", ask.DefaultState, "name prefix of the ConfigMaps with the record")
	hide(fs, "key-name", "state-name")
	fs.BoolVar(&o.force, "force", false, "also restart a workload that is in step, and replace images that were pinned by hand")
	fs.BoolVar(&o.now, "now", false, "don't wait for the quiet window, and ignore holds, quarantined and contested images")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print what would be rolled out, without changing anything")
	o.waiting.bind(fs)
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "how long the sources must be unchanged, for a workload without lockstep.dev/quiet")
	o.why.bind(fs)
	o.images.reads.bind(fs)
	o.images.bindPlatforms(fs)
	o.images.bindRegistries(fs)
	fs.StringVar(&o.form, "form", "", "what Lockstep writes into the pod template: annotation, or env for an environment variable (default what the template contains, else annotation)")
	return cmd
}

func (o *rollOptions) run(ctx context.Context, env Environment) error {
	if o.form != "" {
		if err := validForm(o.form); err != nil {
			return usageError{err}
		}
	}
	if err := o.waiting.validate(); err != nil {
		return err
	}
	words, err := o.images.words(settings.Defaults{Quiet: o.quiet})
	if err != nil {
		return usageError{err}
	}
	words.Defaults.Auto = true // These workloads were named.
	own := installationOptions{namespace: o.ownNS, state: o.state, key: o.key}
	found, c, err := o.several.targets(ctx, &o.kube, &own, env)
	if err != nil {
		return err
	}
	key, err := access.ReadInstallationKey(ctx, c, o.ownNS, o.key)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no installation of Lockstep in namespace %s; name its namespace with --controller-namespace: %w", o.ownNS, err)
	}
	if err != nil {
		return err
	}
	if stop, _, err := killswitch.Read(ctx, c, o.ownNS); err == nil { // Without permission to read it, nothing is noted.
		if reason, stopped := stop.For(found.targets[0].Namespace); stopped {
			_, _ = fmt.Fprintf(env.Stderr, "note: automatic changes are stopped (%s); this rollout proceeds anyway\n", reasonText(reason))
		}
	}
	return found.each(ctx, env, func(t target) error {
		r := &roll{options: o, client: c, env: env, words: words, live: cluster.NewLive(c, kube.NewHashers(key), t.kind, t.ObjectKey, env.Now)}
		if len(found.targets) > 1 {
			r.about = t.String() + ": "
		}
		err := r.start(ctx, t)
		if _, needless := errors.AsType[needlessError](err); needless && len(o.several.names) == 0 {
			return say(env.Stderr, "%v", err)
		}
		return err
	})
}

// needlessError is a workload that a rollout does nothing for. That is a mistake only if the user named
// the workload.
type needlessError struct{ error }

func (e needlessError) Unwrap() error { return e.error }

// start reads what is on record of the workload, and runs.
func (r *roll) start(ctx context.Context, t target) error {
	known, found, err := ledger.ReadEntry(ctx, r.client, r.options.ownNS, r.options.state, r.live.Key())
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if found {
		r.known = known
	}
	err = notFound(ctx, r.client, t, r.run(ctx))
	if !r.rolled {
		r.options.why.lost(r.env, r.about+"nothing was rolled out")
	}
	if r.options.dryRun || !r.rolled && err != nil {
		return err
	}
	return errors.Join(err, r.options.waiting.until(ctx, &waiting{target: t, client: r.client, env: r.env, since: r.env.Now(), idle: !r.rolled}))
}

// workloadNamed parses the workload, of a default kind or one that a flag adds.
func workloadNamed(text, namespace string, further []string) (kube.Kind, types.NamespacedName, error) {
	kinds, err := allKinds(further)
	if err != nil {
		return kube.Kind{}, types.NamespacedName{}, err
	}
	return workloadAmong(text, namespace, kinds)
}

// workloadAmong parses the workload, of one of these kinds.
func workloadAmong(text, namespace string, kinds []kube.Kind) (kube.Kind, types.NamespacedName, error) {
	kind, at, err := parseWorkload(text, namespace, kinds)
	if unknown, ok := errors.AsType[unknownKindError](err); ok && !unknown.hinted {
		err = fmt.Errorf("%w; --kind adds another kind", err)
	}
	return kind, at, err
}

// roll is one run of the command.
type roll struct {
	options *rollOptions
	client  client.Client
	env     Environment
	live    *cluster.Live
	words   settings.Native
	// known is the workload's entry in the record.
	known record.Entry
	// waitsFor are the versions that it has been waiting for, empty before the first.
	waitsFor string
	// about begins each line on standard error, if the command is about several workloads.
	about string
	// said are the lines that were already printed.
	said map[string]bool
	// rolled is true after the API server accepted the patch.
	rolled bool
}

// run uses the controller's own decision, with force, until it is to roll out the workload and
// the API server accepts the patch.
func (r *roll) run(ctx context.Context) error {
	gatherer, err := r.gatherer(ctx)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		for done := false; !done; {
			got, err := gatherer.Gather(ctx, r.live.Key())
			if err != nil {
				return err
			}
			if done, err = r.look(ctx, got); err != nil {
				return err
			}
		}
		return nil
	})
}

// look rolls out the workload, or waits, and reports whether it is done.
func (r *roll) look(ctx context.Context, got rollouts.Gathered) (done bool, err error) {
	got.Observation.Force = r.force()
	if r.options.dryRun {
		got.Observation.Intent.Quiet = 0
	}
	if got.Workload.Deleting {
		return false, fmt.Errorf("%s is being deleted", called(got.Workload))
	}
	r.tell(got.Observation)
	r.leavePins(got)
	if err := r.refusal(got); err != nil {
		return false, err
	}
	if done, err := r.inStep(got); done || err != nil {
		return done, err
	}
	d := rollouts.Decide(got.Observation)
	if d.Verb == rollouts.RollOut {
		if err := r.rollOut(ctx, got, input.Order{All: got.Observation.Findings, Due: d.Due, Kinds: got.Observation.Kinds}); err != nil {
			return false, err
		}
		rest := "everything else is rolled out"
		if r.options.dryRun {
			rest = "everything else would be rolled out"
		}
		return true, unresolved(got.Observation, rest)
	}
	return false, r.wait(ctx, got.Observation, d)
}

func (r *roll) force() rollouts.Force {
	if r.options.now {
		return rollouts.ForceNow
	}
	return rollouts.ForceRollOut
}

// inStep reports that there is nothing to do, unless --force is set.
func (r *roll) inStep(got rollouts.Gathered) (bool, error) {
	if r.options.force || len(got.Observation.Findings) == 0 || got.Workload.Deleting {
		return false, nil
	}
	for _, f := range got.Observation.Findings {
		given, stays := r.known.Inputs[f.ID], f.Reason == input.InStep || f.Reason == input.Unresolved || isPin(f)
		if !stays || given.RevertedTo != "" || given.Awaits {
			return false, nil
		}
	}
	if err := unresolved(got.Observation, "everything else is in step"); err != nil {
		return true, err
	}
	all := input.Order{All: got.Observation.Findings, Due: got.Observation.Findings}
	err := say(r.env.Stdout, "%s is in step: the record lists %s as delivered; --force rolls it out anyway", called(got.Workload), all.Shown(nil))
	return true, err
}

// gatherer reads the inputs of the controller's decision, and the record. Without permission to
// read the record, nothing counts as delivered.
func (r *roll) gatherer(ctx context.Context) (*rollouts.Gatherer, error) {
	r.live.Words = r.words
	pinned, err := r.images(ctx)
	if err != nil {
		return nil, err
	}
	inputs := configs.New(configs.Options{View: r.live, Since: unknownSince})
	return &rollouts.Gatherer{
		Vocabulary: r.words,
		View:       r.live, Read: r.live.Read, Families: []rollouts.Family{inputs, pinned},
		Entry: func(kube.Key) (record.Entry, bool) { return r.known, r.known.IsKnown() },
		// The record doesn't contain how long the workload has been waiting.
		MaxDelay: math.MaxInt64, Now: r.env.Now,
	}, nil
}

func unknownSince(*kube.Workload, input.Kind) (time.Time, bool) {
	return time.Time{}, false
}

// refusal explains what blocks the rollout of the workload, regardless of the quiet window.
func (r *roll) refusal(got rollouts.Gathered) error {
	name, quiet := called(got.Workload), got.Observation
	quiet.Intent.Quiet = 0
	switch d := rollouts.Decide(quiet); d.Reason {
	case input.Reloaded, input.AwaitsPods, input.QuietWindow: // An image change is only seen when the registry is queried.
		return nil
	case input.NotFollowed:
		return needlessError{fmt.Errorf("%s doesn't use a ConfigMap or Secret that Lockstep may follow, and doesn't follow an image: there is nothing to roll out", name)}
	case input.NextJob:
		return needlessError{fmt.Errorf("%s: its next Job loads the new content, and Lockstep doesn't start Jobs", name)}
	case input.Held, input.Quarantined, input.Contested:
		return fmt.Errorf("%s: %s; use --now to roll it out anyway", name, d.Message)
	default:
		return fmt.Errorf("%s: %s", name, d.Message)
	}
}

// wait waits until the next check, at most a second, because only checking shows a change.
func (r *roll) wait(ctx context.Context, in rollouts.Observation, d rollouts.Decision) error {
	current := input.Order{All: d.Due, Due: d.Due}.Shown(nil).String()
	switch r.waitsFor {
	case "":
		_, _ = fmt.Fprintf(r.env.Stderr, "%swaiting for %s without a change%s; --now does not wait\n", r.about, in.Intent.Quiet, estimated(d))
	case current:
	default:
		_, _ = fmt.Fprintln(r.env.Stderr, r.about+"a source changed; still waiting")
	}
	r.waitsFor = current
	select {
	case <-ctx.Done():
		return errors.New("interrupted; nothing was changed")
	case <-time.After(min(d.Recheck, time.Second)):
		return nil
	}
}

// estimated explains what a command that has not watched cannot know.
func estimated(d rollouts.Decision) string {
	if d.Estimate {
		return ", counted from now, because the time of earlier changes isn't known"
	}
	return ""
}

// rollOut delivers the ordered versions to the workload, unless it already shows them.
func (r *roll) rollOut(ctx context.Context, got rollouts.Gathered, order input.Order) error {
	w := got.Workload
	shown := order.Shown(w.Shown)
	if maps.Equal(w.Shown, shown) && !order.SetsImage() && !w.Status.Aborted && !r.options.force {
		err := say(r.env.Stdout, "%s shows these versions already: %s; --force restarts its pods anyway", called(w), shown)
		return err
	}
	rollout := got.Observation.State.Rollout
	if r.options.dryRun {
		return say(r.env.Stdout, "%s %s (dry run: nothing was changed)", called(w), wouldRoll(rollout, shown))
	}
	if _, err := patcher.NewPatcher(r.client, r.form(w)).RollOut(ctx, w, order); err != nil {
		return fmt.Errorf("roll %s: %w", called(w), err)
	}
	r.rolled = true
	r.options.why.tell(ctx, r.client, w.Reference(), input.RolledByHand, r.env)
	return say(r.env.Stdout, "%s %s", called(w), rolled(rollout, shown))
}

// called is a workload for users, as other commands write it.
func called(w *kube.Workload) string {
	return w.Key.String()
}

// form is that of the flag, else that of the template, so the rollout looks like those of the
// controller.
func (r *roll) form(w *kube.Workload) patcher.Form {
	if r.options.form == "" && w.ShowsVariable() {
		return patcher.AsVariable
	}
	return templateForm(r.options.form)
}
