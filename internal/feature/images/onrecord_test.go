package images

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// TestRecorded: without a registry, the record shows how an image stands.
func TestRecorded(t *testing.T) {
	t.Parallel()
	web := input.Image("web")
	image, err := tagspec.ParseImage("app:1.*")
	if err != nil {
		t.Fatal(err)
	}
	requested := Memo{Request: requestSum("app:1.*", "")}
	delivered := func(memo Memo, due string) map[input.ID]record.Delivered {
		return map[input.ID]record.Delivered{web: {Version: versionOf(pin("", "1")), Due: due, Memo: memo.String()}}
	}
	two := strings.Repeat("2", 10)
	failed := Memo{Request: requested.Request, Healthy: pin("1.2", "2"), Bad: []string{badName(digest("1"))}}
	for name, tc := range map[string]struct {
		reason   string
		inputs   map[input.ID]record.Delivered
		release  int64
		standing input.Standing
		want     input.Reason
		bar      input.Reason
	}{
		"InStep":      {"nothing is due on record", delivered(requested, ""), 0, input.Settled, input.InStep, ""},
		"Due":         {"a digest is due on record", delivered(requested, two), 0, input.Due, input.Changed, ""},
		"PutBack":     {"the delivered digest failed, and the due one was healthy", delivered(failed, two), 0, input.Due, input.PutBack, ""},
		"Quarantined": {"the due digest failed", delivered(Memo{Request: requested.Request, Bad: []string{badName(digest("2"))}}, two), 0, input.Due, input.Changed, input.Quarantined},
		"Contested":   {"another writer keeps restoring the image", delivered(Memo{Request: requested.Request, Contested: true}, two), 0, input.Due, input.Changed, input.Contested},
		"Released":    {"a user allows it again", delivered(Memo{Request: requested.Request, Contested: true}, two), 1, input.Due, input.Changed, ""},
		"New":         {"only the registry knows", nil, 0, input.Settled, input.Unreadable, ""},
		"Other":       {"the annotation has changed since", delivered(Memo{Request: "other"}, two), 0, input.Settled, input.Unreadable, ""},
	} {
		w := &kube.Workload{PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1.2"}}}}
		intent := settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: image}, {Container: "gone", Image: image}}, Release: tc.release}
		got, err := Recorded{}.Assess(t.Context(), w, intent, record.Entry{Inputs: tc.inputs}, nil)
		if err != nil || len(got.Findings) != 1 {
			t.Fatalf("%s: %s: %+v, %v", name, tc.reason, got, err)
		}
		f := got.Findings[0]
		bar := input.Reason("")
		if len(f.Bars) > 0 {
			bar = f.Bars[0].Reason
		}
		if f.Standing != tc.standing || f.Reason != tc.want || bar != tc.bar {
			t.Errorf("%s: %s: %+v", name, tc.reason, f)
		}
		if f.Standing == input.Due && (f.Current.Short() != two || f.Change.Version != two) {
			t.Errorf("%s: the due version is %+v of %+v", name, f.Current, f.Change)
		}
	}
}
