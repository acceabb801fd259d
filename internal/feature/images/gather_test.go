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
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

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
			i := New(Options{
				Watch:       func(imagewatch.Question, func()) Watch { return &said{digest: found.Digest} },
				Credentials: func(*kube.Workload) (keychain.Source, string) { return nil, "" },
				Platforms:   func(*kube.Workload) ([]v1.Platform, bool) { return nil, true },
				Now:         func() time.Time { return now },
			})
			w := &kube.Workload{PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1.2@" + digest("1")}}}}
			intent := settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: image}}}
			before := versionOf(pin("", "1"))
			e := record.Entry{Inputs: map[input.ID]record.Delivered{web: {Version: before, Memo: Memo{Request: requestSum("app:1.2", "")}.String()}}}
			got, err := i.Assess(t.Context(), w, intent, e, func(context.Context) (timeline.Past, error) { return tc.past, nil })
			if err != nil || len(got.Findings) != 1 || got.Findings[0].Reason != tc.want {
				t.Errorf("it says %+v, error %v; want %s", got.Findings, err, tc.want)
			}
		})
	}
}
