package ask_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

func at(minute int) time.Time { return time.Date(2026, 11, 15, 3, minute, 0, 0, time.UTC) }

// template shows inputs and runs an image; edited stands for any other field.
func template(shown, image, edited string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}, ServiceAccountName: edited}}
	t.Annotations = map[string]string{settings.Inputs: shown}
	t.Labels = map[string]string{"pod-template-hash": shown + image + edited}
	return t
}

// Parts of the template that a manager owns.
const (
	image      = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`
	account    = `{"f:spec":{"f:template":{"f:spec":{"f:serviceAccountName":{}}}}}`
	label      = `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:app":{}}}}}}`
	marks      = `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:lockstep.dev/inputs":{}}}}}}`
	everything = `{"f:spec":{"f:template":{}}}`
)

// wrote is an entry of the managed fields.
type wrote struct {
	manager   string
	operation metav1.ManagedFieldsOperationType
	minute    int
	fields    string
}

func writtenBy(all ...wrote) kube.Authors {
	o := &metav1.ObjectMeta{}
	for _, w := range all {
		written := metav1.NewTime(at(w.minute))
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: w.manager, Operation: w.operation, Time: &written, FieldsV1: metav1.NewFieldsV1(w.fields)})
	}
	return kube.AuthorsOf(kube.Deployment(), o)
}

func workload(kind kube.Kind, movedAt time.Time) *kube.Workload {
	return &kube.Workload{
		Identity:       kube.Identity{Kind: kind, Key: kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: "web"}},
		TemplateObject: kube.TemplateObject{RolledOutAt: movedAt}, Selector: &metav1.LabelSelector{},
	}
}

func created(w *kube.Workload, minute int) *kube.Workload {
	w.Created = at(minute)
	return w
}

func revision(name string, number int64, created int, t *corev1.PodTemplateSpec, earlier ...int64) lineage.Past {
	return lineage.Past{Name: name, Number: number, Earlier: earlier, Created: at(created), Template: t}
}

// once is a ControllerRevision that had no other number.
func once(r lineage.Past) lineage.Past {
	r.UsedOnce = true
	return r
}

func current(r lineage.Past) lineage.Past {
	r.Current, r.Latest = true, true
	return r
}

// notMade is a current revision of another template than the workload's.
func notMade(r lineage.Past) lineage.Past {
	r.Latest = false
	return r
}

// turn is a revision of the answer in one line: what changed, and by whom.
type turn struct {
	Number  int64
	Started int // minute, -1 when it is not known
	Flags   string
	Changed []ask.Change
	By      string
}

func turns(h ask.History) []turn {
	list := make([]turn, len(h.Revisions))
	for i, r := range h.Revisions {
		list[i] = turn{Number: r.Number, Started: -1, Changed: r.Changed, By: r.By}
		if r.Started != nil {
			list[i].Started = r.Started.Minute()
		}
		for flag, is := range map[string]bool{"current": r.Current, "again": r.Again && !r.Current, "current again": r.Again && r.Current, "first": r.First && !r.Current} {
			if is && len(flag) > len(list[i].Flags) {
				list[i].Flags = flag
			}
		}
	}
	return list
}

func TestHistoryOf(t *testing.T) {
	t.Parallel()
	one, two := template("", "app:1", ""), template("configmap/app~2222222222", "app:1", "")
	change := func(from, to string) ask.Change { return ask.Change{What: "configmap/app", From: from, To: to} }
	kubectl := writtenBy(wrote{"kubectl-rollout", metav1.ManagedFieldsOperationUpdate, 9, everything})
	lockstep := func(minute int) kube.Authors {
		return writtenBy(wrote{kube.FieldManager, metav1.ManagedFieldsOperationUpdate, minute, marks})
	}
	pinned := writtenBy(wrote{kube.FieldManager, metav1.ManagedFieldsOperationUpdate, 2, `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:lockstep.dev/inputs":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`})
	deployment, set := kube.Deployment(), kube.StatefulSet()
	cases := map[string]struct {
		reason string
		past   ask.Past
		want   []turn
	}{
		"Lockstep": {
			"Lockstep owns the versions that the template shows",
			ask.Past{Workload: workload(deployment, at(2)), Authors: lockstep(2), Revisions: []lineage.Past{current(revision("b", 2, 2, two)), revision("a", 1, 1, one)}},
			[]turn{{2, 2, "current", []ask.Change{change("", "2222222222")}, ask.ByLockstep}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"Image": {
			"an image that another writer changed",
			ask.Past{Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 5, image}), Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))}},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, "helm"}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"PinnedImage": {
			"an image that Lockstep pinned is one change, not two",
			ask.Past{Workload: workload(deployment, at(2)), Authors: pinned, Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("image/app=sha256:77", "app:1@sha256:77", "")))}},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:1@sha256:77"}}, ask.ByLockstep}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"OtherFields": {
			"what has no name of its own, and is not current: nothing tells who wrote it",
			ask.Past{Workload: workload(deployment, at(3)), Authors: lockstep(3), Revisions: []lineage.Past{revision("a", 1, 1, one), revision("b", 2, 2, template("", "app:1", "edited")), current(revision("c", 3, 3, template("configmap/app~2222222222", "app:1", "edited")))}},
			[]turn{
				{3, 3, "current", []ask.Change{change("", "2222222222")}, ask.ByLockstep},
				{2, 2, "", []ask.Change{{What: "other fields of the template"}}, ask.ByUnknown},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"Undo": {
			"a ReplicaSet that is used again has a turn for each number; its own inputs came along with it, and its author may have written something else since",
			ask.Past{Workload: workload(deployment, time.Time{}), Authors: kubectl, Revisions: []lineage.Past{current(revision("a", 3, 1, template("configmap/app~1111111111", "app:1", ""), 1)), revision("b", 2, 2, two)}},
			[]turn{
				{3, -1, "current again", []ask.Change{change("2222222222", "1111111111")}, "kubectl-rollout"},
				{2, 2, "", []ask.Change{change("1111111111", "2222222222")}, ask.ByLockstep},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"WentBack": {
			"content that goes back uses its ReplicaSet again, and Lockstep wrote that: it writes a workload only to roll it out",
			ask.Past{Workload: workload(deployment, at(7)), Authors: lockstep(7), Revisions: []lineage.Past{current(revision("a", 3, 1, template("configmap/app~1111111111", "app:1", ""), 1)), revision("b", 2, 2, two)}},
			[]turn{
				{3, 7, "current again", []ask.Change{change("2222222222", "1111111111")}, ask.ByLockstep},
				{2, 2, "", []ask.Change{change("1111111111", "2222222222")}, ask.ByLockstep},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"ControllerRevision": {
			"one that is used again has only its last number, and is older than the one before",
			ask.Past{Workload: workload(set, time.Time{}), Authors: kubectl, Revisions: []lineage.Past{current(revision("a", 3, 1, one)), revision("b", 2, 2, two)}},
			[]turn{{3, -1, "current again", []ask.Change{change("2222222222", "")}, "kubectl-rollout"}, {2, -1, "first", nil, ask.ByUnknown}},
		},
		"Both": {
			"Lockstep's marks and another writer's fields in one revision: the controller saw both at once",
			ask.Past{Workload: workload(deployment, at(2)), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 2, image}, wrote{"helm-hook", metav1.ManagedFieldsOperationUpdate, 2, account}, wrote{kube.FieldManager, metav1.ManagedFieldsOperationUpdate, 2, marks}), Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("configmap/app~2222222222", "app:2", "edited")))}},
			[]turn{
				{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}, change("", "2222222222"), {What: "other fields of the template"}}, ask.ByUnknown},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"PinnedAgain": {
			"another writer took the pinned image away, and Lockstep pins it again: its marks stay the same",
			ask.Past{
				Workload: workload(deployment, at(1)), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 2, label}, wrote{kube.FieldManager, metav1.ManagedFieldsOperationUpdate, 3, image}),
				Revisions: []lineage.Past{revision("a", 2, 2, template("image/app=sha256:77", "app:1", "")), current(revision("b", 3, 3, template("image/app=sha256:77", "app:1@sha256:77", "")))},
			},
			[]turn{{3, 3, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:1@sha256:77"}}, ask.ByLockstep}, {2, 2, "first", nil, ask.ByUnknown}},
		},
		"OtherFieldOnly": {
			"a manager of another field of the template isn't the author, even if it wrote later",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl-set", metav1.ManagedFieldsOperationUpdate, 2, image}, wrote{"helm", metav1.ManagedFieldsOperationUpdate, 5, label}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, "kubectl-set"}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"Recreated": {
			"the object is younger than the revision, and so are its managed fields",
			ask.Past{
				Workload: created(workload(deployment, time.Time{}), 4), Authors: writtenBy(wrote{"kubectl-create", metav1.ManagedFieldsOperationUpdate, 4, everything}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"MarksOfAnother": {
			"another writer owns the marks: a backup, or a tenant",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl-replace", metav1.ManagedFieldsOperationUpdate, 2, everything}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, two))},
			},
			[]turn{{2, 2, "current", []ask.Change{change("", "2222222222")}, "kubectl-replace"}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"RemovedToo": {
			"one writer changed the image, and the one who removed the account isn't known",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl-set", metav1.ManagedFieldsOperationUpdate, 2, image}),
				Revisions: []lineage.Past{revision("a", 1, 1, template("", "app:1", "edited")), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}, {What: "other fields of the template"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"TwoCandidates": {
			"two managers own changed fields",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl-set", metav1.ManagedFieldsOperationUpdate, 2, image}, wrote{"kubectl-edit", metav1.ManagedFieldsOperationUpdate, 2, account}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "edited")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}, {What: "other fields of the template"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"Older": {
			"the last write was before the previous revision: the one that began this one removed fields",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 1, image}),
				Revisions: []lineage.Past{revision("a", 1, 2, one), current(revision("b", 2, 3, template("", "app:2", "")))},
			},
			[]turn{{2, 3, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, 2, "first", nil, ask.ByUnknown}},
		},
		"AppliedLater": {
			"a server-side apply can take over a field without changing it",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"flux", metav1.ManagedFieldsOperationApply, 3, image}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"Oldest": {
			"nothing is known of the revision before the first that is kept",
			ask.Past{Workload: workload(deployment, time.Time{}), Authors: kubectl, Revisions: []lineage.Past{current(revision("b", 7, 9, one))}},
			[]turn{{7, 9, "current", nil, ask.ByUnknown}},
		},
		"Created": {
			"the only manager of the first template created it",
			ask.Past{Workload: workload(deployment, time.Time{}), Authors: kubectl, Revisions: []lineage.Past{current(revision("a", 1, 9, one))}},
			[]turn{{1, 9, "current", nil, "kubectl-rollout"}},
		},
		"SameSecond": {
			"two of one second: the number that is missing tells",
			ask.Past{Workload: workload(set, time.Time{}), Authors: kubectl, Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 4, 2, two)), revision("c", 3, 2, one)}},
			[]turn{{4, -1, "current again", []ask.Change{change("", "2222222222")}, "kubectl-rollout"}, {3, -1, "", nil, ask.ByUnknown}, {1, -1, "first", nil, ask.ByUnknown}},
		},
		"UndoOfAPair": {
			"a StatefulSet's revisions were used again, and kept only their last numbers: nothing tells who made 4, and when; 5 was used once",
			ask.Past{
				Workload: workload(set, at(3)), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 9, image}),
				Revisions: []lineage.Past{revision("a", 3, 1, template("configmap/app~1111111111", "app:1", "")), revision("b", 4, 2, two), once(current(revision("c", 5, 9, template("configmap/app~2222222222", "app:3", ""))))},
			},
			[]turn{
				{5, 9, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:3"}}, "helm"},
				{4, -1, "", []ask.Change{change("1111111111", "2222222222")}, ask.ByUnknown},
				{3, -1, "first", nil, ask.ByUnknown},
			},
		},
		"UsedOnce": {
			"ControllerRevisions that weren't written since they were created",
			ask.Past{Workload: workload(set, at(2)), Authors: lockstep(2), Revisions: []lineage.Past{once(revision("a", 1, 1, one)), once(current(revision("b", 2, 2, two)))}},
			[]turn{{2, 2, "current", []ask.Change{change("", "2222222222")}, ask.ByLockstep}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"NotMade": {
			"helm wrote another template, and its controller hasn't made a revision of it: the current one isn't helm's",
			ask.Past{
				Workload: workload(set, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 3, image}),
				Revisions: []lineage.Past{once(revision("a", 1, 1, one)), notMade(once(current(revision("b", 2, 2, template("", "app:2", "")))))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"Ancient": {
			"the API server named the manager",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"ancient-changes", metav1.ManagedFieldsOperationUpdate, 2, image}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, 2, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, 1, "first", nil, ask.ByUnknown}},
		},
		"PredecessorDeleted": {
			"kubectl-set changed the image in revision 4, which was deleted; another writer began 5",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl-set", metav1.ManagedFieldsOperationUpdate, 4, image}),
				Revisions: []lineage.Past{revision("a", 3, 1, one), current(revision("b", 5, 5, template("", "app:2", "")))},
			},
			[]turn{{5, 5, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {3, 1, "first", nil, ask.ByUnknown}},
		},
		"RestoredMarks": {
			"an earlier revision shows new versions, which only Lockstep writes",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 3, image}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), revision("b", 2, 2, two), current(revision("c", 3, 3, template("configmap/app~2222222222", "app:2", "")))},
			},
			[]turn{
				{3, 3, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, "helm"},
				{2, 2, "", []ask.Change{change("", "2222222222")}, ask.ByLockstep},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"OneWentBack": {
			"the content of one source went back, and the other one is as it was: no turn before shows both",
			ask.Past{Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 50, image}), Revisions: []lineage.Past{
				revision("a", 1, 1, template("configmap/app~1111111111,secret/db~1111111111", "app:1", "")),
				revision("b", 2, 2, template("configmap/app~2222222222,secret/db~1111111111", "app:1", "")),
				revision("c", 3, 3, template("configmap/app~2222222222,secret/db~2222222222", "app:1", "")),
				revision("d", 4, 4, template("configmap/app~1111111111,secret/db~2222222222", "app:1", "")),
				current(revision("e", 5, 50, template("configmap/app~1111111111,secret/db~2222222222", "app:2", ""))),
			}},
			[]turn{
				{5, 50, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, "helm"},
				{4, 4, "", []ask.Change{change("2222222222", "1111111111")}, ask.ByLockstep},
				{3, 3, "", []ask.Change{{What: "secret/db", From: "1111111111", To: "2222222222"}}, ask.ByLockstep},
				{2, 2, "", []ask.Change{change("1111111111", "2222222222")}, ask.ByLockstep},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"RolledBackLongAgo": {
			"helm rolled back, and later wrote the number of replicas: nothing tells when the revision became current again",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"helm", metav1.ManagedFieldsOperationUpdate, 50, `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`}),
				Revisions: []lineage.Past{current(revision("a", 3, 1, one, 1)), revision("b", 2, 2, template("", "app:2", ""))},
			},
			[]turn{
				{3, -1, "current again", []ask.Change{{What: "image/app", From: "app:2", To: "app:1"}}, "helm"},
				{2, 2, "", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"UndoRemoves": {
			"an undo that removes a field: a writer of a paused workload may have removed it apart",
			ask.Past{
				Workload: workload(deployment, time.Time{}), Authors: writtenBy(wrote{"kubectl", metav1.ManagedFieldsOperationUpdate, 5, image}),
				Revisions: []lineage.Past{current(revision("a", 3, 1, one, 1)), revision("b", 2, 2, template("", "app:2", "edited"))},
			},
			[]turn{
				{3, -1, "current again", []ask.Change{{What: "image/app", From: "app:2", To: "app:1"}, {What: "other fields of the template"}}, ask.ByUnknown},
				{2, 2, "", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}, {What: "other fields of the template"}}, ask.ByUnknown},
				{1, 1, "first", nil, ask.ByUnknown},
			},
		},
		"AdoptedSet": {
			"a StatefulSet that was created again adopted its revision",
			ask.Past{
				Workload: created(workload(set, time.Time{}), 4), Authors: writtenBy(wrote{"kubectl-create", metav1.ManagedFieldsOperationUpdate, 4, everything}),
				Revisions: []lineage.Past{revision("a", 1, 1, one), current(revision("b", 2, 2, template("", "app:2", "")))},
			},
			[]turn{{2, -1, "current", []ask.Change{{What: "image/app", From: "app:1", To: "app:2"}}, ask.ByUnknown}, {1, -1, "first", nil, ask.ByUnknown}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, turns(ask.HistoryOf(tc.past))); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHistoryOfEarlierRollouts: new digests, and nothing else, prove that Lockstep rolled out an earlier revision.
func TestHistoryOfEarlierRollouts(t *testing.T) {
	t.Parallel()
	const one, two, three = "configmap/app~1111111111", "configmap/app~2222222222", "configmap/app~3333333333"
	plain := func(shown string) *corev1.PodTemplateSpec { return template(shown, "app:1", "") }
	restarted := plain(two)
	restarted.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-11-15T03:02:00Z"
	byVariable := func(shown string) *corev1.PodTemplateSpec {
		p := plain("")
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: settings.InputsVariable, Value: shown}}
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		kind   kube.Kind
		// revisions are the earlier ones; the newest is made by another writer.
		revisions []lineage.Past
		want      string // the author of the last of them
	}{
		"First":     {"the first digest of the workload", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain("")), revision("b", 2, 2, plain(one))}, ask.ByLockstep},
		"Next":      {"another digest", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, plain(two))}, ask.ByLockstep},
		"OneOfTwo":  {"one digest is new, the other is an old one again", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one+",secret/db~1111111111")), revision("b", 2, 2, plain(two+",secret/db~1111111111")), revision("c", 3, 3, plain(one+",secret/db~4444444444"))}, ask.ByLockstep},
		"Variable":  {"in the environment of a container", kube.Deployment(), []lineage.Past{revision("a", 1, 1, byVariable(one)), revision("b", 2, 2, byVariable(two))}, ask.ByLockstep},
		"SetOnce":   {"a ControllerRevision that had no other number", kube.StatefulSet(), []lineage.Past{once(revision("a", 1, 1, plain(one))), once(revision("b", 2, 2, plain(two)))}, ask.ByLockstep},
		"Pinned":    {"an image, with the mark of its digest", kube.Deployment(), []lineage.Past{revision("a", 1, 1, template("image/app=sha256:77", "app:1@sha256:77", "")), revision("b", 2, 2, template("image/app=sha256:88", "app:2@sha256:88", ""))}, ask.ByLockstep},
		"Carried":   {"another writer's change carries the digests along", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, template(one, "app:2", ""))}, ask.ByUnknown},
		"Copied":    {"a manifest brings back the digest of an earlier revision", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, plain(two)), revision("c", 3, 3, plain(three)), revision("d", 4, 4, plain(one))}, ask.ByUnknown},
		"Used":      {"an undo uses the revision again", kube.Deployment(), []lineage.Past{revision("b", 2, 2, plain(two)), revision("a", 3, 1, plain(one), 1)}, ask.ByUnknown},
		"SetUsed":   {"a ControllerRevision may have had another number, with a digest that no revision shows now", kube.StatefulSet(), []lineage.Past{once(revision("a", 2, 1, plain(one))), revision("b", 3, 2, plain(two))}, ask.ByUnknown},
		"Removed":   {"digests disappear when another writer replaces the template", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, plain(""))}, ask.ByUnknown},
		"Both":      {"another writer's field is in the same revision", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, template(two, "app:1", "edited"))}, ask.ByUnknown},
		"Image":     {"another writer's image is in the same revision", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, template(two, "app:2", ""))}, ask.ByUnknown},
		"OtherPin":  {"another writer's pin is in the same revision", kube.Deployment(), []lineage.Past{revision("a", 1, 1, template(one+",image/app=sha256:77", "app:1@sha256:77", "")), revision("b", 2, 2, template(two+",image/app=sha256:77", "app:1@sha256:88", ""))}, ask.ByUnknown},
		"Restarted": {"a restart is in the same revision", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("b", 2, 2, restarted)}, ask.ByUnknown},
		"Gap":       {"the revision before was deleted, and may have shown the digest", kube.Deployment(), []lineage.Past{revision("a", 1, 1, plain(one)), revision("c", 3, 3, plain(two))}, ask.ByUnknown},
		"Oldest":    {"there is nothing to compare with", kube.Deployment(), []lineage.Past{revision("b", 2, 2, plain(two))}, ask.ByUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := tc.revisions[len(tc.revisions)-1]
			next := current(revision("newest", last.Number+1, 9, template("", "app:9", "")))
			h := ask.HistoryOf(ask.Past{Workload: workload(tc.kind, time.Time{}), Revisions: append(tc.revisions, next)})
			if got := h.Revisions[1]; got.Name != last.Name || got.By != tc.want {
				t.Errorf("%s: revision %s is by %q, want %s by %q", tc.reason, got.Name, got.By, last.Name, tc.want)
			}
		})
	}
}

func TestHistoryNotes(t *testing.T) {
	t.Parallel()
	cron := workload(kube.CronJob(), time.Time{})
	h := ask.HistoryOf(ask.Past{Workload: cron, Unread: []string{"events cannot be read"}})
	if diff := cmp.Diff([]string{"events cannot be read", "a CronJob doesn't keep revisions: each Job is created from the template at that time"}, h.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	h = ask.HistoryOf(ask.Past{Workload: workload(kube.Deployment(), time.Time{}), Events: []announce.Reported{{At: at(1), Reason: "Held", Note: "not rolled out", By: "lockstep"}}})
	if diff := cmp.Diff([]string{"it doesn't have a revision yet"}, h.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]ask.Event{{At: at(1), Reason: "Held", Note: "not rolled out", By: "lockstep"}}, h.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
