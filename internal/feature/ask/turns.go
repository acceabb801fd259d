package ask

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// restartedAt is the annotation by which "kubectl rollout restart" changes a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// otherFields stands for changes without a name of their own.
const otherFields = "other fields of the template"

// turn is a Revision and its template.
type turn struct {
	Revision

	template *corev1.PodTemplateSpec
	shown    input.Shown
	// latest is true for the turn of the workload's template.
	latest bool
}

// turns are the turns of all revisions, oldest first, each with its changes.
func (p *Past) turns() []turn {
	var all []turn
	for _, r := range p.Revisions {
		all = append(all, turnsOf(r)...)
	}
	sorting.By(all, func(a, b turn) int {
		if a.Number != b.Number {
			return int(a.Number - b.Number)
		}
		return strings.Compare(a.Name, b.Name)
	})
	if len(p.Workload.Kind.RevisionNumbers) == 0 {
		markAgain(all, p.Revisions)
	}
	for i := range all {
		if i == 0 {
			all[i].First = true
		} else {
			all[i].Changed = changed(all[i-1], all[i])
		}
		by, at := p.by(all, i)
		all[i].By = by
		if all[i].Again && all[i].latest && by != ByUnknown {
			all[i].Started = &at
		}
	}
	return all
}

// turnsOf makes a turn of each number of a revision.
func turnsOf(r lineage.Past) []turn {
	numbers := append(slices.Sorted(slices.Values(r.Earlier)), r.Number)
	all := make([]turn, len(numbers))
	for i, number := range numbers {
		t := turn{template: r.Template, shown: kube.ShownIn(r.Template), Revision: Revision{Number: number, Name: r.Name, Again: i > 0}}
		t.Images, t.Inputs = imagesOf(r.Template), map[string]string{}
		for id, mark := range t.shown {
			t.Inputs[id.String()] = mark.Digest
		}
		if i == 0 {
			t.Started = &r.Created
		}
		if i == len(numbers)-1 {
			t.Current, t.Pods, t.latest = r.Current, r.Pods, r.Latest
		}
		all[i] = t
	}
	return all
}

// markAgain finds revisions that were used again, for kinds that don't record it: they are
// older than one with a lower number. Times have a resolution of a second; for two equal
// ones, a gap in the numbers shows that one of them got a new number. It isn't known when
// the last turn of such a revision began.
func markAgain(all []turn, revisions []lineage.Past) {
	gap := hasGap(all)
	for i := range all {
		t := &all[i]
		if t.Started == nil {
			continue
		}
		t.Again = t.Again || slices.ContainsFunc(revisions, func(r lineage.Past) bool {
			later := r.Created.After(*t.Started) || gap && r.Created.Equal(*t.Started)
			return r.Number < t.Number && len(r.Earlier) == 0 && later
		})
		if t.Again {
			t.Started = nil
		}
	}
}

// hasGap reports whether a number is missing between those of the turns.
func hasGap(all []turn) bool {
	for i := 1; i < len(all); i++ {
		if all[i].Number > all[i-1].Number+1 {
			return true
		}
	}
	return false
}

func imagesOf(template *corev1.PodTemplateSpec) map[string]string {
	images := map[string]string{}
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		images[c.Name] = c.Image
	}
	return images
}

// changed is the difference between two turns.
func changed(before, after turn) []Change {
	list := changedImages(before, after)
	for _, id := range bothIn(before.shown, after.shown, func(a, b input.ID) int { return strings.Compare(a.String(), b.String()) }) {
		from, to := before.shown[id].Digest, after.shown[id].Digest
		if from != to && id.Kind != input.KindImage {
			list = append(list, Change{What: id.String(), From: from, To: to})
		}
	}
	if from, to := before.template.Annotations[restartedAt], after.template.Annotations[restartedAt]; from != to {
		list = append(list, Change{What: "restart (" + restartedAt + ")"})
	}
	if !apiequality.Semantic.DeepEqual(remainder(before.template), remainder(after.template)) {
		list = append(list, Change{What: otherFields})
	}
	return list
}

func changedImages(before, after turn) []Change {
	var list []Change
	for _, name := range bothIn(before.Images, after.Images, strings.Compare) {
		if from, to := before.Images[name], after.Images[name]; from != to {
			list = append(list, Change{What: input.Image(name).String(), From: from, To: to})
		}
	}
	return list
}

// bothIn are the keys of both maps, in order.
func bothIn[K comparable, V any](a, b map[K]V, order func(K, K) int) []K {
	keys := sorting.Keys(a, order)
	for key := range b {
		if _, known := a[key]; !known {
			keys = append(keys, key)
		}
	}
	sorting.By(keys, order)
	return keys
}

// remainder is a template without the parts that are reported separately, and without
// those that its controller adds.
func remainder(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	rest := template.DeepCopy()
	for _, label := range kube.RevisionHashLabels() {
		delete(rest.Labels, label)
	}
	delete(rest.Annotations, settings.Inputs)
	delete(rest.Annotations, restartedAt)
	for _, containers := range [][]corev1.Container{rest.Spec.InitContainers, rest.Spec.Containers} {
		for i := range containers {
			containers[i].Image = ""
			containers[i].Env = slices.DeleteFunc(containers[i].Env, func(v corev1.EnvVar) bool { return v.Name == settings.InputsVariable })
		}
	}
	rest.CreationTimestamp = metav1.Time{}
	return rest
}

// by returns whose change began a turn, and when that author last wrote the workload. Only Lockstep
// changes a template's marks, but a revision that any writer makes current again brings its own marks
// along, and so does a restored backup. The managed fields prove who wrote the workload's present
// marks, but describe only the present template, so they say nothing of earlier turns.
func (p *Past) by(all []turn, i int) (string, time.Time) {
	t := all[i]
	ours := i > 0 && !maps.Equal(t.shown, all[i-1].shown) && len(t.shown) > 0
	switch {
	case ours && !t.Again && !t.latest:
		return oneOf(ByLockstep, explains(all[i-1], t)), p.Workload.RolledOutAt
	case !t.latest:
		return ByUnknown, time.Time{}
	case ours && !p.Workload.RolledOutAt.IsZero():
		return oneOf(ByLockstep, explains(all[i-1], t)), p.Workload.RolledOutAt
	}
	author, known := p.author(all, i)
	if known && author.Manager == kube.FieldManager {
		return ByLockstep, author.At
	}
	return oneOf(author.Manager, known), author.At
}

func oneOf(author string, known bool) string {
	if !known {
		return ByUnknown
	}
	return author
}

// explains reports whether Lockstep's write of the marks explains everything that changed. Otherwise
// two writers changed the template before its controller created a revision.
func explains(before, after turn) bool {
	return !slices.ContainsFunc(after.Changed, func(c Change) bool {
		id, err := input.ParseID(c.What)
		return err != nil || before.shown[id] == after.shown[id]
	})
}

// author is the only manager that changed the present template since the turn before, if that is
// certain.
func (p *Past) author(all []turn, i int) (kube.Author, bool) {
	t := all[i]
	var before *corev1.PodTemplateSpec
	switch {
	case i > 0:
		before = all[i-1].template
	case t.Number != 1:
		return kube.Author{}, false // the turn before it isn't kept
	}
	found := p.Authors.Between(before, t.template)
	isRecreated := t.Started != nil && p.Workload.Created.After(*t.Started) // its managed fields began anew
	isUnowned := !t.Again && kube.Removes(before, t.template)               // an undo restores the whole template at once
	if len(found) != 1 || isRecreated || isUnowned {
		return kube.Author{}, false
	}
	author := found[0]
	isBefore := i > 0 && all[i-1].Started != nil && author.At.Before(*all[i-1].Started)
	isAfter := t.Started == nil || author.At.After(*t.Started)
	return author, !isBefore && (!author.Applied || !isAfter)
}
