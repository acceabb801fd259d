// Package podrefs knows where a pod template names ConfigMaps and Secrets, which
// of their keys it uses, and how the pod gets to see them.
package podrefs

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Ref is everything that one template says about one source.
type Ref struct {
	Source input.ID
	// Keys that the template uses, over all places.
	Keys fingerprint.Keys
	// Optional is true when no place requires the source: pods start without it.
	Optional bool
	// Listed is true when no template names the source, only an annotation.
	Listed bool
	// Env is true when a container reads the source into its environment, which
	// only a new container can do again.
	Env bool
	// Volume is true when a volume holds the source, which the kubelet refreshes.
	Volume bool
	// SubPath is true when a container mounts a single path of such a volume,
	// which the kubelet never refreshes.
	SubPath bool
}

// Extract lists the sources that the pod names, sorted. Image pull secrets and
// credentials of storage drivers are not configuration and do not count.
func Extract(spec *corev1.PodSpec) []Ref {
	found := refs{}
	subPaths := found.addContainers(spec)
	for i := range spec.Volumes {
		found.addVolume(&spec.Volumes[i], subPaths[spec.Volumes[i].Name])
	}
	return found.sorted()
}

type refs map[input.ID]Ref

// add merges one place into what is known of its source.
func (r refs) add(place Ref) {
	if place.Source.Name == "" {
		return
	}
	known, seen := r[place.Source]
	if !seen {
		r[place.Source] = place
		return
	}
	known.Keys = known.Keys.Union(place.Keys)
	known.Optional = known.Optional && place.Optional
	known.Env = known.Env || place.Env
	known.Volume = known.Volume || place.Volume
	known.SubPath = known.SubPath || place.SubPath
	r[place.Source] = known
}

func (r refs) sorted() []Ref {
	list := make([]Ref, 0, len(r))
	for _, ref := range r {
		list = append(list, ref)
	}
	slices.SortFunc(list, func(a, b Ref) int { return cmp.Compare(a.Source.String(), b.Source.String()) })
	return list
}

// addContainers adds what the environments name and returns the volumes that
// some container mounts by sub-path.
func (r refs) addContainers(spec *corev1.PodSpec) map[string]bool {
	subPaths := map[string]bool{}
	visit := func(env []corev1.EnvVar, from []corev1.EnvFromSource, mounts []corev1.VolumeMount) {
		r.addEnv(env)
		r.addEnvFrom(from)
		for _, m := range mounts {
			if m.SubPath != "" || m.SubPathExpr != "" {
				subPaths[m.Name] = true
			}
		}
	}
	for _, c := range spec.InitContainers {
		visit(c.Env, c.EnvFrom, c.VolumeMounts)
	}
	for _, c := range spec.Containers {
		visit(c.Env, c.EnvFrom, c.VolumeMounts)
	}
	for _, c := range spec.EphemeralContainers {
		visit(c.Env, c.EnvFrom, c.VolumeMounts)
	}
	return subPaths
}

func (r refs) addEnv(env []corev1.EnvVar) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add(Ref{Source: input.ConfigMap(ref.Name), Keys: fingerprint.SomeKeys(ref.Key), Optional: isTrue(ref.Optional), Env: true})
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.add(Ref{Source: input.Secret(ref.Name), Keys: fingerprint.SomeKeys(ref.Key), Optional: isTrue(ref.Optional), Env: true})
		}
	}
}

func (r refs) addEnvFrom(from []corev1.EnvFromSource) {
	for _, e := range from {
		if ref := e.ConfigMapRef; ref != nil {
			r.add(Ref{Source: input.ConfigMap(ref.Name), Keys: fingerprint.AllKeys(), Optional: isTrue(ref.Optional), Env: true})
		}
		if ref := e.SecretRef; ref != nil {
			r.add(Ref{Source: input.Secret(ref.Name), Keys: fingerprint.AllKeys(), Optional: isTrue(ref.Optional), Env: true})
		}
	}
}

func (r refs) addVolume(v *corev1.Volume, subPath bool) {
	if s := v.ConfigMap; s != nil {
		r.add(Ref{Source: input.ConfigMap(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath})
	}
	if s := v.Secret; s != nil {
		r.add(Ref{Source: input.Secret(s.SecretName), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath})
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if s := p.ConfigMap; s != nil {
			r.add(Ref{Source: input.ConfigMap(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath})
		}
		if s := p.Secret; s != nil {
			r.add(Ref{Source: input.Secret(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath})
		}
	}
}

// itemKeys: no items means every key, as the kubelet reads it.
func itemKeys(items []corev1.KeyToPath) fingerprint.Keys {
	if len(items) == 0 {
		return fingerprint.AllKeys()
	}
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.Key
	}
	return fingerprint.SomeKeys(names...)
}

func isTrue(b *bool) bool {
	return b != nil && *b
}
