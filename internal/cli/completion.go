package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// completeWorkload completes the first argument of a command: kinds, and the names of their
// objects in the namespace of the flags.
func completeWorkload(k *kubeOptions, scope *scopeOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kinds, ok := knownKinds(cmd, scope)
		if !ok || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return (&completion{cmd: cmd, kube: k, namespace: scope.namespace}).object(workloadKinds(kinds), typed)
	}
}

// completeHeld completes workloads, ConfigMaps, Secrets and namespaces.
func completeHeld(k *kubeOptions, scope *scopeOptions) cobra.CompletionFunc {
	return completeObjects(k, scope, append(sourceKinds(), completedKind{
		corev1.SchemeGroupVersion.WithKind("Namespace"), "namespace", func(called string) bool {
			_, is, _ := namespaceNamed(called)
			return is
		},
	}))
}

// completeTarget completes workloads, ConfigMaps and Secrets.
func completeTarget(k *kubeOptions, scope *scopeOptions) cobra.CompletionFunc {
	return completeObjects(k, scope, sourceKinds())
}

// completeObjects completes workloads, and objects of further kinds.
func completeObjects(k *kubeOptions, scope *scopeOptions, further []completedKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kinds, ok := knownKinds(cmd, scope)
		if !ok || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return (&completion{cmd: cmd, kube: k, namespace: scope.namespace}).object(append(workloadKinds(kinds), further...), typed)
	}
}

// knownKinds are the kinds of workloads, including those that flags add. Cobra parses flags
// twice for a completion, so each value of a list occurs twice.
func knownKinds(cmd *cobra.Command, scope *scopeOptions) ([]kube.Kind, bool) {
	kinds, err := allKinds(slices.Compact(slices.Sorted(slices.Values(scope.kinds))))
	if err != nil {
		cmd.PrintErrln(err)
	}
	return kinds, err == nil
}

// completeAttach completes a workload, and then the objects to attach to it.
func completeAttach(k *kubeOptions, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kinds := workloadKinds(attachableKinds())
		if len(args) > 0 {
			kinds = sourceKinds()
		}
		return (&completion{cmd: cmd, kube: k, namespace: *namespace}).object(kinds, typed)
	}
}

// completedKind is a kind whose names are completed.
type completedKind struct {
	schema.GroupVersionKind
	name     string
	isCalled func(string) bool
}

func workloadKinds(kinds []kube.Kind) []completedKind {
	all := make([]completedKind, len(kinds))
	for i, kind := range kinds {
		all[i] = completedKind{kind.GroupVersionKind, kind.Name(), func(called string) bool {
			found, known := kube.FindKind(kinds, called)
			return known && found.GroupKind() == kind.GroupKind()
		}}
	}
	return all
}

func sourceKinds() []completedKind {
	all := make([]completedKind, 0, 2)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		all = append(all, completedKind{corev1.SchemeGroupVersion.WithKind(kind), strings.ToLower(kind), func(called string) bool {
			meant, known := commandline.SourceKind(called)
			return known && meant == strings.ToLower(kind)
		}})
	}
	return all
}

// completion completes one word of a command line. It doesn't offer names that cannot be read
// within a short time; "lockstep __complete" shows why.
type completion struct {
	cmd       *cobra.Command
	kube      *kubeOptions
	namespace string
}

// object completes "depl" to "deployment/" and "deploy/w" to "deploy/web".
func (c *completion) object(kinds []completedKind, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	called, _, hasKind := strings.Cut(typed, "/")
	if !hasKind {
		var words []cobra.Completion
		for _, kind := range kinds {
			words = append(words, kind.name+"/")
		}
		return beginning(words, strings.ToLower(typed)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	i := slices.IndexFunc(kinds, func(k completedKind) bool { return k.isCalled(called) })
	if i < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace := c.namespace
	switch {
	case kinds[i].Kind == "Namespace":
		namespace = ""
	case namespace == "":
		namespace = c.kube.namespace()
	}
	return c.names(kinds[i].GroupVersionKind, namespace, called+"/", typed)
}

// names completes names of objects, each with a prefix.
func (c *completion) names(kind schema.GroupVersionKind, namespace, prefix, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := c.list(kind, namespace)
	if err != nil {
		c.cmd.PrintErrln(err)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for i, name := range names {
		names[i] = prefix + name
	}
	return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
}

func (c *completion) list(kind schema.GroupVersionKind, namespace string) ([]string, error) {
	config, err := c.kube.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = nearestTimeout // also for discovery, which takes no context
	asking, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return objectNames(c.cmd.Context(), asking, kind, namespace)
}

func beginning(words []string, typed string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, typed) })
}

// addCompletion makes every command complete namespaces and contexts, use the environment for
// that, and not offer files as arguments.
func addCompletion(root *cobra.Command, env Environment) {
	for _, cmd := range root.Commands() {
		complete := cmd.ValidArgsFunction
		if complete == nil {
			complete = cobra.NoFileCompletions
		}
		cmd.ValidArgsFunction = afterEnvironment(env, complete)
		for _, flag := range []string{"namespace", "namespaces", "own-namespace", controllerNamespaceFlag} {
			completeFlag(cmd, flag, afterEnvironment(env, completeNamespace))
		}
		completeFlag(cmd, "context", afterEnvironment(env, completeContext))
	}
}

func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if cmd.Flags().Lookup(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only for flags that already have a completion
	}
}

// afterEnvironment sets flags from the environment first, as a run of the command does.
func afterEnvironment(env Environment, complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if err := setFromEnvironment(cmd.Name(), cmd.Flags(), env); err != nil {
			cmd.PrintErrln(err)
		}
		return complete(cmd, args, typed)
	}
}

func completeNamespace(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c := &completion{cmd: cmd, kube: kubeOf(cmd)}
	return c.names(corev1.SchemeGroupVersion.WithKind("Namespace"), "", "", typed)
}

func completeContext(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	loader, err := kubeOf(cmd).loader()
	if err != nil {
		cmd.PrintErrln(err)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	config, err := loader.RawConfig()
	if err != nil {
		cmd.PrintErrln(err)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginning(slices.Sorted(maps.Keys(config.Contexts)), typed), cobra.ShellCompDirectiveNoFileComp
}

// kubeOf are the flags of a command that select the cluster.
func kubeOf(cmd *cobra.Command) *kubeOptions {
	file, _ := cmd.Flags().GetString("kubeconfig")
	name, _ := cmd.Flags().GetString("context")
	o := &kubeOptions{kubeconfig: file, context: name}
	o.user.as, _ = cmd.Flags().GetString(asFlag)
	o.user.groups, _ = cmd.Flags().GetStringArray(asGroupFlag)
	o.user.token, _ = cmd.Flags().GetString(tokenFlag)
	return o
}
