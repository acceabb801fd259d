package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// holdOptions are the flags of "lockstep hold".
type holdOptions struct {
	kube      kubeOptions
	scope     scopeOptions
	overwrite bool
}

func newHold(env Environment) *cobra.Command {
	var o holdOptions
	cmd := &cobra.Command{
		Use:   "hold KIND/NAME REASON",
		Short: "Hold the changes of a workload, a ConfigMap, a Secret or a namespace",
		Long: `Hold the changes of a workload, a ConfigMap, a Secret or a namespace, and say why.

A workload that is held is not moved by the controller; what changes meanwhile gathers.
Changes of a ConfigMap or Secret that is held are not delivered: each workload for which
they are due waits. A namespace that is held holds all of its workloads. "lockstep release"
ends the hold, and what has gathered is delivered in one rollout. To stop everything at once,
even in the middle of a series of evictions, use "lockstep stop".

It writes the annotation lockstep.dev/hold, and needs the permissions to read and to patch the
object. A hold that is there with another reason is replaced only with --overwrite.`,
		Example: `  lockstep hold deployment/web 'release freeze until Monday' -n shop
  lockstep hold cm/web-settings 'wait for the database migration' -n shop
  lockstep hold namespace/shop 'release freeze until Monday'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || strings.TrimSpace(args[1]) == "" {
				return usageError{errors.New("name one workload, ConfigMap, Secret or namespace and a reason, such as deployment/web 'release freeze'")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args[0], strings.TrimSpace(args[1]), env.Stdout)
		},
		ValidArgsFunction: completeHeld(&o.kube, &o.scope),
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	o.scope.bindOne(fs)
	fs.Lookup("namespace").Usage = "namespace of the object (default that of the kubeconfig's context)"
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace a hold that has another reason")
	return cmd
}

func (o *holdOptions) run(cmd *cobra.Command, name, reason string, out io.Writer) error {
	t, c, err := o.scope.target(&o.kube, name)
	if err != nil {
		return err
	}
	outcome := ""
	err = t.annotate(cmd.Context(), c, func(found metav1.Object) (map[string]*string, error) {
		before, held := found.GetAnnotations()[settings.Hold]
		switch {
		case !held:
			outcome = fmt.Sprintf("held: %s", reason)
		case before == reason:
			outcome = fmt.Sprintf("held already for this reason%s", heldBy(found))
			return nil, nil
		case !o.overwrite:
			return nil, fmt.Errorf("%s is held already: %s%s; --overwrite replaces the reason", t, reasonText(before), heldBy(found))
		default:
			outcome = fmt.Sprintf("held: %s (before: %s%s)", reason, reasonText(before), heldBy(found))
		}
		return map[string]*string{settings.Hold: &reason}, nil
	})
	if err != nil {
		return err
	}
	return say(out, "%s %s; end it with %q", t, outcome, t.command(cmd, "release"))
}

// reasonText is the reason of a hold, for users.
func reasonText(reason string) string {
	if reason == "" {
		return "no reason is given"
	}
	return fmt.Sprintf("%q", reason)
}

// heldBy names the program that wrote the hold, and when, if the object shows it.
func heldBy(o metav1.Object) string {
	writer := kube.AnnotationWriter(o, settings.Hold)
	if writer.Manager == "" {
		return ""
	}
	return fmt.Sprintf(", written by %s at %s", writer.Manager, writer.At.UTC().Format(time.RFC3339))
}
