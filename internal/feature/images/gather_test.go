package images

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// answering are options with a registry that always has the same answer.
func answering(found Pin) Options {
	return Options{
		Watch:       func(imagewatch.Question, func()) Watch { return &said{digest: found.Digest} },
		Credentials: func(*kube.Workload) (keychain.Source, string) { return nil, "" },
		Platforms:   func(*kube.Workload) ([]v1.Platform, bool) { return nil, true },
		Now:         func() time.Time { return now },
	}
}

// TestMovedDuringDowntime: the first answer after a start differs from what is on record. The
// past tells whether the digest was given and undone meanwhile; without the permission to it the
// digest is due, and no other input of the workload has to wait.
func TestMovedDuringDowntime(t *testing.T) {
	t.Parallel()
	web, found := input.Image("web"), pin("1.2", "2")
	shows := []timeline.Revision{{Created: now, Shown: input.Shown{web: markOf(found)}.Marks()}}
	for name, tc := range map[string]struct {
		past timeline.Past
		want input.Reason
	}{
		"Given":      {timeline.Past{Asked: true, Revisions: shows}, input.DeliveredBefore},
		"NeverGiven": {timeline.Past{Asked: true}, input.Changed},
		"NoRight":    {timeline.Past{Asked: true, Refused: errors.New("forbidden")}, input.Changed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image, err := tagspec.ParseImage("app:1.2")
			if err != nil {
				t.Fatal(err)
			}
			i := New(answering(found))
			w := &kube.Workload{PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1.2@" + digest("1")}}}}
			intent := settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: image}}}
			before := versionOf(pin("", "1"))
			e := record.Entry{Inputs: map[input.ID]record.Delivered{web: {Version: before, Memo: Memo{Request: requestSum("app:1.2", "")}.String()}}}
			got, err := i.Assess(t.Context(), w, intent, e, func(context.Context, timeline.Evidence) (timeline.Past, error) { return tc.past, nil })
			if err != nil || len(got.Findings) != 1 || got.Findings[0].Reason != tc.want {
				t.Errorf("it says %+v, error %v; want %s", got.Findings, err, tc.want)
			}
		})
	}
}

// TestTrialOfALargeStatefulSet: a rollout of more than ten minutes fails when it doesn't
// progress. Restoring the healthy image is about the change that failed.
func TestTrialOfALargeStatefulSet(t *testing.T) {
	t.Parallel()
	image, err := tagspec.ParseImage("app:1.2")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		progressed time.Duration
		want       input.Reason
		recheck    time.Duration
		change     input.Change
	}{
		"Progressing": {4 * time.Minute, input.InStep, 6 * time.Minute, input.Change{Namespace: "shop", ID: input.Image("docker.io/library/app"), Version: "2222222222"}},
		"Stalled":     {10 * time.Minute, input.PutBack, 0, input.Change{Namespace: "shop", ID: input.Image("docker.io/library/app"), Version: "2222222222"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &kube.Workload{
				Identity:        kube.Identity{Key: kube.Key{Namespace: "shop", Name: "db"}},
				PodTemplate:     kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1.2@" + digest("2")}}},
				TemplateObject:  kube.TemplateObject{RolledOutAt: now.Add(-40 * time.Minute)},
				WorkloadHistory: kube.WorkloadHistory{ProgressedAt: now.Add(-tc.progressed)},
				Status: kube.Progress{Status: health.Status{
					Observed: true, Counted: true, Deadline: 10 * time.Minute, Counts: health.Counts{Wanted: 9, Existing: 9, Updated: 6, Available: 8},
				}},
			}
			e := record.Entry{Inputs: map[input.ID]record.Delivered{input.Image("web"): {
				Version: versionOf(pin("", "2")), Trial: w.Template().Sum, Memo: Memo{Request: requestSum("app:1.2", ""), Healthy: pin("1.2", "1")}.String(),
			}}}
			all, err := New(answering(pin("1.2", "2"))).Assess(t.Context(), w, settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: image}}}, e, nil)
			if err != nil || len(all.Findings) != 1 {
				t.Fatalf("%+v, error %v", all, err)
			}
			if got := all.Findings[0]; got.Reason != tc.want || got.Change != tc.change || all.Recheck != tc.recheck || !all.AwaitsStatus {
				t.Errorf("%s with the change %+v, again in %s; want %s with %+v in %s", got.Reason, got.Change, all.Recheck, tc.want, tc.change, tc.recheck)
			}
		})
	}
}

// TestChange: a digest is one change in a namespace, or in all that share the repository,
// whichever way the repository is written.
func TestChange(t *testing.T) {
	t.Parallel()
	app := input.Image("docker.io/library/app")
	for name, tc := range map[string]struct {
		reason, written string
		shared          input.ID
		found           Pin
		want            input.Change
	}{
		"Namespace": {"of its namespace", "app:1.2", input.ID{}, pin("1.2", "2"), input.Change{Namespace: "shop", ID: app, Version: "2222222222"}},
		"InFull":    {"the same repository", "docker.io/library/app:1.2", input.ID{}, pin("1.2", "2"), input.Change{Namespace: "shop", ID: app, Version: "2222222222"}},
		"Shared":    {"of all namespaces", "app:1.2", app, pin("1.2", "2"), input.Change{ID: app, Version: "2222222222"}},
		"NotShared": {"another repository is", "app:1.2", input.Image("docker.io/library/other"), pin("1.2", "2"), input.Change{Namespace: "shop", ID: app, Version: "2222222222"}},
		"NoAnswer":  {"it stays what the template has", "app:1.2", input.ID{}, Pin{}, input.Change{Namespace: "shop", ID: app, Version: "1111111111"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image, err := tagspec.ParseImage(tc.written)
			if err != nil {
				t.Fatal(err)
			}
			o := answering(tc.found)
			o.Shared = func(id input.ID) bool { return id == tc.shared }
			w := &kube.Workload{Identity: kube.Identity{Key: kube.Key{Namespace: "shop"}}, PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1.2@" + digest("1")}}}}
			all, err := New(o).Assess(t.Context(), w, settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: image}}}, record.Entry{}, nil)
			if err != nil || len(all.Findings) != 1 || all.Findings[0].Change != tc.want {
				t.Errorf("%s: %+v, error %v; want %+v", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}
