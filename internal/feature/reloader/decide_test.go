package reloader

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const (
	oldHash = "b562efabccd7294ac948a0f73739b543e0c829f9"
	newHash = "f83e99e324ba68ccc373a58ef1eb42f8ab88646a"
)

// follower references ConfigMap app and Secret db, and follows everything.
func follower(change ...func(*observation)) observation {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	o := observation{
		Workload: stakater.Workload{
			Annotations: map[string]string{"reloader.stakater.com/auto": "true"},
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("app")}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("db")}},
				}}}},
			},
		},
		uid: "web", kind: "Deployment", name: "web", namespace: "shop", now: start.Add(time.Minute), created: start.Add(-time.Hour),
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

// of is a change of ConfigMap app a minute ago.
func of(edit ...func(*change)) *change {
	c := &change{
		Source: stakater.Source{Type: stakater.ConfigMap, Name: "app"}, event: updated, hash: newHash, before: oldHash,
		strong: sha256.Sum256([]byte("new")), version: "7", written: start, dataWrittenAt: start, first: start, last: start,
		has: map[types.UID]bool{}, failed: map[types.UID]string{},
	}
	for _, f := range edit {
		f(c)
	}
	return c
}

func shows(hash string) func(*observation) {
	return func(o *observation) {
		o.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "STAKATER_APP_CONFIGMAP", Value: hash}}
	}
}

func annotated(hash string) func(*observation) {
	return func(o *observation) {
		o.Template.Annotations[stakater.LastReloadedFrom] = stakater.Reloaded{Type: stakater.ConfigMap, Name: "app", Namespace: "shop", Hash: hash}.Text()
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	secret := func(c *change) { c.Source = stakater.Source{Type: stakater.Secret, Name: "db"} }
	at := func(seconds int) func(*change) {
		return func(c *change) { c.last = start.Add(time.Minute + time.Duration(seconds)*time.Second) }
	}
	since := func(seconds int) func(*change) {
		return func(c *change) { c.first = start.Add(time.Minute + time.Duration(seconds)*time.Second) }
	}
	deletes := func(c *change) { c.event, c.hash = deleted, stakater.DeletedHash }
	natively := func(o *observation) {
		o.shown, o.nativeAt = input.ParseShown("configmap/app~3fa9c1d2e4"), start.Add(10*time.Second)
	}
	cases := map[string]struct {
		reason   string
		strategy Strategy
		on       observation
		changes  []*change
		due      []string
		unseen   bool
		wait     time.Duration
		shown    int
		native   int
	}{
		"Due":           {reason: "the template shows nothing yet", on: follower(), changes: []*change{of()}, due: []string{"app"}},
		"Older":         {reason: "it shows the version of before", on: follower(shows(oldHash)), changes: []*change{of()}, due: []string{"app"}},
		"Shown":         {reason: "another writer, or a process that crashed, was faster", on: follower(shows(newHash)), changes: []*change{of()}, shown: 1},
		"Undone":        {reason: "an undo restored the hash before the content came back, so the pods have loaded another one", on: follower(shows(newHash), func(o *observation) { o.templateAt = start.Add(-time.Second) }), changes: []*change{of()}, due: []string{"app"}, unseen: true},
		"ShownSince":    {reason: "the template was written after the change", on: follower(shows(newHash), func(o *observation) { o.templateAt = start }), changes: []*change{of()}, shown: 1},
		"SameHash":      {reason: "contents can share a hash, and then it proves nothing", on: follower(shows(newHash)), changes: []*change{of(func(c *change) { c.before = newHash })}, due: []string{"app"}, unseen: true},
		"Both":          {reason: "one write for both", on: follower(), changes: []*change{of(), of(secret)}, due: []string{"app", "db"}},
		"Quiet":         {reason: "the last change is a second old", on: follower(), changes: []*change{of(at(-1), since(-1))}, due: []string{"app"}, wait: 4 * time.Second},
		"Together":      {reason: "one that is quiet waits for one that isn't", on: follower(), changes: []*change{of(since(-6), at(-6)), of(secret, at(-1), since(-1))}, due: []string{"app", "db"}, wait: 4 * time.Second},
		"Restless":      {reason: "continuous changes don't delay it for longer than the maximum", on: follower(), changes: []*change{of(at(0), since(-59))}, due: []string{"app"}, wait: time.Second},
		"Late":          {reason: "and then it is reloaded in the middle of them", on: follower(), changes: []*change{of(at(0), since(-60))}, due: []string{"app"}},
		"Has":           {reason: "this process has delivered it", on: follower(), changes: []*change{of(func(c *change) { c.has["web"] = true })}},
		"Owed":          {reason: "only those on record lack it", on: follower(), changes: []*change{of(func(c *change) { c.only = map[string]bool{"Deployment/web": true} })}, due: []string{"app"}},
		"OwedKind":      {reason: "its kind couldn't be listed", on: follower(), changes: []*change{of(func(c *change) { c.only = map[string]bool{"Deployment/*": true} })}, due: []string{"app"}},
		"NotOwed":       {reason: "and this is none of them", on: follower(), changes: []*change{of(func(c *change) { c.only = map[string]bool{"Deployment/api": true} })}},
		"Younger":       {reason: "its pods were started with the new content", on: follower(func(o *observation) { o.created = start.Add(time.Second) }), changes: []*change{of()}},
		"Recreated":     {reason: "its pods may be orphans of its predecessor", on: follower(shows(oldHash), func(o *observation) { o.created = start.Add(time.Second) }), changes: []*change{of()}, due: []string{"app"}},
		"SameSecond":    {reason: "a second is too coarse to tell", on: follower(func(o *observation) { o.created = start }), changes: []*change{of()}, due: []string{"app"}},
		"WrittenUnsure": {reason: "nobody knows when the source got its content", on: follower(func(o *observation) { o.created = start.Add(time.Second) }), changes: []*change{of(func(c *change) { c.written = time.Time{} })}, due: []string{"app"}},
		"Left":          {reason: "whatever changes", on: follower(func(o *observation) { o.left = "it is suspended" }), changes: []*change{of()}},
		"Unrelated":     {reason: "it doesn't reference the source", on: follower(), changes: []*change{of(func(c *change) { c.Name = "other" })}},
		"Ignored":       {reason: "the source says so", on: follower(), changes: []*change{of(func(c *change) { c.Ignore = true })}},

		"DeletedShown":   {reason: "the variable goes", on: follower(shows(oldHash)), changes: []*change{of(deletes)}, due: []string{"app"}},
		"DeletedUnshown": {reason: "there is no variable to remove", on: follower(), changes: []*change{of(deletes)}, shown: 1},
		"DeletedRun":     {reason: "a CronJob keeps no variable", on: follower(shows(oldHash), func(o *observation) { o.manner = byRun }), changes: []*change{of(deletes)}, shown: 1},
		"Created":        {reason: "it is like an update", on: follower(shows(oldHash)), changes: []*change{of(func(c *change) { c.event, c.before = added, "" })}, due: []string{"app"}},
		"CreatedAgain":   {reason: "with the content that the template shows", on: follower(shows(newHash)), changes: []*change{of(func(c *change) { c.event, c.before = added, "" })}, shown: 1},

		"Annotation":        {reason: "no annotation yet", strategy: Annotations, on: follower(), changes: []*change{of()}, due: []string{"app"}},
		"AnnotationShown":   {reason: "the annotation shows it", strategy: Annotations, on: follower(annotated(newHash)), changes: []*change{of()}, shown: 1},
		"AnnotationOlder":   {reason: "it shows the version of before", strategy: Annotations, on: follower(annotated(oldHash)), changes: []*change{of()}, due: []string{"app"}},
		"AnnotationUndone":  {reason: "an undo restores the annotation too", strategy: Annotations, on: follower(annotated(newHash), func(o *observation) { o.templateAt = start.Add(-time.Second) }), changes: []*change{of()}, due: []string{"app"}, unseen: true},
		"AnnotationOther":   {reason: "it shows another source", strategy: Annotations, on: follower(annotated(newHash)), changes: []*change{of(secret)}, due: []string{"db"}},
		"AnnotationDeleted": {reason: "a delete is shown too", strategy: Annotations, on: follower(), changes: []*change{of(deletes)}, due: []string{"app"}},

		"NativeSince":  {reason: "Lockstep's controller has rolled it out since the change", on: follower(natively), changes: []*change{of()}, native: 1},
		"NativeBefore": {reason: "it has rolled it out for an earlier version", on: follower(natively, func(o *observation) { o.nativeAt = start.Add(-time.Second) }), changes: []*change{of()}, due: []string{"app"}},
		"NativeAtOnce": {reason: "it has rolled it out in the second of the change", on: follower(natively, func(o *observation) { o.nativeAt = start }), changes: []*change{of()}, native: 1},
		"NativeOther":  {reason: "it has rolled it out for another source", on: follower(natively), changes: []*change{of(secret)}, due: []string{"db"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rules{words: stakater.Words{Keys: stakater.DefaultKeys()}, strategy: tc.strategy, quiet: 5 * time.Second, maxDelay: time.Minute}
			if r.strategy == "" {
				r.strategy = EnvVars
			}
			tc.on.changes = tc.changes
			d := r.decide(tc.on)
			var names []string
			unseen := false
			for _, each := range d.due {
				names, unseen = append(names, each.Name), unseen || each.unseen
			}
			if diff := cmp.Diff(tc.due, names); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if d.wait != tc.wait || unseen != tc.unseen || len(d.shows) != tc.shown || len(d.native) != tc.native {
				t.Errorf("%s: waits %s, want %s; unseen %t, want %t; %d shown, want %d; %d native, want %d",
					tc.reason, d.wait, tc.wait, unseen, tc.unseen, len(d.shows), tc.shown, len(d.native), tc.native)
			}
		})
	}
}
