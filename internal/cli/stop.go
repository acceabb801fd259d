package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// confirmEvery is how often "lockstep stop" checks for the controller's confirmation.
const confirmEvery = 200 * time.Millisecond

// extent are the flags that select what is stopped or resumed.
type extent struct {
	all       bool
	namespace string
}

func (e *extent) bind(fs *pflag.FlagSet, verb string) {
	fs.BoolVar(&e.all, "all", false, verb+" every automatic change of this installation")
	fs.StringVarP(&e.namespace, "namespace", "n", "", verb+" the automatic changes of this namespace")
}

// agrees refuses two flags that exclude each other.
func (e extent) agrees() error {
	if e.all && e.namespace != "" {
		return usageError{errors.New("--all and --namespace exclude each other: use one of them")}
	}
	return nil
}

// choose refuses to guess: neither the context's namespace nor the whole cluster is stopped by
// mistake.
func (e extent) choose() error {
	switch {
	case e.all:
	case e.namespace == "":
		return usageError{errors.New("use --all for the whole installation, or --namespace NAME")}
	case len(validation.IsDNS1123Label(e.namespace)) > 0:
		return usageError{fmt.Errorf("--namespace %q: invalid name", e.namespace)}
	}
	return nil
}

// String is for users: what is stopped.
func (e extent) String() string {
	if e.all {
		return "every automatic change"
	}
	return "every automatic change in namespace " + e.namespace
}

// flags are those that select the same again.
func (e extent) flags() string {
	if e.all {
		return "--all"
	}
	return "-n " + e.namespace
}

// stopOptions are the flags of "lockstep stop".
type stopOptions struct {
	kube    kubeOptions
	extent  extent
	ownNS   string
	timeout time.Duration
}

func newStop(env Environment) *cobra.Command {
	var o stopOptions
	cmd := &cobra.Command{
		Use:   "stop (--all | -n NAMESPACE) REASON",
		Short: "Stop every automatic change, of the whole installation or of one namespace",
		Long: `Stop every automatic change at once: rollouts, evictions (even in the middle of a series),
refreshes, image pins, restored images, and owner references of revisioned objects. "lockstep
resume" ends the stop, and each workload gets the pending changes in one rollout. Rollouts that
have already started continue, because Kubernetes carries them out. "lockstep roll" still works.

The stop is the ConfigMap lockstep-stop in the controller's namespace, so it survives restarts and
upgrades of the controller. The reason is the value of its key "all" or "namespace.NAME". Without
this program, you can stop everything with kubectl:

    kubectl create configmap lockstep-stop -n lockstep-system --from-literal=all='incident 42'
    kubectl delete configmap lockstep-stop -n lockstep-system

An empty ConfigMap, or one with any other key, stops everything: to resume, delete it.

The command waits until the controller confirms the stop with an event on that ConfigMap. It needs
permission to get, create and patch the ConfigMap, and to list events for the confirmation.

Exit codes: 0 stopped; 1 not stopped, or not confirmed within --timeout; 2 wrong usage.`,
		Example: `  lockstep stop --all 'incident 42'
  lockstep stop -n shop 'database migration'
  lockstep resume -n shop`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
				return usageError{errors.New("add a reason, such as 'incident 42'")}
			}
			return o.extent.agrees()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.extent.choose(); err != nil {
				return err
			}
			o.ownNS = controllerNamespace(o.ownNS)
			return o.run(cmd, strings.TrimSpace(args[0]), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.extent.bind(fs, "stop")
	bindControllerNamespace(fs, &o.ownNS)
	fs.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for the controller's confirmation; 0 to not wait")
	return cmd
}

func (o *stopOptions) run(cmd *cobra.Command, reason string, env Environment) error {
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if hint := o.extent.missing(ctx, c); hint != "" {
		_, _ = fmt.Fprintln(env.Stderr, "Warning:", hint)
	}
	s := stopMap{client: c, namespace: o.ownNS}
	written, before, err := s.set(ctx, o.extent, reason)
	if err != nil {
		return err
	}
	if written == nil {
		return say(env.Stdout, "%s is stopped already for this reason; end it with %q", o.extent, o.resume(cmd))
	}
	said := ""
	if before != nil && *before != reason {
		said = fmt.Sprintf(" (before: %s)", reasonText(*before))
	}
	if err := say(env.Stdout, "%s is stopped: %s%s; end it with %q", o.extent, reason, said, o.resume(cmd)); err != nil || o.timeout == 0 {
		return err
	}
	return o.confirm(ctx, c, written, env)
}

// resume is the command that ends the stop.
func (o *stopOptions) resume(cmd *cobra.Command) string {
	command := cmd.Root().CommandPath() + " resume " + o.extent.flags()
	if cmd.Flags().Changed(controllerNamespaceFlag) {
		command += " --controller-namespace " + o.ownNS
	}
	return command
}

// confirm waits until a controller has reported that it knows of the stop. The stop stays, whatever
// ends the wait.
func (o *stopOptions) confirm(ctx context.Context, c client.Client, written *corev1.ConfigMap, env Environment) error {
	began := env.Now()
	confirmed := func(ctx context.Context) (bool, error) {
		reported, err := announce.ReportedOf(ctx, c, o.ownNS, string(written.UID))
		return slices.ContainsFunc(reported, func(r announce.Reported) bool {
			order, wrong := resourceversion.CompareResourceVersion(r.Version, written.ResourceVersion)
			return r.Reason == string(input.Stopped) && wrong == nil && order >= 0
		}), err
	}
	err := wait.PollUntilContextTimeout(ctx, confirmEvery, o.timeout, true, confirmed)
	switch {
	case err == nil:
		return say(env.Stdout, "confirmed by the controller after %s", env.Now().Sub(began).Round(100*time.Millisecond))
	case ctx.Err() != nil:
		return errors.New("interrupted before a controller confirmed the stop; the stop stays")
	case apierrors.IsForbidden(err):
		return say(env.Stderr, "the controller's confirmation can't be read: %v", err)
	case wait.Interrupted(err):
		return fmt.Errorf("no controller has confirmed it within %s: is one running in namespace %s? See \"lockstep status --controller-namespace %s\". The stop stays in place, and takes effect when a controller starts", o.timeout, o.ownNS, o.ownNS)
	}
	return fmt.Errorf("the stop stays, but the controller's confirmation can't be read: %w", err)
}

// missing warns that the namespace doesn't exist, as far as that can be read.
func (e extent) missing(ctx context.Context, c client.Client) string {
	if e.all {
		return ""
	}
	t := namespaceTarget(e.namespace)
	err := c.Get(ctx, t.ObjectKey, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return ""
	}
	return notFound(ctx, c, t, err).Error()
}

// stopMap is the ConfigMap lockstep-stop.
type stopMap struct {
	client    client.Client
	namespace string
}

// set adds a stop and returns the written ConfigMap, nil when the same stop was there, and the
// reason that it replaced.
func (s stopMap) set(ctx context.Context, e extent, reason string) (written *corev1.ConfigMap, before *string, err error) {
	key := settings.StopKey(e.namespace)
	err = s.change(ctx, func(found *corev1.ConfigMap) error {
		stop := settings.ParseStop(found.Data, found.UID != "")
		written, before = found, nil
		if earlier, was := found.Data[key]; was {
			before = &earlier
		}
		if before != nil && *before == reason {
			written = nil
			return nil
		}
		if found.Data == nil {
			found.Data = map[string]string{}
		}
		if _, was := found.Data[settings.StopAll]; !was && stop.All != nil {
			found.Data[settings.StopAll] = *stop.All // With a key for a namespace, it would no longer stop everything.
		}
		found.Data[key] = reason
		return nil
	})
	return written, before, err
}

// change writes what change makes of the ConfigMap, and starts again when it was written in
// between. A ConfigMap without data is deleted, because it would stop everything.
func (s stopMap) change(ctx context.Context, change func(*corev1.ConfigMap) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found := &corev1.ConfigMap{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: settings.StopName}, found)
		if client.IgnoreNotFound(err) != nil {
			return s.explain(err, "get")
		}
		if apierrors.IsNotFound(err) {
			found.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: settings.StopName}
		}
		before := found.DeepCopy()
		if err := change(found); err != nil {
			return err
		}
		switch {
		case maps.Equal(before.Data, found.Data) && len(found.Data) > 0, found.UID == "" && len(found.Data) == 0:
			return nil
		case found.UID == "":
			err = s.client.Create(ctx, found, client.FieldOwner(personalManager))
			if apierrors.IsAlreadyExists(err) {
				return apierrors.NewConflict(corev1.Resource("configmaps"), settings.StopName, err)
			}
			return s.explain(err, "create")
		case len(found.Data) == 0:
			err = s.client.Delete(ctx, found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
			return s.explain(client.IgnoreNotFound(err), "delete")
		}
		return s.explain(s.client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(personalManager)), "patch")
	})
}

// explain adds what to do about an error.
func (s stopMap) explain(err error, verb string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s the kill switch: permission is missing to %s configmap %s in namespace %s: %w", verb, verb, settings.StopName, s.namespace, err)
	case apierrors.IsNotFound(err) && verb == "create":
		return fmt.Errorf("namespace %s does not exist; name the controller's namespace with --controller-namespace: %w", s.namespace, err)
	}
	return fmt.Errorf("%s configmap %s in namespace %s: %w", verb, settings.StopName, s.namespace, err)
}
