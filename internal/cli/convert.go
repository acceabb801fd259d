package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubernetesreloader"
)

// convertOptions are the flags of "lockstep convert".
type convertOptions struct {
	from   string
	files  manifestOptions
	output string
}

func newConvert(env Environment) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert --from TOOL -f FILE|DIRECTORY|-...",
		Short: "Print the annotations that replace those of another tool, without a cluster",
		Long: `Print the annotations that replace those of another tool, for each object in the manifests
that carries any. The command doesn't change anything. Its output is YAML with the objects' names
and their new annotations: paste it, or use it as a kustomize patch. Comments list the annotations
without a counterpart, and what Lockstep does instead. -o wide also lists the objects with nothing
to convert, as comments. The command doesn't print contents of ConfigMaps and Secrets.

Tools: ` + strings.Join(convertTools(), ", ") + `.

"lockstep controller --read-annotations" reads the old annotations, without a conversion.

Exit codes: 0 done, even if an annotation has no counterpart; 1 a file can't be read; 2 wrong
usage.`,
		Example: `  lockstep convert --from stakater -f deploy/
  kustomize build . | lockstep convert --from stakater -f -
  helm template web ./chart | lockstep convert --from kube-image-deployer -f - -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(args, cmd.InOrStdin(), env)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.from, "from", "", "the tool whose annotations are converted: "+strings.Join(convertTools(), ", "))
	o.files.bind(cmd)
	fs.StringVarP(&o.output, "output", "o", formatManifest, strings.Join(convertFormats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(convertTools(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(convertFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func convertTools() []string {
	return []string{toolStakater, kubernetesreloader.Name, kubeimagedeployer.DefaultKey}
}

// formatManifest is YAML to apply, with comments. The command has it instead of a table.
const formatManifest = "manifest"

func convertFormats() []string {
	return []string{formatManifest, formatWide, formatJSON, formatYAML, formatName}
}

// convertAnswer is the output of the command.
type convertAnswer struct {
	Objects []converted `json:"objects"`
	// Unchanged is the number of objects with nothing to convert.
	Unchanged  int          `json:"unchanged"`
	Files      int          `json:"files"`
	Unreadable []unreadable `json:"unreadable"`

	unchanged []converted
}

// converted is an object with annotations of the tool.
type converted struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Annotations are the new ones.
	Annotations map[string]string `json:"annotations,omitempty"`
	// WithoutCounterpart are old annotations, and what Lockstep does instead.
	WithoutCounterpart map[string]string `json:"withoutCounterpart,omitempty"`

	object manifest.Object
}

func (o *convertOptions) run(args []string, stdin io.Reader, env Environment) error {
	if o.output == formatTable {
		o.output = formatManifest
	}
	switch {
	case o.from == "":
		return usageError{fmt.Errorf("--from: name the tool: %s", strings.Join(convertTools(), ", "))}
	case !slices.Contains(convertTools(), o.from):
		return usageError{fmt.Errorf("--from %q: want one of %s%s", o.from, strings.Join(convertTools(), ", "), commandline.Hint(o.from, "", convertTools()))}
	case !slices.Contains(convertFormats(), o.output):
		return usageError{fmt.Errorf("--output %q: want one of %s%s", o.output, strings.Join(convertFormats(), ", "), commandline.Hint(o.output, "", convertFormats()))}
	}
	if err := o.files.add(args); err != nil {
		return err
	}
	found, err := o.files.readAll(stdin, env)
	if err != nil {
		return err
	}
	answer := convertAnswer{Objects: []converted{}, Files: found.Files}
	for _, object := range found.Objects {
		one, err := o.convert(object)
		switch {
		case err != nil:
			found.Wrong = append(found.Wrong, err)
		case len(one.Annotations)+len(one.WithoutCounterpart) > 0:
			answer.Objects = append(answer.Objects, one)
		default:
			answer.unchanged = append(answer.unchanged, one)
		}
	}
	answer.Unchanged, answer.Unreadable = len(answer.unchanged), allUnreadable(found.Wrong)
	if err := o.print(env, answer); err != nil {
		return err
	}
	switch {
	case len(answer.Unreadable) > 0:
		return unreadError(answer.Unreadable)
	case len(found.Objects) == 0:
		return errNoObjects
	}
	return nil
}

// convert converts the annotations of one object, except those that it already has in both forms.
func (o *convertOptions) convert(object manifest.Object) (converted, error) {
	c := converted{File: object.File, Line: object.Line, Object: object.Called(), Namespace: object.GetNamespace(), object: object}
	own, err := annotationsAt(object)
	if err != nil {
		return c, err
	}
	t, err := o.translate(object, own)
	if err != nil {
		return c, err
	}
	if _, ours := own[settings.Reload]; ours && o.from != kubeimagedeployer.DefaultKey {
		return c, nil
	}
	maps.DeleteFunc(t.Annotations, func(key, _ string) bool { _, ours := own[key]; return ours })
	c.Annotations, c.WithoutCounterpart = t.Annotations, t.Lost
	return c, nil
}

// translate translates the annotations of an object. Workloads are those that Lockstep follows,
// and Jobs.
func (o *convertOptions) translate(object manifest.Object, own map[string]string) (settings.Translation, error) {
	path, isWorkload := templateOf(object)
	switch {
	case o.from == toolStakater && isWorkload:
		template, err := annotationsAt(object, path...)
		return stakaterWords(false).Workload(object.GetKind(), own, template), err
	case o.from == toolStakater:
		return stakaterWords(false).Source(object.GetKind(), own), nil
	case !isWorkload:
		return settings.Translation{}, nil
	case o.from == kubernetesreloader.Name:
		return legacy.Words{}.Translate(own), nil
	}
	return kubeimagedeployer.Words{Key: kubeimagedeployer.DefaultKey}.Translate(own, object.GetLabels()), nil
}

// templateOf is the path of the pod template of a workload.
func templateOf(object manifest.Object) (path []string, ok bool) {
	kind := object.GroupVersionKind().GroupKind()
	if kind == batchv1.SchemeGroupVersion.WithKind("Job").GroupKind() {
		return []string{"spec", "template"}, true
	}
	for _, known := range kube.Kinds() {
		if known.GroupKind() == kind {
			return strings.Split(known.Template, "."), true
		}
	}
	return nil, false
}

// annotationsAt reads annotations of the object, or of the part of it at that path.
func annotationsAt(object manifest.Object, path ...string) (map[string]string, error) {
	path = append(slices.Clone(path), "metadata", "annotations")
	all, _, err := unstructured.NestedStringMap(object.Object, path...)
	if err != nil {
		// The cause quotes the value.
		return nil, &manifest.Error{File: object.File, Line: object.LineOf(path...), Err: errors.New("an annotation isn't text; write it in quotes")}
	}
	return all, nil
}

func (o *convertOptions) print(env Environment, answer convertAnswer) error {
	if o.output != formatManifest && o.output != formatWide {
		return outputOptions{o.output}.list(env.Stdout, answer, listedOf(answer.Objects, func(c converted) listed { return listed{c.Namespace, c.Object} }), nil)
	}
	for i, c := range answer.Objects {
		if i > 0 {
			_ = say(env.Stdout, "---")
		}
		if err := c.print(env.Stdout); err != nil {
			return err
		}
	}
	if o.output == formatWide {
		for _, c := range answer.unchanged {
			_ = say(env.Stdout, "# %s:%d: %s: nothing to convert", c.File, c.Line, c.Object)
		}
	}
	lost := 0
	for _, c := range answer.Objects {
		lost += len(c.WithoutCounterpart)
	}
	return say(env.Stderr, "%s: %s with %s annotations, %s without a counterpart; %s with nothing to convert",
		counted(answer.Files, "file"), counted(len(answer.Objects), "object"), o.from, counted(lost, "annotation"), counted(answer.Unchanged, "object"))
}

// print prints the object's new annotations as a manifest, and everything else as comments.
func (c converted) print(to io.Writer) error {
	if err := say(to, "# %s:%d: %s", c.File, c.Line, c.Object); err != nil {
		return err
	}
	if len(c.Annotations) > 0 {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(c.object.GroupVersionKind())
		object.SetName(c.object.GetName())
		object.SetGenerateName(c.object.GetGenerateName())
		object.SetNamespace(c.object.GetNamespace())
		object.SetAnnotations(c.Annotations)
		if err := (outputOptions{formatYAML}).write(to, object.Object, nil); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.WithoutCounterpart)) {
		if err := say(to, "# no counterpart: %s: %s", key, c.WithoutCounterpart[key]); err != nil {
			return err
		}
	}
	return nil
}
