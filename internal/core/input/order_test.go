package input_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

func TestOrderText(t *testing.T) {
	t.Parallel()
	app := input.Finding{ID: input.ConfigMap("app"), Live: true, Standing: input.Due, Versions: input.Versions{Shows: input.Tracked("2")}}
	gone := input.Finding{ID: input.Secret("db"), Live: true}
	web := input.Finding{ID: input.Image("web"), Standing: input.Due, Versions: input.Versions{Shows: input.Mark{Digest: "sha256:2", Pinned: true}}}
	pinned := web // by a person: the template does not have what exists, and is not due
	pinned.Standing = input.Settled
	set := web
	set.Image = "app:1@sha256:2"
	before := input.Shown{app.ID: input.Tracked("1"), web.ID: {Digest: "sha256:1", Pinned: true}}
	cases := map[string]struct {
		reason string
		order  input.Order
		before input.Shown
		want   string
	}{
		"Everything": {"all that is due", input.Order{All: []input.Finding{app, web}, Due: []input.Finding{app, web}}, before, "configmap/app~2,image/web=sha256:2"},
		"Missing":    {"what does not exist is not shown", input.Order{All: []input.Finding{app, gone}, Due: []input.Finding{app}}, before, "configmap/app~2"},
		"NotMoved":   {"an image that is due and not moved stays", input.Order{All: []input.Finding{app, web}, Due: []input.Finding{app}}, before, "configmap/app~2,image/web=sha256:1"},
		"Settled":    {"so does one that is neither", input.Order{All: []input.Finding{app, pinned}, Due: []input.Finding{app}}, before, "configmap/app~2,image/web=sha256:1"},
		"SetsImage":  {"an image that is set changes the template by itself", input.Order{All: []input.Finding{set}, Due: []input.Finding{set}}, input.Shown{web.ID: web.Shows}, "image/web=sha256:2"},
		"NeverMoved": {"one that the template does not show yet stays so", input.Order{All: []input.Finding{app, web}, Due: []input.Finding{app}}, nil, "configmap/app~2"},
		"LiveLoaded": {"a source is loaded by every pod that starts, moved or not", input.Order{All: []input.Finding{app, web}, Due: []input.Finding{web}}, before, "configmap/app~2,image/web=sha256:2"},
		"OtherKind":  {"what a program shows whose family is not here stays", input.Order{All: []input.Finding{app}, Due: []input.Finding{app}, Kinds: []input.Kind{input.KindConfigMap}}, before, "configmap/app~2,image/web=sha256:1"},
		"Dropped":    {"a source that is no longer followed does not", input.Order{All: []input.Finding{app}, Due: []input.Finding{app}, Kinds: []input.Kind{input.KindConfigMap, input.KindSecret}}, input.Shown{input.Secret("db"): input.Tracked("1")}, "configmap/app~2"},
		"Again":      {"a template that shows this already has to change all the same", input.Order{All: []input.Finding{app}, Due: []input.Finding{app}}, input.Shown{app.ID: input.Tracked("2")}, "configmap/app~2,again:7"},
		"Aborted":    {"pods of the revision that shows this may have loaded something else since", input.Order{All: []input.Finding{app}, Due: []input.Finding{app}, Aborted: true}, before, "configmap/app~2,again:7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.order.Text(tc.before, "7"); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
