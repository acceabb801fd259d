// Package podrefs knows where a pod template names ConfigMaps and Secrets, which of their
// keys it uses, and how the pod reads them.
package podrefs

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Ref is everything in one template about one source.
type Ref struct {
	Source input.ID
	// Keys that the template uses, over all places.
	Keys fingerprint.Keys
	// Optional is true when no place requires the source: pods start without it.
	Optional bool
	// Mixed is true when some places require the source, and others don't.
	Mixed bool
	// Listed is true when no template names the source, only an annotation.
	Listed bool
	// Env is true when a container reads the source into its environment, which only a
	// new container repeats.
	Env bool
	// Volume is true when a volume contains the source, which the kubelet refreshes.
	Volume bool
	// SubPath is true when a container mounts a single path of such a volume,
	// which the kubelet never refreshes.
	SubPath bool
}

// Extract lists the sources that the pod names, sorted. Image pull secrets and storage
// driver credentials aren't configuration and don't count.
func Extract(spec *corev1.PodSpec) []Ref {
	found := refs{}
	visit(spec, func(ref Ref, _ Place) { found.add(ref) })
	return found.sorted()
}

type refs map[input.ID]*merged

// merged is the Ref of a source, and the keys of each place: a template can name one source in
// thousands of places, and their union is built once.
type merged struct {
	Ref

	keys []fingerprint.Keys
}

// add merges one place into the Ref of its source.
func (r refs) add(place Ref) {
	if place.Source.Name == "" {
		return
	}
	known, seen := r[place.Source]
	if !seen {
		r[place.Source] = &merged{place, []fingerprint.Keys{place.Keys}}
		return
	}
	known.keys = append(known.keys, place.Keys)
	known.Mixed = known.Mixed || known.Optional != place.Optional
	known.Optional = known.Optional && place.Optional
	known.Env = known.Env || place.Env
	known.Volume = known.Volume || place.Volume
	known.SubPath = known.SubPath || place.SubPath
}

func (r refs) sorted() []Ref {
	list := make([]Ref, 0, len(r))
	for _, m := range r {
		m.Keys = fingerprint.Union(m.keys...)
		list = append(list, m.Ref)
	}
	Sort(list)
	return list
}

// Sort sorts by the source.
func Sort(list []Ref) {
	sorting.By(list, func(a, b Ref) int { return cmp.Compare(a.Source.String(), b.Source.String()) })
}

// visitor is called with each place where a pod names a source.
type visitor func(Ref, Place)

// visit calls show for every place, those of containers first.
func visit(spec *corev1.PodSpec, show visitor) {
	subPaths := map[string]bool{}
	container := func(name string, env []corev1.EnvVar, from []corev1.EnvFromSource, mounts []corev1.VolumeMount) {
		show.env(name, env)
		show.envFrom(name, from)
		for _, m := range mounts {
			if m.SubPath != "" || m.SubPathExpr != "" {
				subPaths[m.Name] = true
			}
		}
	}
	for _, c := range spec.InitContainers {
		container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts)
	}
	for _, c := range spec.Containers {
		container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts)
	}
	for _, c := range spec.EphemeralContainers {
		container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts)
	}
	for i := range spec.Volumes {
		show.volume(&spec.Volumes[i], subPaths[spec.Volumes[i].Name])
	}
}

func (show visitor) env(container string, env []corev1.EnvVar) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		at := Place{Container: container, Variable: e.Name}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			show(Ref{Source: input.ConfigMap(ref.Name), Keys: fingerprint.SomeKeys(ref.Key), Optional: isTrue(ref.Optional), Env: true}, at)
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			show(Ref{Source: input.Secret(ref.Name), Keys: fingerprint.SomeKeys(ref.Key), Optional: isTrue(ref.Optional), Env: true}, at)
		}
	}
}

func (show visitor) envFrom(container string, from []corev1.EnvFromSource) {
	at := Place{Container: container}
	for _, e := range from {
		if ref := e.ConfigMapRef; ref != nil {
			show(Ref{Source: input.ConfigMap(ref.Name), Keys: fingerprint.AllKeys(), Optional: isTrue(ref.Optional), Env: true}, at)
		}
		if ref := e.SecretRef; ref != nil {
			show(Ref{Source: input.Secret(ref.Name), Keys: fingerprint.AllKeys(), Optional: isTrue(ref.Optional), Env: true}, at)
		}
	}
}

func (show visitor) volume(v *corev1.Volume, subPath bool) {
	at := Place{Volume: v.Name}
	if s := v.ConfigMap; s != nil {
		show(Ref{Source: input.ConfigMap(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath}, at)
	}
	if s := v.Secret; s != nil {
		show(Ref{Source: input.Secret(s.SecretName), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath}, at)
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if s := p.ConfigMap; s != nil {
			show(Ref{Source: input.ConfigMap(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath}, at)
		}
		if s := p.Secret; s != nil {
			show(Ref{Source: input.Secret(s.Name), Keys: itemKeys(s.Items), Optional: isTrue(s.Optional), Volume: true, SubPath: subPath}, at)
		}
	}
}

// itemKeys: no items means every key, as for the kubelet.
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
