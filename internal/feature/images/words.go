package images

import (
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// unknownContainer: the annotation names a container that the template doesn't contain.
func unknownContainer(w *kube.Workload, request settings.ImageRequest) input.Warning {
	names := make([]string, len(w.Images))
	for i, image := range w.Images {
		names[i] = image.Name
	}
	return input.Warning{Reason: input.InvalidAnnotation, About: input.Image(request.Container), Text: fmt.Sprintf(
		"annotation %s: the pod template doesn't contain a container %s; its containers are %s", request.Key(), request.Container, strings.Join(names, ", "))}
}

// warnings report problems with the registry's answer and failed rollouts.
func warnings(o Observation, v Verdict, a answer) []input.Warning {
	var all []input.Warning
	if a.problem != "" {
		all = append(all, input.Warning{Reason: input.Unresolved, About: input.Image(o.Request.Container), Shared: a.outage, Text: fmt.Sprintf(
			"annotation %s: %s; the image stays as it is", o.Request.Key(), a.problem)})
	}
	if v.Failed && v.Reason != input.PutBack && v.Standing != input.Due {
		why := "Lockstep doesn't know a digest that was healthy for this workload"
		if o.Trial.Mixed {
			why = "configuration was delivered together with it, or the workload was not healthy before"
		}
		all = append(all, input.Warning{Reason: input.RolloutFailed, About: input.Image(o.Request.Container), Text: fmt.Sprintf(
			"the rollout of image/%s %s failed, and Lockstep doesn't restore an earlier one: %s", o.Request.Container, short(o.Template.Has), why)})
	}
	return all
}

// barredBy explains why an image isn't rolled out, and what to do about it.
func barredBy(w *kube.Workload, o Observation, v Verdict) string {
	if v.Bar == input.Quarantined {
		return fmt.Sprintf("%s@%s is quarantined, because its rollout failed for this workload; push another image, or allow it with \"lockstep release\"", v.To.Tag, versionOf(v.To).Short())
	}
	return fmt.Sprintf("another writer keeps restoring %s; make it ignore the field, with Argo CD by "+
		"ignoreDifferences: [{group: %q, kind: %s, jqPathExpressions: ['%s']}] and the sync option RespectIgnoreDifferences=true, or remove the annotation %s",
		short(o.Template.Has), w.Target.Kind.Group, w.Target.Kind.Kind, jqPath(w, o.Request.Container), o.Request.Key())
}

// jqPath is where the image of a container is set, as Argo CD spells it.
func jqPath(w *kube.Workload, container string) string {
	list := "containers"
	if at, ok := w.ImageOf(container); ok && at.Init {
		list = "initContainers"
	}
	return fmt.Sprintf(".%s.spec.%s[] | select(.name == %q) | .image", w.Target.Kind.Template, list, container)
}
