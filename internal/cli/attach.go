package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// attachOptions are the flags of "lockstep attach".
type attachOptions struct {
	kube      kubeOptions
	log       logOptions
	namespace string
	request   revisions.Request
	// bestEffort reports objects that could not be attached and still exits successfully.
	bestEffort bool
}

func newAttach(env Environment) *cobra.Command {
	o := attachOptions{request: revisions.DefaultRequest()}
	cmd := &cobra.Command{
		Use:   "attach KIND/NAME OBJECT...",
		Short: "Attach ConfigMaps and Secrets to the newest revision of a workload",
		Long: `Attach ConfigMaps and Secrets to the revisions of a workload that use them. Their names must
change with their content. Kubernetes then removes each object together with the last revision
that needs it, and never earlier.

KIND is rollout, deployment, statefulset, daemonset or cronjob. An OBJECT is
configmap/NAME or secret/NAME in the workload's namespace.

The command waits until the workload's controller has created the revision whose pod template
names the objects. It doesn't wait for that revision to become healthy, so a canary that waits
for approval doesn't make it fail. The command adds owners and never replaces them. A second run
doesn't change anything, and reports that the objects are already attached.

If "lockstep controller" runs in the cluster, label the objects lockstep.dev/revisioned=true
instead. The controller then attaches them, even after changes that don't come from a deploy job.

Exit codes: 0 attached, or --best-effort; 1 an object was not attached; 2 wrong usage.`,
		Example: `  # after a deploy
  lockstep attach --namespace shop rollout/web configmap/web-settings-3fa9c1d2e4 secret/web-db-77ab01c9de

  # an object that an admission webhook adds to the pods
  lockstep attach -n shop deployment/web configmap/injected-1a2b3c4d5e --require-reference=false`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args, env)
		},
		ValidArgsFunction: completeAttach(&o.kube, &o.namespace),
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.log.bind(fs)
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the workload and the objects (default the kubeconfig's, or the pod's own)")
	fs.BoolVar(&o.request.RequireReference, "require-reference", o.request.RequireReference, "attach only objects that the newest revision's pod template references")
	fs.DurationVar(&o.request.Grace, "reference-grace", o.request.Grace, "without --require-reference: how long to wait for a reference first")
	fs.BoolVar(&o.bestEffort, "best-effort", false, "report objects that could not be attached, and exit with 0; Kubernetes doesn't remove them")
	fs.DurationVar(&o.request.Timeout, "timeout", o.request.Timeout, "how long to wait for the revision")
	return cmd
}

func (o *attachOptions) run(cmd *cobra.Command, args []string, env Environment) error {
	if o.namespace == "" {
		o.namespace = o.kube.namespace()
	}
	if err := o.read(args); err != nil {
		return usageError{err}
	}
	if _, err := o.log.logger(cmd.Context(), env.Stderr, env); err != nil {
		return err
	}
	config, err := o.kube.config()
	if err != nil {
		return err
	}
	c, err := access.NewDirectClient(config, attachableKinds())
	if err != nil {
		return err
	}
	changed := false
	attacher := &revisions.Attacher{Client: c, Report: func(r revisions.Outcome) {
		changed = changed || !r.Unchanged
		said := "attached to"
		if r.Unchanged {
			said = "is attached already to"
		}
		_ = say(env.Stdout, "%s %s %s", r.Object, said, strings.Join(r.Owners, ", "))
		if r.Warning != "" {
			_ = say(env.Stderr, "Warning: %s", r.Warning)
		}
	}}
	err = attacher.Attach(cmd.Context(), o.request)
	switch {
	case err == nil && !changed:
		fmt.Fprintln(cmd.OutOrStdout(), "there is nothing to do")
	case err != nil && o.bestEffort:
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: not everything is attached:", err)
		return nil
	}
	if _, missing := errors.AsType[lineage.MissingError](err); missing {
		return fmt.Errorf("%w%s", err, nearNames(cmd.Context(), c, workloadTarget(o.request.Kind, o.request.Workload)))
	}
	return err
}

// read parses the workload and the objects from the arguments.
func (o *attachOptions) read(args []string) error {
	if len(args) == 0 {
		return errors.New("no workload: want KIND/NAME and at least one OBJECT, such as rollout/web configmap/web-3fa9c1d2e4")
	}
	if wrong := validation.IsDNS1123Label(o.namespace); len(wrong) > 0 {
		return fmt.Errorf("namespace %q: %s", o.namespace, wrong[0])
	}
	if o.request.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be positive", o.request.Timeout)
	}
	var err error
	if o.request.Kind, o.request.Workload, err = parseWorkload(args[0], o.namespace, attachableKinds()); err != nil {
		return err
	}
	var wrong []error
	o.request.Objects, wrong = parseObjects(args[1:], o.namespace)
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	if len(o.request.Objects) == 0 {
		return errors.New("no objects: want at least one configmap/NAME or secret/NAME after the workload")
	}
	return nil
}

// attachableKinds are the kinds of workloads whose revisions can own objects.
func attachableKinds() []kube.Kind {
	return slices.DeleteFunc(kube.Kinds(), func(k kube.Kind) bool { return !k.Attachable() })
}

// parseObjects reads arguments, each of which may be a comma-separated list. It drops spaces,
// empty elements and duplicates.
func parseObjects(args []string, namespace string) (objects []input.ID, wrong []error) {
	for element := range strings.SplitSeq(strings.Join(args, ","), ",") {
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		object, err := parseObject(element, namespace)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("object %q: %w", element, err))
			continue
		}
		if !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
	}
	return objects, wrong
}

func parseObject(text, namespace string) (input.ID, error) {
	id, err := parseSource(text, namespace)
	if _, elsewhere := errors.AsType[otherNamespaceError](err); elsewhere {
		err = fmt.Errorf("%w: an object and its owner must be in the same namespace", err)
	}
	return id, err
}
