package histories_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/histories"
)

// do carries an action out.
func (f *fleet) do(a histories.Action) {
	switch a.Verb {
	case histories.Settle:
		f.pass(4 * time.Minute)
		return
	case histories.Wait:
		f.pass(7 * time.Minute)
		return
	case histories.Endure:
		f.pass(6 * time.Hour)
		return
	case histories.Kill:
		f.process.kill()
	case histories.KillAfterPatch:
		f.process.armed = true
	case histories.LoseAnswer:
		f.process.loses = true
	case histories.Start:
		f.process.armed = false
		if f.process.dead {
			f.start()
		}
	case histories.Gap:
		f.process.breakWatches(f.random.IntN(2) == 0)
		f.facts = append(f.facts, histories.FleetFact{At: time.Now(), Sight: histories.SightLost})
	case histories.Look:
		f.process.look()
		f.passUntil(func() bool { return f.process.dead || f.process.sees() })
		if !f.process.dead {
			f.facts = append(f.facts, histories.FleetFact{At: time.Now(), Sight: histories.SightBack})
		}
	case histories.Calm:
		f.calm()
	case histories.StopAll, histories.StopNamespace, histories.Unstop:
		f.stop(a)
	default:
		f.write(a)
	}
	f.passUntil(f.isObserved)
	f.pass(time.Duration(f.random.IntN(12000)) * time.Millisecond)
}

func (f *fleet) isObserved() bool {
	for _, c := range f.crews {
		if !c.isObserved() {
			return false
		}
	}
	return true
}

// write changes a source, a workload or a namespace.
func (f *fleet) write(a histories.Action) {
	switch a.Verb {
	case histories.Change:
		f.set(a, "good")
	case histories.Spoil:
		f.set(a, "bad")
	case histories.Weaken:
		f.set(a, "weak")
	case histories.SpoilOne:
		all := histories.Workloads()
		_, name, _ := strings.Cut(all[f.random.IntN(len(all))], "/")
		f.set(a, "bad for "+name)
	case histories.ChangeBack:
		for _, p := range f.owners(a) {
			f.must(p.setContent(context.Background(), a.Source, p.before(a.Source)))
		}
	case histories.Accept:
		for _, p := range f.owners(a) {
			content := f.contents[p.namespace+" "+a.Source]
			f.mark(p.source(a.Source, ""), settings.Resume, p.digest(a.Source, content, hashers()))
		}
	case histories.Hurry, histories.Slow:
		for _, p := range f.owners(a) {
			f.mark(p.source(a.Source, ""), settings.Ramp, map[histories.Verb]string{histories.Hurry: "off"}[a.Verb])
		}
	case histories.Break, histories.Mend:
		f.crews[a.On].setBroken(a.Verb == histories.Break)
	default:
		f.annotate(a)
	}
}

// set gives a source a content that it never had. The shared one changes everywhere.
func (f *fleet) set(a histories.Action, kind string) {
	f.turns++
	for _, p := range f.owners(a) {
		f.must(p.setContent(context.Background(), a.Source, kind+" "+strconv.Itoa(f.turns)))
	}
}

// owners are those of the namespaces that an action on a source concerns.
func (f *fleet) owners(a histories.Action) []*person {
	if a.On != "" {
		return []*person{f.people[a.On]}
	}
	var all []*person
	for _, name := range histories.Namespaces() {
		all = append(all, f.people[name])
	}
	return all
}

// mark sets an annotation, and removes it when it is empty.
func (f *fleet) mark(o client.Object, key, value string) {
	person := f.server.as("person")
	f.must(person.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	marks := map[string]string{}
	maps.Copy(marks, o.GetAnnotations())
	if marks[key] == value {
		return
	}
	marks[key] = value
	if value == "" {
		delete(marks, key)
	}
	o.SetAnnotations(marks)
	f.must(person.Update(context.Background(), o))
}

// annotate changes a workload or a namespace.
func (f *fleet) annotate(a histories.Action) {
	namespace, name, isWorkload := strings.Cut(a.On, "/")
	var o client.Object = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	window := histories.Windows()[1]
	if isWorkload {
		o = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		window = histories.Windows()[0]
	}
	switch a.Verb {
	case histories.Hold, histories.Free:
		f.mark(o, settings.Hold, map[histories.Verb]string{histories.Hold: "history"}[a.Verb])
	case histories.SetWindow, histories.Open:
		f.mark(o, settings.Window, map[histories.Verb]string{histories.SetWindow: windowText(window)}[a.Verb])
	case histories.Limit, histories.Unlimit:
		f.mark(o, settings.MaxRolling, map[histories.Verb]string{histories.Limit: "1"}[a.Verb])
	case histories.Prefer, histories.Unprefer:
		f.mark(o, settings.First, map[histories.Verb]string{histories.Prefer: "true"}[a.Verb])
	case histories.LongQuiet, histories.ShortQuiet, histories.NoQuiet:
		f.mark(o, settings.Quiet, map[histories.Verb]string{
			histories.LongQuiet: histories.LongQuietWindow.String(), histories.ShortQuiet: histories.ShortQuietWindow.String(),
		}[a.Verb])
	case histories.Order, histories.Unorder:
		first := map[string]string{"shop": "a", "blog": "g"}[namespace]
		if name != first {
			f.mark(o, settings.After, map[histories.Verb]string{histories.Order: "deployment/" + first}[a.Verb])
		}
	case histories.Scale, histories.Pause, histories.Resume, histories.Rollout:
		f.edit(a, o.(*appsv1.Deployment))
	default:
		panic(fmt.Sprintf("a fleet can't %s", a))
	}
}

// edit changes the specification of a workload.
func (f *fleet) edit(a histories.Action, d *appsv1.Deployment) {
	person := f.server.as("person")
	f.must(person.Get(context.Background(), client.ObjectKeyFromObject(d), d))
	before := d.DeepCopy()
	switch a.Verb {
	case histories.Scale:
		*d.Spec.Replicas = 2 - *d.Spec.Replicas
	case histories.Rollout:
		if d.Spec.Paused { // it would take effect later
			return
		}
		f.turns++
		setOn(&d.Spec.Template, "edited", strconv.Itoa(f.turns))
	default:
		d.Spec.Paused = a.Verb == histories.Pause
	}
	if !same(before, d) {
		f.must(person.Update(context.Background(), d))
	}
}

// stop writes the kill switch, as "lockstep stop" does.
func (f *fleet) stop(a histories.Action) {
	person := f.server.as("person")
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: installation, Name: settings.StopName}}
	err := person.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	switch {
	case a.Verb == histories.Unstop && err == nil:
		f.must(person.Delete(context.Background(), o))
	case a.Verb == histories.Unstop:
	case err == nil:
		o.Data = map[string]string{settings.StopKey(a.On): "history"}
		f.must(person.Update(context.Background(), o))
	default:
		o.Data = map[string]string{settings.StopKey(a.On): "history"}
		f.must(person.Create(context.Background(), o))
	}
}

// calm removes every obstacle, and lets everything arrive.
func (f *fleet) calm() {
	f.stop(histories.Action{Verb: histories.Unstop})
	for _, name := range histories.Namespaces() {
		for _, v := range []histories.Verb{histories.Free, histories.Open, histories.Unlimit} {
			f.annotate(histories.Action{Verb: v, On: name})
		}
	}
	for _, key := range histories.Workloads() {
		f.crews[key].setBroken(false)
		for _, v := range []histories.Verb{histories.Free, histories.Open, histories.Unorder, histories.NoQuiet, histories.Resume} {
			f.annotate(histories.Action{Verb: v, On: key})
		}
	}
	for _, a := range []histories.Action{{Source: histories.ConfigMap, On: "shop"}, {Source: histories.ConfigMap, On: "blog"}, {Source: histories.Secret, On: "shop"}, {Source: histories.Shared}} {
		f.set(a, "good")
	}
	f.pass(65 * time.Minute)
}
