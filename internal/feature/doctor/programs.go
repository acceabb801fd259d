package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// readPrograms looks for the Deployments of other reloaders, and of other controllers of
// Lockstep that watch what this one does, in all namespaces.
func (f *Facts) readPrograms(ctx context.Context, o Options, own Configured, all namespaces) {
	err := everyPage(ctx, o.Client, &appsv1.DeploymentList{}, "", func(object client.Object) error {
		d := object.(*appsv1.Deployment)
		if kube.Deployment().ReplicasOf(d) == 0 {
			return nil
		}
		where := "deployment/" + d.Name + " in " + d.Namespace
		isOwn := d.Namespace == f.Namespace && d.Name == f.Installation.Deployment
		for _, container := range d.Spec.Template.Spec.Containers {
			if tool := toolOfImage(container.Image); tool != "" {
				f.Programs = append(f.Programs, Program{Tool: tool, Where: where, All: takesAll(container)})
			}
			if other, lockstep := o.understand(d, container); lockstep && !isOwn && other.Problem == "" && own.shares(other, all) {
				f.Installations = append(f.Installations, where)
			}
		}
		return nil
	})
	if err != nil {
		f.ProgramsErr = fmt.Errorf("list deployments: %w", err)
	}
}

// takesAll reports whether Stakater Reloader restarts workloads that do not ask for it.
func takesAll(c corev1.Container) bool {
	return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(word string) bool {
		name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return name == "auto-reload-all" && (value == "" || value == "true")
	})
}

// understand reads what a container is started with.
func (o Options) understand(d *appsv1.Deployment, c corev1.Container) (Configured, bool) {
	variable := variablesOf(c, d.Namespace)
	words := slices.Concat(c.Command, c.Args)
	for i := range words {
		words[i] = reference.ReplaceAllStringFunc(words[i], func(text string) string {
			if value, known := variable(text[2 : len(text)-1]); known {
				return value
			}
			return text
		})
	}
	return o.Understand(words, variable)
}

// reference is a variable that Kubernetes puts into arguments.
var reference = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// variablesOf looks up the environment of a container, as far as the template has the values.
func variablesOf(c corev1.Container, namespace string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range c.Env {
			switch from := e.ValueFrom; {
			case e.Name != name:
			case from == nil:
				return e.Value, true
			case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
				return namespace, true
			}
		}
		return "", false
	}
}
