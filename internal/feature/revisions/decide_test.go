package revisions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

func replicaSet(name string, uses ...input.ID) *lineage.Holder {
	return &lineage.Holder{
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, Namespace: "shop",
		Name: name, UID: "uid-" + name, ControllerUID: "uid-web", Uses: uses,
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const grace = 10 * time.Minute
	old := func(in revisions.Observation) revisions.Observation {
		in.Created = now.Add(-time.Hour)
		return in
	}
	ref := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID("uid-" + name)}
	}
	a, b := ref("a"), ref("b")
	cronJob := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "uid-nightly"}
	cases := map[string]struct {
		reason string
		in     revisions.Observation
		want   revisions.Decision
	}{
		"new revision": {
			reason: "the revision that uses it becomes its owner",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}},
			want:   revisions.Decision{Verb: revisions.Attach, Reason: input.Attached, Message: "to ReplicaSet/a", Owners: []metav1.OwnerReference{ref("a")}},
		},
		"shared": {
			reason: "only the owner that is missing is added; the others stay by themselves",
			in:     revisions.Observation{Owners: []string{"uid-a"}, Users: []metav1.OwnerReference{a, b}},
			want:   revisions.Decision{Verb: revisions.Attach, Reason: input.Attached, Message: "to ReplicaSet/b", Owners: []metav1.OwnerReference{ref("b")}},
		},
		"foreign owner": {
			reason: "somebody else's owner does not stand for a revision",
			in:     revisions.Observation{Owners: []string{"uid-operator"}, Users: []metav1.OwnerReference{a}},
			want:   revisions.Decision{Verb: revisions.Attach, Reason: input.Attached, Message: "to ReplicaSet/a", Owners: []metav1.OwnerReference{ref("a")}},
		},
		"in step": {
			reason: "nothing is written twice",
			in:     revisions.Observation{Owners: []string{"uid-b", "uid-a"}, Users: []metav1.OwnerReference{a, b}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"},
		},
		"observe": {
			reason: "observe mode writes nothing",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}, Observe: true},
			want:   revisions.Decision{Verb: revisions.Observe, Reason: input.WouldAttach, Message: "to ReplicaSet/a", Recheck: time.Minute, Owners: []metav1.OwnerReference{ref("a")}},
		},
		"stopped": {
			reason: "an operator stopped every automatic change, whoever asks for it",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}, Stopped: true, StoppedBy: "incident 42"},
			want:   revisions.Decision{Verb: revisions.Wait, Reason: input.Stopped, Message: "not attached to ReplicaSet/a: stopped by an operator (\"incident 42\")", Recheck: time.Minute, Owners: []metav1.OwnerReference{ref("a")}},
		},
		"stopped with nothing to attach": {
			reason: "nothing waits for the operator",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}, Owners: []string{"uid-a"}, Stopped: true},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"},
		},
		"being deleted": {
			reason: "an owner would not stop the deletion",
			in:     revisions.Observation{Deleting: true, Users: []metav1.OwnerReference{a}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.AlreadyAttached, Message: "it is being deleted"},
		},
		"owned without use": {
			reason: "its owners are somebody's decision, and the garbage collector follows them",
			in:     revisions.Observation{Owners: []string{"uid-operator"}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.OwnedWithoutUse, Message: "no revision uses it; Kubernetes deletes it with its owners"},
		},
		"young": {
			reason: "the revision follows the object",
			in:     revisions.Observation{Created: now.Add(-4 * time.Minute)},
			want:   revisions.Decision{Verb: revisions.Wait, Reason: input.AwaitingRevision, Message: "no revision uses it yet", Recheck: 6 * time.Minute},
		},
		"unreferenced": {
			reason: "nothing is attached by guess",
			in:     revisions.Observation{},
			want:   revisions.Decision{Verb: revisions.Report, Reason: input.Unreferenced, Message: "no revision uses it and nothing owns it; delete it if you don't need it"},
		},
		"a revision too large to know": {
			reason: "it may use the object, and would lose it when the known user goes",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}, TooLarge: []metav1.OwnerReference{ref("x"), ref("y")}},
			want:   revisions.Decision{Verb: revisions.Report, Reason: input.TooManySources, Recheck: time.Minute, Message: "not attached, because ReplicaSet/x and 1 more may use it too: its pod template uses more than 256 ConfigMaps and Secrets, or their names take more than 16 KiB; let it use fewer"},
		},
		"attached beside a revision too large to know": {
			reason: "there is nothing to add, and the object goes with the user that is known",
			in:     revisions.Observation{Owners: []string{"uid-a"}, Users: []metav1.OwnerReference{a}, TooLarge: []metav1.OwnerReference{ref("x")}},
			want:   revisions.Decision{Verb: revisions.Report, Reason: input.TooManySources, Recheck: time.Minute, Message: "Kubernetes deletes it with its owners, and ReplicaSet/x may use it too: its pod template uses more than 256 ConfigMaps and Secrets, or their names take more than 16 KiB; let it use fewer"},
		},
		"owned by a revision too large to know": {
			reason: "it was attached by hand, or before it was too large",
			in:     revisions.Observation{Owners: []string{"uid-a", "uid-x"}, Users: []metav1.OwnerReference{a}, TooLarge: []metav1.OwnerReference{ref("x")}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"},
		},
		"unreadable": {
			reason: "without the permission to read Jobs nobody can say that none uses it",
			in:     revisions.Observation{UnreadableKinds: []string{"Job"}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.Unreadable, Recheck: time.Minute, Message: "no revision that can be read uses it, and these kinds cannot be read: Job"},
		},
		"user out of sight": {
			reason: "it may be gone by now, and with an owner that is gone the object goes",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a}, UnreadableKinds: []string{"ReplicaSet"}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.Unreadable, Recheck: time.Minute, Message: "it was used by ReplicaSet/a when that could last be read; these kinds cannot be read: ReplicaSet"},
		},
		"one user in sight": {
			reason: "one that is seen to live keeps the object, whatever became of the other",
			in:     revisions.Observation{Users: []metav1.OwnerReference{a, cronJob}, UnreadableKinds: []string{"ReplicaSet"}},
			want:   revisions.Decision{Verb: revisions.Attach, Reason: input.Attached, Message: "to CronJob/nightly", Owners: []metav1.OwnerReference{cronJob}},
		},
		"owned by a user out of sight": {
			reason: "there is nothing to add",
			in:     revisions.Observation{Owners: []string{"uid-a"}, Users: []metav1.OwnerReference{a}, UnreadableKinds: []string{"ReplicaSet"}},
			want:   revisions.Decision{Verb: revisions.Leave, Reason: input.AlreadyAttached, Message: "owned by every revision that uses it"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.in.Now, c.in.Grace = now, grace
			if c.in.Created.IsZero() {
				c.in = old(c.in)
			}
			if diff := cmp.Diff(c.want, revisions.Decide(c.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	object := input.ConfigMap("app-1")
	user, bystander := replicaSet("user", object), replicaSet("bystander")
	workload := kube.Key{Namespace: "shop", Name: "web"}
	workload.Kind = "Rollout"
	cases := map[string]struct {
		reason string
		in     lineage.History
		want   revisions.Verdict
	}{
		"not observed": {
			reason: "the status may be that of the version before",
			in:     lineage.History{Current: user, Holders: []*lineage.Holder{user}},
			want:   revisions.Verdict{Reason: input.GenerationNotObserved, Message: "the controller of rollout/web in namespace shop has not acted on its newest version"},
		},
		"no revision": {
			reason: "a hash can be published before its ReplicaSet exists",
			in:     lineage.History{Progress: kube.Progress{Status: health.Status{Observed: true}}, Holders: []*lineage.Holder{user}},
			want:   revisions.Verdict{Reason: input.RevisionMissing, Message: "the newest version of rollout/web in namespace shop does not have a revision yet"},
		},
		"paused": {
			reason: "the person who paused it should read why nothing happens",
			in:     lineage.History{Progress: kube.Progress{Status: health.Status{Observed: true, Paused: true}}},
			want:   revisions.Verdict{Reason: input.RevisionMissing, Message: "the newest version of rollout/web in namespace shop does not have a revision yet (it is paused)"},
		},
		"not referenced": {
			reason: "an older user does not stand for the newest revision",
			in:     lineage.History{Progress: kube.Progress{Status: health.Status{Observed: true}}, Current: bystander, Holders: []*lineage.Holder{bystander, user}},
			want: revisions.Verdict{Reason: input.NotReferenced, Message: "the pod template of ReplicaSet/bystander, the newest revision of rollout/web in namespace shop, " +
				"does not reference configmap/app-1"},
		},
		"ready": {
			reason: "every living revision that names it becomes an owner, no other",
			in:     lineage.History{Progress: kube.Progress{Status: health.Status{Observed: true}}, Current: user, Holders: []*lineage.Holder{bystander, user, replicaSet("older", object)}},
			want:   revisions.Verdict{Reason: input.Attached, Owners: []*lineage.Holder{user, replicaSet("older", object)}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.in.Workload = workload
			if diff := cmp.Diff(c.want, revisions.Judge(c.in, object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestOptionsNameEveryMistake(t *testing.T) {
	t.Parallel()
	if err := revisions.DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
	err := revisions.Options{Workers: 0, Grace: -1}.Validate()
	want := "workers for revisions 0: must be at least 1\ngrace for unreferenced objects -1ns: must not be negative"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
