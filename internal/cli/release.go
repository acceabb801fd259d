package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// releaseOptions are the flags of "lockstep release".
type releaseOptions struct {
	kube         kubeOptions
	several      severalOptions
	installation installationOptions
	why          whyOptions
}

func newRelease(env Environment) *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release KIND/NAME...",
		Short: "End holds, and accept reverted changes of workloads",
		Long: `End the hold of a workload, a ConfigMap, a Secret or a namespace. For a workload, the command also
accepts reverted changes and allows quarantined images:

    found              what release does                                    rollout
    -----              -----------------                                    -------
    a hold             ends it, even if "kubectl rollout undo" removed      one, with the pending
                       the annotation                                       changes
    a reverted change  accepts it: the current versions count as            none
                       delivered, and the next change rolls out
    a quarantined or   allows the image again, although its rollout         one, with that image
    contested image    failed or another writer replaced it

A change is reverted by "kubectl rollout undo", the abort of a canary, or another writer that
restores the template. The controller doesn't roll out the rejected version again, and holds every
other change that would load it, until you release the workload or roll it out ("lockstep roll").

One command does all of this for a workload. The hold of a namespace ends only with
"lockstep release namespace/NAME", and that of a ConfigMap or Secret with its own name.

Name one or more objects, or select them: -l and --all select the workloads that "lockstep
status" lists for the namespace. A kind as argument restricts the selection ("release deployment
-l app=web"), and is the only way to select ConfigMaps, Secrets and namespaces. If an object can't
be released, some can't be listed, or the controller's record can't be read, the command releases
the others, reports what is missing and exits with 1.

It removes the annotation lockstep.dev/hold, and writes lockstep.dev/release on a workload,
which the controller carries out once. It needs permission to get and patch the object, and no
permissions on the controller's own objects. A reason becomes an event on the object, except on a
namespace.`,
		Example: `  lockstep release deployment/web -n shop
  lockstep release deployment/web deployment/api -n shop
  lockstep release -l team=web -n shop
  lockstep release --all -n shop --reason 'the freeze is over'
  lockstep release cm/web-settings -n shop --reason 'the migration is done'
  lockstep release namespace/shop`,
		Args: func(_ *cobra.Command, args []string) error { return o.several.read(args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), env)
		},
		ValidArgsFunction: completeSeveral(completeHeld(&o.kube, &o.several.scopeOptions)),
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.several.bind(fs)
	o.installation.bind(fs)
	o.why.bind(fs)
	return cmd
}

func (o *releaseOptions) run(ctx context.Context, env Environment) error {
	found, c, err := o.several.targets(ctx, &o.kube, &o.installation, env)
	if err != nil {
		return err
	}
	asked := false
	err = found.each(ctx, env, func(t target) error {
		err := o.release(ctx, c, t, env)
		asked = asked || err == nil && t.isWorkload
		return err
	})
	if asked {
		err = errors.Join(err, say(env.Stdout, "If a change was reverted, the controller now accepts that, and confirms it with the event Released."))
	}
	return err
}

// release releases one object.
func (o *releaseOptions) release(ctx context.Context, c client.Client, t target, env Environment) error {
	outcome := ""
	var about *corev1.ObjectReference
	err := t.annotate(ctx, c, func(found metav1.Object) (map[string]*string, error) {
		change := map[string]*string{}
		about = t.reference(found)
		outcome = "nothing was held"
		if t.isWorkload {
			outcome = "there is no hold annotation to remove; if an undo removed it, the hold ends now"
		}
		if reason, held := found.GetAnnotations()[settings.Hold]; held {
			change[settings.Hold] = nil
			outcome = removed("hold", reason) + heldBy(found)
		}
		if t.isWorkload {
			// Versions only grow, so an undo that restores an earlier annotation doesn't release
			// anything.
			version := found.GetResourceVersion()
			change[settings.Release] = &version
		}
		return change, nil
	})
	if err != nil {
		return err
	}
	err = say(env.Stdout, "%s: %s", t, outcome)
	o.why.tell(ctx, c, about, input.ReleasedByHand, env)
	return err
}
