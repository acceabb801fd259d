package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// severalOptions select the objects of a command that changes several: by name, or by label.
type severalOptions struct {
	scopeOptions

	// every is --all: every object of the namespace.
	every bool
	// workloadsOnly excludes ConfigMaps, Secrets and namespaces.
	workloadsOnly bool
	// names are "deployment/web", and kinds "deployment". The command line has one or the other.
	names, onlyKinds []string
}

func (o *severalOptions) bind(fs *pflag.FlagSet) {
	o.bindOne(fs)
	fs.Lookup("namespace").Usage = "namespace of the objects (default that of the kubeconfig's context)"
	fs.StringVarP(&o.selector, "selector", "l", "", "instead of names: the followed workloads with these labels, such as app=web; with a kind as argument, the objects of that kind")
	fs.BoolVar(&o.every, "all", false, "instead of names: every followed workload in the namespace; with a kind as argument, every object of that kind in it")
}

// selects reports whether flags select the objects.
func (o *severalOptions) selects() bool { return o.every || o.selector != "" }

// read sorts the arguments.
func (o *severalOptions) read(args []string) error {
	what := "workload, ConfigMap, Secret or namespace"
	if o.workloadsOnly {
		what = "workload"
	}
	switch {
	case o.every && o.selector != "":
		return usageError{errors.New("--all and --selector exclude each other: use one of them")}
	case !o.selects() && len(args) == 0:
		return usageError{fmt.Errorf("name at least one %s, such as deployment/web, or select workloads with -l or --all", what)}
	case !o.selects():
		o.names = args
		return nil
	}
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "/"):
			return usageError{fmt.Errorf("%q: names and -l or --all exclude each other; a kind without a name, such as deployment, restricts the selection", arg)}
		case isNamespace(arg) && o.every:
			return usageError{errors.New("--all with namespaces would reach every namespace of the cluster: name them or select them with -l; \"lockstep stop --all\" stops every automatic change")}
		case isNamespace(arg) && o.namespace != "":
			return usageError{errors.New("a namespace isn't in another one: omit -n; -l selects among all namespaces of the cluster")}
		}
	}
	o.onlyKinds = args
	return nil
}

// isTarget reports whether an argument is meant as an object, or as a kind where flags select the
// objects. Such a word isn't a reason.
func (o *severalOptions) isTarget(word string) bool {
	called, _, named := strings.Cut(word, "/")
	if !named && !o.selects() {
		return false
	}
	if _, is := commandline.SourceKind(called); is || isNamespace(called) {
		return true
	}
	kinds, _ := allKinds(o.kinds)
	_, known := kube.FindKind(kinds, called)
	if !known && named && !strings.ContainsAny(word, " \t") {
		misspelt, ok := errors.AsType[unknownKindError](unknownKind(word, called, kinds))
		return ok && misspelt.hinted
	}
	return known
}

// selection are the objects of a command.
type selection struct {
	targets []target
	// notes are about what could not be read to find them, and partial is true if objects may be missing.
	notes   []string
	partial bool
}

// incomplete reports what could not be read. Whatever a command did to a part of the objects must not look complete.
func (s selection) incomplete(env Environment) error {
	for _, note := range s.notes {
		_ = say(env.Stderr, "%s", note)
	}
	if !s.partial {
		return nil
	}
	return errors.New("workloads may be missing from the selection, because a kind or the record can't be read")
}

// targets finds the objects. Every wrong name is an error before anything changes.
func (o *severalOptions) targets(ctx context.Context, k *kubeOptions, own *installationOptions, env Environment) (selection, client.WithWatch, error) {
	within, err := o.scope(k)
	if err != nil {
		return selection{}, nil, err
	}
	var found selection
	c, err := own.amongKinds(ctx, k, within.kinds, env, func(kinds []kube.Kind) (err error) {
		found.targets, err = o.allNamed(within.Namespace, kinds)
		return err
	})
	if err != nil || !o.selects() {
		return found, c, err
	}
	found, err = o.selected(ctx, own.reader(c, within.kinds, env), within)
	if err == nil && len(found.targets) == 0 {
		err = errors.Join(found.incomplete(env), errors.New(o.nothing(within.Namespace)))
	}
	return found, c, err
}

// allNamed parses the names, each object once.
func (o *severalOptions) allNamed(namespace string, kinds []kube.Kind) ([]target, error) {
	var all []target
	var wrong []error
	for _, name := range o.names {
		t, err := o.named(name, namespace, kinds)
		if err != nil {
			wrong = append(wrong, err)
		} else if !slices.ContainsFunc(all, t.is) {
			all = append(all, t)
		}
	}
	return all, errors.Join(wrong...)
}

func (o *severalOptions) named(name, namespace string, kinds []kube.Kind) (target, error) {
	if o.workloadsOnly {
		kind, at, err := workloadAmong(name, namespace, kinds)
		if err != nil {
			return target{}, err
		}
		return workloadTarget(kind, at), nil
	}
	if t, is, err := namespaceNamed(name); is {
		return t, err
	}
	return targetAmong(name, namespace, kinds)
}

// selected finds the objects that match the flags: the workloads that "lockstep status" lists, and
// objects of other kinds only when the kind is named.
func (o *severalOptions) selected(ctx context.Context, reader *ask.Reader, within scope) (selection, error) {
	reader.Kinds = reader.InstalledKinds(ctx)
	var sources []target
	for _, called := range o.onlyKinds {
		source, isSource := commandline.SourceKind(called)
		kind, known := kube.FindKind(reader.Kinds, called)
		var err error
		switch {
		case known:
			within.Only = append(within.Only, kind)
		case o.workloadsOnly || !isSource && !isNamespace(called):
			return selection{}, usageError{fmt.Errorf("%q: %w", called, unknownKind(called, called, reader.Kinds))}
		case isSource:
			t, _ := targetAmong(source+"/name", within.Namespace, nil)
			sources, err = t.labelled(ctx, reader.Client, within.Selector, sources)
		default:
			sources, err = namespaceTarget("").labelled(ctx, reader.Client, within.Selector, sources)
		}
		if err != nil {
			return selection{}, err
		}
	}
	var found selection
	if len(within.Only) > 0 || len(o.onlyKinds) == 0 {
		var err error
		if found, err = followed(ctx, reader, within); err != nil {
			return selection{}, err
		}
	}
	found.targets = append(found.targets, sources...)
	return found, nil
}

// followed are the workloads that "lockstep status" lists.
func followed(ctx context.Context, reader *ask.Reader, within scope) (selection, error) {
	status, err := reader.Status(ctx, within.Scope)
	if err != nil {
		return selection{}, err
	}
	found := selection{notes: status.Notes, partial: status.Partial}
	for _, row := range status.Workloads {
		kind, at, err := parseWorkload(row.Workload, row.Namespace, reader.Kinds)
		if err != nil {
			return selection{}, err
		}
		found.targets = append(found.targets, workloadTarget(kind, at))
	}
	slices.SortFunc(found.targets, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// labelled appends the objects of the target's kind with these labels.
func (t target) labelled(ctx context.Context, c client.Client, selector labels.Selector, to []target) ([]target, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind + "List"))
	for o, err := range pages.Items(ctx, c, list, client.InNamespace(t.Namespace), client.MatchingLabelsSelector{Selector: selector}) {
		if err != nil {
			return nil, fmt.Errorf("list each %s: %w", t.called, err)
		}
		t.Name = o.GetName()
		to = append(to, t)
	}
	return to, nil
}

// nothing says that no object matches.
func (o *severalOptions) nothing(namespace string) string {
	what, which := "followed workload", ""
	if len(o.onlyKinds) > 0 {
		what = strings.Join(o.onlyKinds, " or ")
	}
	if o.selector != "" {
		which = " with the labels " + o.selector
	}
	return fmt.Sprintf("there is no %s%s in namespace %s; \"lockstep status\" lists the followed workloads", what, which, namespace)
}

// each does the same to every object, even when it fails for one, and then reports what could not be read to find them
// all. The error of one object is the command's own; of several, each is reported when it occurs.
func (s selection) each(ctx context.Context, env Environment, do func(target) error) error {
	return errors.Join(eachOf(ctx, s.targets, env, do), s.incomplete(env))
}

func eachOf(ctx context.Context, all []target, env Environment, do func(target) error) error {
	if len(all) == 1 {
		return do(all[0])
	}
	failed := 0
	for i, t := range all {
		err := do(t)
		if err == nil {
			continue
		}
		failed++
		if text := err.Error(); strings.Contains(text, t.String()) {
			_ = say(env.Stderr, "Error: %s", text)
		} else {
			_ = say(env.Stderr, "Error: %s: %s", t, text)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; %d of %d objects were not processed", len(all)-i-1, len(all))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d objects failed", failed, len(all))
	}
	return nil
}

// isNamespace reports whether a kind is called like the one of namespaces.
func isNamespace(called string) bool {
	switch strings.ToLower(called) {
	case "namespace", "namespaces", "ns":
		return true
	}
	return false
}

// completeObjectOrReason completes the first argument, and later ones that begin like an object: the
// last one is a reason, which is free text.
func completeObjectOrReason(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && typed == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeSeveral(complete)(cmd, args, typed)
	}
}

// completeSeveral completes every argument, without the objects that are named already.
func completeSeveral(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		words, directive := complete(cmd, nil, typed)
		return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(args, word) }), directive
	}
}
