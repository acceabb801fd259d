package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// releaseOptions are the flags of "lockstep release".
type releaseOptions struct {
	kube      kubeOptions
	namespace string
	kinds     []string
}

func newRelease(env Environment) *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release KIND/NAME",
		Short: "Accept what was taken back from a workload, without a rollout",
		Long: `Accept what was taken back from a workload, without a rollout.

After "kubectl rollout undo", the abort of a canary, or a template that another
writer put back, the controller does not roll the rejected version out again, and
holds every other change that would load it. This command ends that: the workload
counts as given what exists, and the next change is delivered as usual.

It writes the annotation lockstep.dev/release, which the controller carries out
once. It needs the right to patch the workload, and none on the controller's own
objects.`,
		Example: `  lockstep release deployment/web -n shop`,
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the workload (default that of the kubeconfig's context)")
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	return cmd
}

func (o *releaseOptions) run(ctx context.Context, name string, env Environment) error {
	kind, at, err := workloadNamed(name, o.namespace, o.kinds)
	if err != nil {
		return usageError{err}
	}
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	if at.Namespace == "" {
		at.Namespace = o.kube.namespace()
	}
	if err := release(ctx, c, kind, at); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: the controller was asked to accept what was taken back; if anything was, it answers with an event of the reason Released\n", name)
	return err
}

// release notes the workload's own resource version on it. Versions only grow, so that
// an undo which brings an earlier annotation back releases nothing.
func release(ctx context.Context, c client.Client, kind kube.Kind, at client.ObjectKey) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind.GroupVersionKind)
	if err := c.Get(ctx, at, o); err != nil {
		return fmt.Errorf("read %s %s: %w", kind.Kind, at, err)
	}
	body, err := patch.Annotations(patch.Target{UID: string(o.GetUID())}, map[string]string{settings.Release: o.GetResourceVersion()})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("release %s %s: %w", kind.Kind, at, err)
	}
	return nil
}
