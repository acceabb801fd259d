package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/rollout"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
)

// rollOptions are the flags of "lockstep roll".
type rollOptions struct {
	kube      kubeOptions
	namespace string
	ownNS     string
	key       string
	now       bool
	quiet     time.Duration
	kinds     []string
	form      string
}

func newRoll(env Environment) *cobra.Command {
	o := rollOptions{}
	cmd := &cobra.Command{
		Use:   "roll KIND/NAME",
		Short: "Move one workload to the current versions of its inputs, by hand",
		Long: `Move one workload to the current versions of its ConfigMaps and Secrets, by hand.

The pod template gets what the controller would write there, so the rollout looks
like any other, and the controller takes it as delivered. Pods restart, also where
lockstep.dev/strategy says evict or refresh. A CronJob is refused: its next Job reads
the new content by itself. A workload that was taken
back (undo, abort) is followed again after it.

Without --now the command waits until the workload's sources have been unchanged
for --quiet, and refuses to move a workload or source that carries a hold.`,
		Example: `  lockstep roll deployment/web -n shop
  lockstep roll statefulset/db --now
  lockstep roll statefulset.apps.kruise.io/db --kind apps.kruise.io/v1beta1/StatefulSet=spec.template`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("name one workload, such as deployment/web")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ownNS = ownNamespace(o.ownNS, env.Lookup)
			return o.run(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the workload (default that of the kubeconfig's context)")
	fs.StringVar(&o.ownNS, "own-namespace", "", "namespace of the controller's own objects (default $POD_NAMESPACE, then the pod's, then lockstep-system)")
	fs.StringVar(&o.key, "key-name", defaultKeyName, "name of the Secret with the key for digests of Secrets")
	fs.BoolVar(&o.now, "now", false, "do not wait for quiet and do not respect holds")
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "how long the sources must be unchanged, for a workload that does not say")
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	fs.StringVar(&o.form, "strategy", "", "what is written into the pod template: annotation, or env for an environment variable (default what it has, else annotation)")
	return cmd
}

func (o *rollOptions) run(ctx context.Context, name string, env Environment) error {
	kind, at, err := o.target(name)
	if err == nil && o.form != "" {
		err = validForm(o.form)
	}
	if err != nil {
		return usageError{err}
	}
	config, err := o.kube.config()
	if err != nil {
		return err
	}
	if at.Namespace == "" {
		at.Namespace = o.kube.namespace()
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	key, err := access.ReadInstallationKey(ctx, c, o.ownNS, o.key)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no installation of Lockstep in namespace %s; name its namespace with --own-namespace: %w", o.ownNS, err)
	}
	if err != nil {
		return err
	}
	r := &roll{options: o, client: c, env: env, kind: kind, at: at, hashers: nativeHashers(key)}
	return r.run(ctx)
}

// target reads "deployment/web" and "statefulset.apps.kruise.io/db". Without a group
// the kinds that need no flag come first.
func (o *rollOptions) target(text string) (kube.Kind, client.ObjectKey, error) {
	kindName, name, found := strings.Cut(text, "/")
	if !found || name == "" {
		return kube.Kind{}, client.ObjectKey{}, fmt.Errorf("%q: want KIND/NAME, such as deployment/web", text)
	}
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return kube.Kind{}, client.ObjectKey{}, err
	}
	var known []string
	for _, kind := range kinds {
		if strings.EqualFold(kindName, kind.Kind) || strings.EqualFold(kindName, kind.Kind+"."+kind.Group) {
			return kind, client.ObjectKey{Namespace: o.namespace, Name: name}, nil
		}
		known = append(known, kind.Name())
	}
	return kube.Kind{}, client.ObjectKey{}, fmt.Errorf("unknown kind %q: want one of %s, or name it with --kind", kindName, strings.Join(known, ", "))
}

// roll is one run of the command.
type roll struct {
	options *rollOptions
	client  client.Client
	env     Environment
	kind    kube.Kind
	at      client.ObjectKey
	hashers kube.Hashers
}

func (r *roll) run(ctx context.Context) error {
	live, findings, intent, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.allowed(live, findings, intent); err != nil {
		return err
	}
	if !r.options.now {
		live, findings, err = r.waitForQuiet(ctx, live, findings, intent.Quiet)
		if err != nil {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := r.move(ctx, live, findings)
		if !apierrors.IsConflict(err) {
			return err
		}
		// Somebody wrote the workload meanwhile: what to do is decided anew.
		var again error
		if live, findings, intent, again = r.read(ctx); again == nil {
			again = r.allowed(live, findings, intent)
		}
		return cmp.Or(again, err)
	})
}

// move gives the workload what was found, unless it shows that already.
func (r *roll) move(ctx context.Context, live *cluster.Live, findings []input.Finding) error {
	order := input.Order{All: findings}
	if maps.Equal(live.Workload().Shown, order.Shown()) {
		_, err := fmt.Fprintf(r.env.Stdout, "%s shows these versions already: %s\n", live.Workload().Key, order.Shown())
		return err
	}
	if _, err := rollout.NewPatcher(r.client, r.form(live.Workload())).Move(ctx, live.Workload(), order); err != nil {
		return fmt.Errorf("roll %s: %w", live.Workload().Key, err)
	}
	_, err := fmt.Fprintf(r.env.Stdout, "%s rolled out: %s\n", live.Workload().Key, order.Shown())
	return err
}

// form is what is asked for, else what the template has, so that the rollout looks
// like those of the controller.
func (r *roll) form(w *kube.Workload) rollout.Form {
	if r.options.form == "" && w.ShowsVariable() {
		return rollout.AsVariable
	}
	return templateForm(r.options.form)
}

func (r *roll) read(ctx context.Context) (*cluster.Live, []input.Finding, settings.Intent, error) {
	live, err := cluster.ReadLive(ctx, r.client, r.hashers, r.kind, r.at)
	if err != nil {
		return nil, nil, settings.Intent{}, err
	}
	var defaults map[string]string
	if ns, ok := live.Namespace(""); ok {
		defaults = ns.Annotations
	}
	intent := settings.ForWorkload(live.Workload().Annotations, defaults, settings.Defaults{Auto: true, Quiet: r.options.quiet})
	inputs := configs.New(configs.Options{View: live, Since: unknownSince, Revisions: noHistory})
	findings, err := inputs.Assess(ctx, live.Workload(), intent, record.Entry{})
	return live, findings, intent, err
}

func unknownSince(*kube.Workload, input.Kind) (time.Time, bool) {
	return time.Time{}, false
}

func noHistory(context.Context, *kube.Workload) ([]lineage.Revision, error) {
	return nil, nil
}

// allowed says what keeps the workload from being moved.
func (r *roll) allowed(live *cluster.Live, findings []input.Finding, intent settings.Intent) error {
	w := live.Workload()
	switch {
	case r.kind.StartsPods():
		return fmt.Errorf("%s: its next Job reads the new content by itself, and Lockstep starts none", w.Key)
	case w.Problem != "":
		return fmt.Errorf("%s: %s", w.Key, w.Problem)
	case len(intent.Problems) > 0:
		return fmt.Errorf("%s: %s", w.Key, intent.Problems[0])
	case len(findings) == 0:
		return fmt.Errorf("%s uses no ConfigMap or Secret that may be followed; there is nothing to move it to", w.Key)
	case r.options.now:
		return nil
	case intent.Held:
		return fmt.Errorf("%s is held by annotation %s (%q); use --now to move it all the same", w.Key, settings.Hold, intent.HeldBy)
	}
	for _, f := range findings {
		if f.Barred == input.Held {
			return fmt.Errorf("%s is held (%q); use --now to move %s all the same", f.ID, f.BarredBy, w.Key)
		}
	}
	return nil
}

// waitForQuiet looks again until nothing has changed for the quiet window.
func (r *roll) waitForQuiet(ctx context.Context, live *cluster.Live, findings []input.Finding, quiet time.Duration) (*cluster.Live, []input.Finding, error) {
	if quiet == 0 {
		return live, findings, nil
	}
	_, _ = fmt.Fprintf(r.env.Stderr, "waiting for %s without a change; --now does not wait\n", quiet)
	unchanged := time.NewTimer(quiet)
	defer unchanged.Stop()
	look := time.NewTicker(min(time.Second, quiet))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, nil, errors.New("interrupted; nothing was changed")
		case <-unchanged.C:
			return live, findings, nil
		case <-look.C:
			before := input.Order{All: findings}.Shown().String()
			var err error
			live, findings, _, err = r.read(ctx)
			if err != nil {
				return nil, nil, err
			}
			if (input.Order{All: findings}).Shown().String() != before {
				_, _ = fmt.Fprintln(r.env.Stderr, "a source has changed; waiting on")
				unchanged.Reset(quiet)
			}
		}
	}
}

// nativeHashers are the hashers of the native controller.
func nativeHashers(key []byte) kube.Hashers {
	return kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{
		input.KindConfigMap: {},
		input.KindSecret:    fingerprint.NewKeyedHasher(key),
	}}
}
