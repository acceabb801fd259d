package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
)

// target is an object whose annotations a user changes: a workload, a ConfigMap, a Secret or a
// namespace.
type target struct {
	schema.GroupVersionKind
	client.ObjectKey
	// called is the kind's name on the command line.
	called     string
	isWorkload bool
	// kind is that of a workload.
	kind kube.Kind
}

// is reports whether both are the same object.
func (t target) is(other target) bool {
	return t.GroupVersionKind == other.GroupVersionKind && t.ObjectKey == other.ObjectKey
}

// parseTarget reads "deployment/web", "cm/app" and "secret/db".
func parseTarget(text, namespace string, further []string) (target, error) {
	kinds, err := allKinds(further)
	if err != nil {
		return target{}, err
	}
	return targetAmong(text, namespace, kinds)
}

// targetAmong does the same for workloads of these kinds.
func targetAmong(text, namespace string, kinds []kube.Kind) (target, error) {
	called, name, _ := strings.Cut(text, "/")
	if _, isSource := commandline.SourceKind(called); isSource && name != "" {
		id, err := parseSource(text, namespace)
		if err != nil {
			return target{}, fmt.Errorf("%q: %w", text, err)
		}
		kind, _, _ := strings.Cut(id.String(), "/")
		return target{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind(string(id.Kind)),
			ObjectKey:        client.ObjectKey{Namespace: namespace, Name: id.Name}, called: kind,
		}, nil
	}
	kind, at, err := workloadAmong(text, namespace, kinds)
	if unknown, ok := errors.AsType[unknownKindError](err); ok && !unknown.hinted {
		err = fmt.Errorf("%w; configmap (cm) and secret are accepted too", err)
	}
	if err != nil {
		return target{}, err
	}
	return workloadTarget(kind, at), nil
}

func workloadTarget(kind kube.Kind, at client.ObjectKey) target {
	return target{GroupVersionKind: kind.GroupVersionKind, ObjectKey: at, called: kind.Name(), isWorkload: true, kind: kind}
}

// namespaceTarget is a namespace.
func namespaceTarget(name string) target {
	return target{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), ObjectKey: client.ObjectKey{Name: name}, called: "namespace"}
}

// namespaceNamed parses "namespace/shop" and "ns/shop".
func namespaceNamed(text string) (t target, is bool, err error) {
	called, name, _ := strings.Cut(text, "/")
	if !isNamespace(called) {
		return target{}, false, nil
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return target{}, true, fmt.Errorf("%q: invalid name: %s", text, wrong[0])
	}
	return namespaceTarget(name), true, nil
}

// String is the name in a sentence: "deployment/web in namespace shop".
func (t target) String() string { return objectname.In(t.short(), t.Namespace) }

// short is the name beside its namespace: "deployment/web".
func (t target) short() string { return t.called + "/" + t.Name }

// reference names the object that was found, for an event.
func (t target) reference(found metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: t.GroupVersion().String(), Kind: t.Kind, Namespace: t.Namespace, Name: t.Name,
		UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(),
	}
}

// command is a command line about it, such as "lockstep release deployment/web -n shop".
// It has the flags of cmd that lead to the cluster.
func (t target) command(cmd *cobra.Command, verb string) string {
	words := []string{cmd.Root().CommandPath(), verb, t.short()}
	if t.Namespace != "" {
		words = append(words, "-n", t.Namespace)
	}
	if t.isWorkload && t.kind.Custom { // The other command has to find the kind too.
		words = append(words, setFlags(cmd, "kind")...)
		if flags := cmd.Flags(); flags.Changed(controllerNamespaceFlag) {
			words = append(words, "--"+controllerNamespaceFlag, flags.Lookup(controllerNamespaceFlag).Value.String())
		}
	}
	return shellWords(append(words, commandFlags(cmd)...))
}

// annotate reads the object, calls change, and writes the result, if nothing else has been
// written in between; otherwise it starts again. An empty result isn't written.
func (t target) annotate(ctx context.Context, c client.Client, change func(metav1.Object) (map[string]*string, error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(t.GroupVersionKind)
		if err := c.Get(ctx, t.ObjectKey, o); err != nil {
			return notFound(ctx, c, t, fmt.Errorf("read %s: %w", t, err))
		}
		annotations, err := change(o)
		if err != nil || len(annotations) == 0 {
			return err
		}
		body, err := patch.Annotations(patch.Target{UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion()}, annotations)
		if err != nil {
			return err
		}
		if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, body), client.FieldOwner(personalManager)); err != nil {
			return fmt.Errorf("write the annotations of %s: %w", t, err)
		}
		return nil
	})
}

// personalManager is the field manager of a user's command, which distinguishes its fields from
// the controller's.
const personalManager = announce.CommandReporter

// parseSource reads "configmap/app", "cm/app" and "secret/db".
func parseSource(text, namespace string) (input.ID, error) {
	called, name, _ := strings.Cut(text, "/")
	kind, known := commandline.SourceKind(called)
	if !known || name == "" {
		return input.ID{}, errors.New("want configmap/NAME or secret/NAME")
	}
	if err := inNamespace(name, namespace); err != nil {
		return input.ID{}, err
	}
	return input.ParseSource(kind + "/" + name)
}
