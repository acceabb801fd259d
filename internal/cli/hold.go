package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// holdOptions are the flags of "lockstep hold".
type holdOptions struct {
	kube         kubeOptions
	several      severalOptions
	installation installationOptions
	overwrite    bool
	// said is the reason among the arguments, reason that of the flag.
	said, reason string
}

func newHold(env Environment) *cobra.Command {
	var o holdOptions
	cmd := &cobra.Command{
		Use:   "hold KIND/NAME... REASON",
		Short: "Hold the changes of workloads, ConfigMaps, Secrets or namespaces",
		Long: `Hold the changes of workloads, ConfigMaps, Secrets or namespaces, with a reason.

The controller doesn't roll out a held workload, and doesn't deliver changes of a held ConfigMap or
Secret to any workload. Holding a namespace holds all its workloads. "lockstep release" ends the
hold, and each workload gets the pending changes in one rollout. To stop everything at once, even
in the middle of a series of evictions, use "lockstep stop".

Name one or more objects, or select them: -l and --all select the workloads that "lockstep
status" lists for the namespace. A kind as argument restricts the selection ("hold deployment
-l app=web"), and is the only way to select ConfigMaps, Secrets and namespaces. If some of them
can't be listed, or the controller's record can't be read, the command holds the others, reports
what is missing and exits with 1.

The reason is the last argument or the value of --reason. If an object can't be held, the
command holds the others, reports each failure and exits with 1.

The command writes the annotation lockstep.dev/hold, and needs permission to get and patch the
object. -l and --all also need permission to list. --overwrite replaces a hold that has another
reason.`,
		Example: `  lockstep hold deployment/web 'release freeze until Monday' -n shop
  lockstep hold cm/web-settings 'wait for the database migration' -n shop
  lockstep hold deployment/web deployment/api --reason 'release freeze until Monday' -n shop
  lockstep hold -l team=web 'release freeze until Monday' -n shop
  lockstep hold cronjob --all 'incident 42' -n shop
  lockstep hold namespace/shop 'release freeze until Monday'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return o.several.read(o.withoutReason(args, cmd.Flags().Changed("reason")))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			reason := strings.TrimSpace(cmp.Or(o.said, o.reason))
			if reason == "" {
				return usageError{errors.New("a reason is missing: add it as the last argument or with --reason, such as deployment/web 'release freeze'")}
			}
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd, reason, env)
		},
		ValidArgsFunction: completeObjectOrReason(completeHeld(&o.kube, &o.several.scopeOptions)),
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.several.bind(fs)
	o.installation.bind(fs)
	fs.StringVar(&o.reason, "reason", "", "why you hold it; required unless the last argument is the reason")
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace a hold that has another reason")
	return cmd
}

// withoutReason returns the arguments that aren't the reason. The last one is, unless a flag has it or
// the argument names an object: "hold deployment/web deployment/api" lacks its reason.
func (o *holdOptions) withoutReason(args []string, byFlag bool) []string {
	last := len(args) - 1
	if byFlag || last < 0 || o.several.isTarget(args[last]) {
		return args
	}
	o.said = args[last]
	return args[:last]
}

func (o *holdOptions) run(cmd *cobra.Command, reason string, env Environment) error {
	found, c, err := o.several.targets(cmd.Context(), &o.kube, &o.installation, env)
	if err != nil {
		return err
	}
	return found.each(cmd.Context(), env, func(t target) error { return o.hold(cmd, c, t, reason, env.Stdout) })
}

// hold holds one object.
func (o *holdOptions) hold(cmd *cobra.Command, c client.Client, t target, reason string, out io.Writer) error {
	outcome := ""
	err := t.annotate(cmd.Context(), c, func(found metav1.Object) (map[string]*string, error) {
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
		return "no reason"
	}
	return fmt.Sprintf("%q", reason)
}

// removed reports that a hold or a stop ended, with its reason.
func removed(what, reason string) string {
	if reason == "" {
		return "removed the " + what + " (no reason)"
	}
	return fmt.Sprintf("removed the %s %q", what, reason)
}

// heldBy names the program that wrote the hold, if the object shows it, and its last write to the object:
// the hold is at least that old.
func heldBy(o metav1.Object) string {
	writer := kube.AnnotationWriter(o, settings.Hold)
	if writer.Manager == "" {
		return ""
	}
	return fmt.Sprintf(", written by %s at %s or earlier", writer.Manager, writer.At.UTC().Format(time.RFC3339))
}
