package cli

import (
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// releaseOptions are the flags of "lockstep release".
type releaseOptions struct {
	kube  kubeOptions
	scope scopeOptions
	why   whyOptions
}

func newRelease(env Environment) *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release KIND/NAME",
		Short: "End a hold, and accept what was reverted from a workload",
		Long: `End the hold of a workload, a ConfigMap, a Secret or a namespace. What has gathered is
delivered, in one rollout. The hold of a namespace ends only with that of the namespace, not of
one of its workloads. A hold whose annotation "kubectl rollout undo" removed counts until then, and ends
with this command too.

Of a workload, also accept what was reverted, without a rollout. After "kubectl rollout
undo", the abort of a canary, or a template that another writer put back, the controller
does not roll the rejected version out again, and holds every other change that would load
it. This command ends that: the workload counts as given what exists, and the next change
is delivered as usual.

It removes the annotation lockstep.dev/hold, and writes lockstep.dev/release on a workload,
which the controller carries out once. It needs the permissions to read and to patch the object,
and none on the controller's own objects. A reason becomes an event on the object, except on a
namespace.`,
		Example: `  lockstep release deployment/web -n shop
  lockstep release cm/web-settings -n shop --reason 'the migration is done'
  lockstep release namespace/shop`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args[0], env)
		},
		ValidArgsFunction: completeHeld(&o.kube, &o.scope),
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	o.scope.bindOne(fs)
	fs.Lookup("namespace").Usage = "namespace of the object (default that of the kubeconfig's context)"
	o.why.bind(fs)
	return cmd
}

func (o *releaseOptions) run(cmd *cobra.Command, name string, env Environment) error {
	t, c, err := o.scope.target(&o.kube, name)
	if err != nil {
		return err
	}
	outcome, asked := "", ""
	var about *corev1.ObjectReference
	err = t.annotate(cmd.Context(), c, func(found metav1.Object) (map[string]*string, error) {
		change := map[string]*string{}
		about = t.reference(found)
		outcome = "nothing was held"
		if t.isWorkload {
			outcome = "it carries no hold; one that an undo removed ends too"
		}
		if reason, held := found.GetAnnotations()[settings.Hold]; held {
			change[settings.Hold] = nil
			outcome = "the hold is removed: " + reasonText(reason) + heldBy(found)
		}
		if t.isWorkload {
			// Versions only grow, so an undo that restores an earlier annotation doesn't release
			// anything.
			version := found.GetResourceVersion()
			change[settings.Release] = &version
			asked = "The controller was asked to accept what was reverted; if anything was, it answers with an event of the reason Released."
		}
		return change, nil
	})
	if err != nil {
		return err
	}
	err = say(env.Stdout, "%s: %s", t, outcome)
	if asked != "" {
		err = errors.Join(err, say(env.Stdout, "%s", asked))
	}
	o.why.tell(cmd.Context(), c, about, input.ReleasedByHand, env)
	return err
}
