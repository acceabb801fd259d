package histories_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// references is the annotation in which a template describes what it references. The rest of the
// template follows from it. container is the one with the name of its container.
const (
	references = "references"
	container  = "container"
	byHand     = "by-hand"
)

// editor is a person who changes what the template references, and keys of sources.
type editor struct {
	*person
	*agenda

	// data are the contents that each source has had.
	data map[string][]histories.Data
}

func newEditor(p *person, a *agenda) *editor {
	return &editor{person: p, agenda: a, data: map[string][]histories.Data{}}
}

// begin makes the sources and the workload.
func (e *editor) begin(ctx context.Context) error {
	for _, source := range histories.Sources() {
		if err := e.put(ctx, source, histories.Data{"a": e.fresh(source), "b": e.fresh(source)}); err != nil {
			return err
		}
	}
	d := testkit.Deployment(testkit.Web, "", "")
	delete(d.Annotations, settings.Quiet)
	d.Spec.Replicas, d.Spec.RevisionHistoryLimit = new(int32(2)), new(int32(1000))
	render(&d.Spec.Template, []histories.Reference{{Place: histories.Env, Source: "configmap/app", Key: "a"}, {Place: histories.EnvFrom, Source: "secret/db"}}, "app")
	return e.create(ctx, d)
}

// render writes the places into a template.
func render(t *corev1.PodTemplateSpec, all []histories.Reference, name string) {
	setOn(t, references, histories.EncodeReferences(all))
	setOn(t, container, name)
	app, first := corev1.Container{Name: name, Image: "app"}, corev1.Container{Name: "init", Image: "app"}
	pod := corev1.PodSpec{SchedulerName: kubelet.Scheduler}
	for i, r := range all {
		kind, object, _ := strings.Cut(r.Source, "/")
		at := corev1.LocalObjectReference{Name: object}
		switch r.Place {
		case histories.EnvFrom:
			app.EnvFrom = append(app.EnvFrom, envFrom(kind, at, r))
		case histories.Init:
			if r.Key == "" {
				first.EnvFrom = append(first.EnvFrom, envFrom(kind, at, r))
				break
			}
			first.Env = append(first.Env, env(kind, at, r, i))
		case histories.Env:
			app.Env = append(app.Env, env(kind, at, r, i))
		default:
			pod.Volumes = append(pod.Volumes, volume(kind, at, r, i))
		}
	}
	pod.Containers = []corev1.Container{app}
	if len(first.Env)+len(first.EnvFrom) > 0 {
		pod.InitContainers = []corev1.Container{first}
	}
	t.Spec = pod
}

func envFrom(kind string, at corev1.LocalObjectReference, r histories.Reference) corev1.EnvFromSource {
	if kind == "secret" {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: at, Optional: &r.Optional}}
	}
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: at, Optional: &r.Optional}}
}

func env(kind string, at corev1.LocalObjectReference, r histories.Reference, i int) corev1.EnvVar {
	v := corev1.EnvVar{Name: fmt.Sprintf("V%d", i), ValueFrom: &corev1.EnvVarSource{}}
	if kind == "secret" {
		v.ValueFrom.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: at, Key: r.Key, Optional: &r.Optional}
	} else {
		v.ValueFrom.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: at, Key: r.Key, Optional: &r.Optional}
	}
	return v
}

func volume(kind string, at corev1.LocalObjectReference, r histories.Reference, i int) corev1.Volume {
	var items []corev1.KeyToPath
	if r.Key != "" {
		items = []corev1.KeyToPath{{Key: r.Key, Path: r.Key}}
	}
	v := corev1.Volume{Name: fmt.Sprintf("v%d", i)}
	switch projected := r.Place == histories.Projected; {
	case projected && kind == "secret":
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: at, Items: items, Optional: &r.Optional}}}}
	case projected:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: at, Items: items, Optional: &r.Optional}}}}
	case kind == "secret":
		v.Secret = &corev1.SecretVolumeSource{SecretName: at.Name, Items: items, Optional: &r.Optional}
	default:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: at, Items: items, Optional: &r.Optional}
	}
	return v
}

// do carries an action out.
func (e *editor) do(ctx context.Context, a histories.Action) error {
	switch a.Verb {
	case histories.Change, histories.ChangeBack, histories.Remove, histories.Restore, histories.RemoveKey, histories.SwapKeys:
		return e.edit(ctx, a)
	case histories.Deploy, histories.DeployLast:
		return e.deploy(ctx, a)
	case histories.List:
		return e.change(ctx, func(d *appsv1.Deployment) { d.Annotations[settings.Reload] = histories.ListText(a.Revision) })
	case histories.Rename:
		return e.change(ctx, func(d *appsv1.Deployment) {
			all, name := placesOf(&d.Spec.Template)
			render(&d.Spec.Template, all, map[string]string{"app": "web", "web": "app"}[name])
		})
	case histories.ByHand, histories.ByItself:
		return e.change(ctx, func(d *appsv1.Deployment) { d.Annotations[byHand] = strconv.FormatBool(a.Verb == histories.ByHand) })
	case histories.DeletePod:
		return e.deletePod(ctx, a.Revision)
	default:
	}
	if change := placesAfter(a); change != nil {
		return e.change(ctx, func(d *appsv1.Deployment) {
			all, name := placesOf(&d.Spec.Template)
			if next := change(all); !slices.Equal(all, next) {
				render(&d.Spec.Template, next, name)
			}
		})
	}
	return e.person.do(ctx, a)
}

// placesOf are the places of a template, and the name of its container.
func placesOf(t *corev1.PodTemplateSpec) ([]histories.Reference, string) {
	return histories.ParseReferences(t.Annotations[references]), t.Annotations[container]
}

// placesAfter is how an action changes the places of a template, nil when it doesn't.
func placesAfter(a histories.Action) func([]histories.Reference) []histories.Reference {
	edit := func(change func(*histories.Reference)) func([]histories.Reference) []histories.Reference {
		return func(all []histories.Reference) []histories.Reference {
			all = slices.Clone(all)
			if len(all) > 0 {
				r := &all[a.Revision%len(all)]
				change(r)
				if r.Place == histories.Env {
					r.Key = cmp.Or(r.Key, "a")
				}
				if r.Place == histories.EnvFrom {
					r.Key = ""
				}
			}
			return all
		}
	}
	switch a.Verb {
	case histories.AddReference:
		return func(all []histories.Reference) []histories.Reference { return append(slices.Clone(all), a.Ref) }
	case histories.RemoveReference:
		return func(all []histories.Reference) []histories.Reference {
			if len(all) == 0 {
				return all
			}
			i := a.Revision % len(all)
			return slices.Delete(slices.Clone(all), i, i+1)
		}
	case histories.SwapReference:
		return edit(func(r *histories.Reference) { *r = a.Ref })
	case histories.SwapKey:
		return edit(func(r *histories.Reference) { r.Key = a.Key })
	case histories.SwapSource:
		return edit(func(r *histories.Reference) { r.Source = a.Source })
	case histories.SwapPlace:
		return edit(func(r *histories.Reference) { r.Place = a.Ref.Place })
	case histories.SwitchOptional:
		return edit(func(r *histories.Reference) { r.Optional = !r.Optional })
	default:
		return nil
	}
}

// deploy writes a source and the template within one second of the API server's clock.
func (e *editor) deploy(ctx context.Context, a histories.Action) error {
	second := time.Now().Truncate(time.Second)
	e.pass(time.Until(second.Add(time.Second + e.soon())))
	source := func() error {
		return e.edit(ctx, histories.Action{Verb: histories.Change, Source: a.Source, Key: a.Key})
	}
	template := func() error {
		e.turns++
		return e.change(ctx, func(d *appsv1.Deployment) {
			all, name := placesOf(&d.Spec.Template)
			if a.Ref.Source != "" {
				all = append(all, a.Ref)
			}
			render(&d.Spec.Template, all, name)
			setOn(&d.Spec.Template, "edited", strconv.Itoa(e.turns))
		})
	}
	first, last := source, template
	if a.Verb == histories.DeployLast {
		first, last = template, source
	}
	if err := first(); err != nil {
		return err
	}
	e.pass(3 * e.soon())
	return last()
}

// edit changes a source.
func (e *editor) edit(ctx context.Context, a histories.Action) error {
	o, err := e.stored(ctx, a.Source)
	if err != nil {
		return err
	}
	now := dataOf(o)
	next := maps.Clone(now)
	all := e.data[a.Source]
	switch a.Verb {
	case histories.Change:
		if next == nil {
			next = maps.Clone(all[len(all)-1])
		}
		next[cmp.Or(a.Key, "a")] = e.fresh(a.Source)
	case histories.ChangeBack:
		next = maps.Clone(all[max(0, len(all)-2)])
	case histories.Restore:
		if next == nil {
			next = maps.Clone(all[len(all)-1])
		}
		for _, key := range []string{"a", "b", "c"} {
			next[key] = cmp.Or(next[key], "restored "+key)
		}
	case histories.Remove:
		if o == nil {
			return nil
		}
		return e.client.Delete(ctx, o)
	case histories.RemoveKey:
		if len(next) > 1 {
			delete(next, a.Key)
		}
	case histories.SwapKeys:
		if next["a"] != "" && next["b"] != "" {
			next["a"], next["b"] = next["b"], next["a"]
		}
	default:
	}
	if next == nil || maps.Equal(now, next) {
		return nil
	}
	return e.put(ctx, a.Source, next)
}

// stored is a source, nil when there is none.
func (e *editor) stored(ctx context.Context, name string) (client.Object, error) {
	o := e.source(name, "")
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return o, nil
}

// put writes the data of a source, and makes one that doesn't exist.
func (e *editor) put(ctx context.Context, name string, data histories.Data) error {
	e.data[name] = append(e.data[name], data)
	o, err := e.stored(ctx, name)
	if err != nil {
		return err
	}
	made := o == nil
	if made {
		o = e.source(name, "")
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data = data
	case *corev1.Secret:
		o.Data = map[string][]byte{}
		for key, value := range data {
			o.Data[key] = []byte(value)
		}
	}
	if made {
		return e.client.Create(ctx, o)
	}
	return e.client.Update(ctx, o)
}

// dataOf is the content of a source, nil without one.
func dataOf(o client.Object) histories.Data {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return maps.Clone(o.Data)
	case *corev1.Secret:
		data := histories.Data{}
		for key, value := range o.Data {
			data[key] = string(value)
		}
		return data
	}
	return nil
}

func (e *editor) deletePod(ctx context.Context, which int) error {
	list := &corev1.PodList{}
	if err := e.client.List(ctx, list, client.InNamespace(e.namespace)); err != nil || len(list.Items) == 0 {
		return err
	}
	return client.IgnoreNotFound(e.client.Delete(ctx, &list.Items[which%len(list.Items)])) // a rollout may be faster
}

// followedOf is what matters of a workload to its pods.
func followedOf(kind kube.Kind, d *appsv1.Deployment, lent bool) histories.Followed {
	all, _ := placesOf(&d.Spec.Template)
	_, held := d.Annotations[settings.Hold]
	return histories.Followed{
		Template: hashOf(d), References: all, Annotation: d.Annotations[settings.Reload], Held: held, Paused: d.Spec.Paused,
		Release: d.Annotations[settings.Release], ByHand: d.Annotations[byHand] == "true", Repeats: kind.RestartsByItself, Borrows: lent,
	}
}
