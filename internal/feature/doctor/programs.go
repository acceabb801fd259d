package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// readPrograms searches all namespaces for the Deployments of other reloaders, and of
// other Lockstep controllers that watch the same namespaces as this one.
func (f *Facts) readPrograms(ctx context.Context, o Options, own installation.Configured, all namespaces) {
	err := everyPage(ctx, o.Client, &appsv1.DeploymentList{}, "", func(object client.Object) error {
		d := object.(*appsv1.Deployment)
		if kube.Deployment().Typed.Replicas(d) == 0 {
			return nil
		}
		where := objectname.In("deployment/"+d.Name, d.Namespace)
		isOwn := d.Namespace == f.Namespace && (d.Name == f.Controller.Installation.Deployment || slices.Contains(f.Controller.Rivals, "deployment/"+d.Name))
		for _, container := range d.Spec.Template.Spec.Containers {
			if tool := toolOfImage(container.Image); tool != "" {
				f.Others.Programs = append(f.Others.Programs, Program{Tool: tool, Where: where, All: takesAll(container)})
			}
		}
		if other, ours := o.Understand.Of(d); ours && !isOwn && other.Problem == "" && share(own, other, all) {
			f.Others.Installations = append(f.Others.Installations, where)
		}
		return nil
	})
	if err != nil {
		f.Others.Err = fmt.Errorf("list deployments: %w", err)
	}
}

// takesAll reports whether Stakater Reloader restarts workloads that don't ask for it.
func takesAll(c corev1.Container) bool {
	return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(word string) bool {
		name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return name == "auto-reload-all" && (value == "" || value == "true")
	})
}
