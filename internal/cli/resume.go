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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// The controller writes the record once a second.
const (
	recordPoll     = 500 * time.Millisecond
	recordPatience = 3 * time.Second
)

// resumeOptions are the flags of "lockstep resume".
type resumeOptions struct {
	kube   kubeOptions
	extent extent
	// everywhere resumes the copies of a shared source in all namespaces.
	everywhere bool
	kinds      []string
	own        installationOptions
}

func newResume(env Environment) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use:   "resume (--all | -n NAMESPACE | KIND/NAME)",
		Short: "End a stop: of every automatic change, or of a version that failed",
		Long: `End a stop.

With --all, or with only -n, the command ends a "lockstep stop". Each workload gets the pending
changes in one rollout. A namespace that was stopped separately stays stopped after --all, and the
command reports it.

With the name of a ConfigMap or Secret, Lockstep delivers its version that was stopped because a
workload failed with it (VersionStopped), in the usual steps. Later failures of this version don't
stop it again; the next version can be stopped as usual. With the name of a workload, only this
workload gets the stopped versions. To resume a stopped image, name the workload.

To end a "lockstep stop", the command changes or deletes the ConfigMap lockstep-stop in the
controller's namespace, and needs permission to get, patch and delete it. To resume a version, it
writes the annotation lockstep.dev/resume, and needs permission to get and patch the object and to
list the ConfigMaps in the controller's namespace.`,
		Example: `  lockstep resume --all
  lockstep resume -n shop
  lockstep resume configmap/app -n shop
  lockstep resume configmap/ca-bundle -A
  lockstep resume deployment/web -n shop`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usageError{fmt.Errorf("unexpected argument %q", args[1])}
			case len(args) == 0 && o.everywhere:
				return usageError{errors.New("--all-namespaces is for a ConfigMap or Secret: name one, or use --all")}
			case len(args) == 1 && o.extent.all:
				return usageError{fmt.Errorf("--all ends a stop of everything; omit it to resume %s", args[0])}
			}
			return o.extent.agrees()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.own.namespace = controllerNamespace(o.own.namespace)
			if len(args) == 0 {
				if err := o.extent.choose(); err != nil {
					return err
				}
				return o.endStop(cmd, env)
			}
			return o.resumeVersion(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.extent.bind(fs, "resume")
	fs.Lookup("namespace").Usage = "resume the automatic changes of this namespace; with KIND/NAME the namespace of that object (default that of the kubeconfig's context)"
	fs.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "resume the copies of a shared ConfigMap or Secret in all namespaces")
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	o.own.bind(fs)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeTarget(&o.kube, &scopeOptions{namespace: o.extent.namespace, kinds: o.kinds})(cmd, args, typed)
	}
	return cmd
}

// endStop ends what "lockstep stop" began.
func (o *resumeOptions) endStop(cmd *cobra.Command, env Environment) error {
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	before, left, err := stopMap{client: c, namespace: o.own.namespace}.remove(cmd.Context(), o.extent)
	if err != nil {
		return err
	}
	outcome := "was not stopped for the controller in namespace " + o.own.namespace
	if before != nil {
		outcome = "is resumed: " + removed("stop", *before)
	}
	err = say(env.Stdout, "%s %s", o.extent, outcome)
	program := cmd.Root().CommandPath()
	if left.All != nil {
		err = errors.Join(err, fmt.Errorf("every automatic change stays stopped: %s; end it with %q", reasonText(*left.All), program+" resume --all"))
	}
	if o.extent.all {
		for _, namespace := range slices.Sorted(maps.Keys(left.Namespaces)) {
			err = errors.Join(err, say(env.Stdout, "namespace %s stays stopped: %s; end it with %q", namespace, reasonText(left.Namespaces[namespace]), program+" resume -n "+namespace))
		}
	}
	return err
}

// remove ends a stop and returns its reason, nil when there was none, and the stops that are left.
func (s stopMap) remove(ctx context.Context, e extent) (before *string, left settings.Stop, err error) {
	err = s.change(ctx, func(found *corev1.ConfigMap) error {
		stop := settings.ParseStop(found.Data, found.UID != "")
		if reason, was := stop.Namespaces[e.namespace]; was {
			before = &reason
		}
		if e.all {
			before = stop.All
			// Any key that doesn't name a namespace stops everything.
			maps.DeleteFunc(found.Data, func(key, _ string) bool { return !isStopOf(key, stop.Namespaces) })
		} else if delete(found.Data, settings.StopKey(e.namespace)); len(found.Data) == 0 && stop.All != nil {
			return errors.New("every automatic change is stopped, not only those of the namespace; end it with \"lockstep resume --all\"")
		}
		left = settings.ParseStop(found.Data, len(found.Data) > 0)
		return nil
	})
	return before, left, err
}

// isStopOf reports whether a key stops one of the namespaces.
func isStopOf(key string, namespaces map[string]string) bool {
	for namespace := range namespaces {
		if key == settings.StopKey(namespace) {
			return true
		}
	}
	return false
}

// resumeVersion lets stopped versions through.
func (o *resumeOptions) resumeVersion(ctx context.Context, name string, env Environment) error {
	scope := scopeOptions{namespace: o.extent.namespace, kinds: o.kinds}
	t, c, err := scope.target(&o.kube, name)
	if err != nil {
		return err
	}
	if t.Namespace == "" {
		return usageError{fmt.Errorf("a namespace has no versions: use \"lockstep resume -n %s\" to end its stop", t.Name)}
	}
	if o.everywhere && t.isWorkload {
		return usageError{errors.New("--all-namespaces is for a ConfigMap or Secret")}
	}
	own, _, err := o.own.reader(c, nil, env).Installation(ctx)
	if err != nil {
		return err
	}
	targets, within := []target{t}, t.Namespace
	if o.everywhere {
		within = ""
		if targets, err = t.copies(ctx, c); err != nil {
			return err
		}
	}
	stored, forbidden := readStops(ctx, c, own, targets, within)
	if err := access.UnlessForbidden(forbidden); err != nil {
		return err
	}
	found := false
	for _, each := range targets {
		stopped := stoppedFor(each, stored)
		if forbidden != nil && len(stopped) == 0 {
			if stopped, err = each.current(ctx, c, forbidden); err != nil {
				return err
			}
		}
		if err := each.resume(ctx, c, stopped, env); err != nil {
			return err
		}
		found = found || len(stopped) > 0
	}
	if !found {
		return o.reportNothing(ctx, c, t, env)
	}
	return nil
}

// reportNothing says that no version is stopped, or fails when the object doesn't exist.
func (o *resumeOptions) reportNothing(ctx context.Context, c client.Client, t target, env Environment) error {
	if o.everywhere {
		return say(env.Stdout, "%s: no version is stopped in any namespace", t.short())
	}
	if err := t.exists(ctx, c); err != nil {
		return err
	}
	return say(env.Stdout, "%s: no version is stopped", t)
}

// readStops reads the record. A version that was stopped a moment ago may not be on it yet.
func readStops(ctx context.Context, c client.Client, own ask.Own, targets []target, within string) (stored ledger.Stored, err error) {
	isStopped := func(t target) bool { return len(stoppedFor(t, stored)) > 0 }
	err = wait.PollUntilContextTimeout(ctx, recordPoll, recordPatience, true, func(context.Context) (bool, error) {
		var err error
		stored, err = ledger.ReadAll(ctx, c, client.ObjectKey{Namespace: own.Namespace, Name: own.State}, within)
		return slices.ContainsFunc(targets, isStopped), err
	})
	if wait.Interrupted(err) {
		err = ctx.Err()
	}
	return stored, err
}

// exists fails for an object that doesn't exist.
func (t target) exists(ctx context.Context, c client.Client) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(t.GroupVersionKind)
	if err := c.Get(ctx, t.ObjectKey, o); err != nil && !apierrors.IsForbidden(err) {
		return notFound(ctx, c, t, fmt.Errorf("read %s: %w", t, err))
	}
	return nil
}

// copies are the objects of the same kind and name in all namespaces.
func (t target) copies(ctx context.Context, c client.Client) ([]target, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
	var all []target
	for o, err := range pages.Items(ctx, c, list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", t.Name)}) {
		if err != nil {
			return nil, fmt.Errorf("list the copies of %s in all namespaces: %w", t.short(), err)
		}
		each := t
		each.Namespace = o.GetNamespace()
		all = append(all, each)
	}
	return all, nil
}

// stoppedFor are the stopped versions that concern an object, with the workloads that failed. A
// workload gets those of the sources that it uses, and of all images.
func stoppedFor(t target, stored ledger.Stored) map[string][]string {
	entry := stored.Entries[kube.Key{GroupKind: t.GroupKind(), Namespace: t.Namespace, Name: t.Name}]
	found := map[string][]string{}
	for of, failure := range stored.Failures {
		_, uses := entry.Inputs[of.ID]
		isSource := of.ID == input.ID{Kind: input.Kind(t.Kind), Name: t.Name}
		if !of.IsShared() && of.Namespace != t.Namespace || !isSource && (!t.isWorkload || !uses && of.ID.Kind != input.KindImage) {
			continue
		}
		found[of.Version] = failure.On
	}
	return found
}

// current is the version of a ConfigMap, where the record can't be read and doesn't say which one
// is stopped. That of a Secret depends on the installation.
func (t target) current(ctx context.Context, c client.Client, forbidden error) (map[string][]string, error) {
	if t.Kind != string(input.KindConfigMap) {
		return nil, fmt.Errorf("the stopped version isn't known, because you lack permission to list the record's ConfigMaps; the event VersionStopped of %s names the version, and \"kubectl annotate %s -n %s %s=VERSION\" resumes it: %w", t, t.short(), t.Namespace, settings.Resume, forbidden)
	}
	o := &corev1.ConfigMap{}
	if err := c.Get(ctx, t.ObjectKey, o); err != nil {
		return nil, notFound(ctx, c, t, fmt.Errorf("read %s: %w", t, err))
	}
	version := fingerprint.Hasher{}.Content(o.Data, o.BinaryData).Version(fingerprint.AllKeys()).Short()
	return map[string][]string{version: nil}, nil
}

// resume writes the annotation, if a version is stopped.
func (t target) resume(ctx context.Context, c client.Client, stopped map[string][]string, env Environment) error {
	if len(stopped) == 0 {
		return nil
	}
	versions := slices.Sorted(maps.Keys(stopped))
	value := strings.Join(versions[:min(len(versions), settings.MaxResume)], ", ")
	if err := t.annotate(ctx, c, func(metav1.Object) (map[string]*string, error) {
		return map[string]*string{settings.Resume: &value}, nil
	}); err != nil {
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("permission is missing to get and patch %s: %w", t, err)
		}
		return err
	}
	failed := slices.Concat(slices.Collect(maps.Values(stopped))...)
	why := ""
	if len(failed) > 0 {
		why = " (failed on " + strings.Join(shortNames(failed), ", ") + ")"
	}
	return say(env.Stdout, "%s: version %s%s is resumed", t, value, why)
}

// shortNames are workloads as users write them, each once.
func shortNames(ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id
		if key, err := kube.ParseID(id); err == nil {
			names[i] = key.Short()
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
