package ask

import (
	"cmp"
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
	// created is when the turn's revision was created, in this turn or in an earlier one.
	created time.Time
	// latest is true for the turn of the workload's template.
	latest bool
}

// turns are the turns of all revisions, oldest first, each with its changes.
func (p *Past) turns() []turn {
	var all []turn
	for _, r := range p.Revisions {
		all = append(all, p.turnsOf(r)...)
	}
	sorting.By(all, func(a, b turn) int {
		if a.Number != b.Number {
			return int(a.Number - b.Number)
		}
		return strings.Compare(a.Name, b.Name)
	})
	if len(p.Workload.Kind.RevisionNumbers) == 0 {
		markAgain(all)
	}
	for i := range all {
		if i == 0 {
			all[i].First = true
		} else {
			all[i].Changed = changed(all[i-1], all[i])
		}
		all[i].By = ByUnknown
		if author, known := p.author(all, i); known {
			all[i].By = author.Manager
			if author.Manager == kube.FieldManager {
				// Lockstep writes a workload only to roll it out. Other managers also write other fields,
				// and the managed fields only show the time of the last write.
				all[i].By, all[i].Started = ByLockstep, cmp.Or(all[i].Started, &author.At)
			}
		}
		if !all[i].latest && beganByLockstep(all, i) {
			all[i].By = ByLockstep
		}
	}
	return all
}

// turnsOf makes a turn of each number of a revision. The revision was created in the first one, if all its
// numbers are known.
func (p *Past) turnsOf(r lineage.Past) []turn {
	complete := len(p.Workload.Kind.RevisionNumbers) > 0 || r.UsedOnce
	numbers := append(slices.Sorted(slices.Values(r.Earlier)), r.Number)
	all := make([]turn, len(numbers))
	for i, number := range numbers {
		t := turn{template: r.Template, shown: kube.ShownIn(r.Template), created: r.Created, Revision: Revision{Number: number, Name: r.Name, Again: i > 0}}
		t.Images, t.Inputs = imagesOf(r.Template), map[string]string{}
		for id, mark := range t.shown {
			t.Inputs[id.String()] = mark.Digest
		}
		if i == 0 && complete {
			t.Started = &r.Created
		}
		if i == len(numbers)-1 {
			t.Current, t.Pods, t.latest = r.Current, r.Pods, r.Latest
		}
		all[i] = t
	}
	return all
}

// markAgain finds revisions that were used again, for kinds that don't record it: they are older than one
// with a lower number. Times have a resolution of a second: of two equal ones, the later was used again if a
// number before it is missing, because the revision gave that number up for its present one.
func markAgain(all []turn) {
	for i := range all {
		t := &all[i]
		gap := hasGap(all[:i])
		t.Again = t.Again || slices.ContainsFunc(all[:i], func(other turn) bool {
			return other.created.After(t.created) || gap && other.created.Equal(t.created)
		})
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

// author is the program that began a turn: the one whose writes made the workload's present template out of
// that of the turn before. The managed fields prove it, but they describe only the present template, so
// they say nothing of earlier turns.
func (p *Past) author(all []turn, i int) (kube.Author, bool) {
	t := all[i]
	before, known := templateBefore(all, i)
	if !t.latest || !known || p.Workload.Created.After(t.created) { // The managed fields of a workload that was created again began anew.
		return kube.Author{}, false
	}
	author, proven := p.Authors.Between(before, t.template)
	isBefore := i > 0 && all[i-1].Started != nil && author.At.Before(*all[i-1].Started)
	isAfter := t.Started == nil || author.At.After(*t.Started)
	return author, proven && !isBefore && (!author.Applied || !isAfter)
}

// beganByLockstep reports whether an earlier turn is a rollout by Lockstep alone: its revision was created in it, shows
// digests that no turn before it shows together, and differs only in what Lockstep writes with them. Only Lockstep writes
// digests. Another writer's change carries those of its own turn along, and an undo or a copied manifest brings back those
// of an earlier one.
func beganByLockstep(all []turn, i int) bool {
	t := all[i]
	if _, known := templateBefore(all, i); i == 0 || !known || t.Started == nil {
		return false
	}
	if slices.ContainsFunc(all[:i], func(earlier turn) bool { return maps.Equal(earlier.shown, t.shown) }) {
		return false
	}
	wrote := false
	for _, c := range t.Changed {
		id, err := input.ParseID(c.What)
		switch {
		case err != nil: // A restart, or other fields.
			return false
		case id.Kind == input.KindImage && !isPinned(c.To, t.shown[id]):
			return false
		}
		wrote = wrote || c.To != ""
	}
	return wrote
}

// isPinned reports whether Lockstep chose the image: its mark shows the same digest.
func isPinned(image string, mark input.Mark) bool {
	_, digest, _ := strings.Cut(image, "@")
	return mark.Digest != "" && digest == mark.Digest
}

// templateBefore is the template of the turn right before, nil for the first turn of all. It isn't known if
// a number between the turns is missing, because that turn's revision was deleted.
func templateBefore(all []turn, i int) (*corev1.PodTemplateSpec, bool) {
	if i == 0 {
		return nil, all[i].Number == 1
	}
	return all[i-1].template, all[i].Number == all[i-1].Number+1
}
