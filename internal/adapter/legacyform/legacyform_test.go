package legacyform

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
)

func TestValue(t *testing.T) {
	t.Parallel()
	current := fingerprint.Version{Basis: "1:*", Sum: "0123456789abcdef"}
	for name, tc := range map[string]struct {
		reason, shown, want string
	}{
		"New":       {"the plain digest, as the original wrote it", "", "da39"},
		"Other":     {"another content was shown", "10cf", "da39"},
		"SameSum":   {"the SHA-1 does not see the change", "da39", "da39-0123456789"},
		"OldStrong": {"neither did it see the one before", "da39-9876543210", "da39-0123456789"},
		"Reverted":  {"the template was reverted to where it showed this", "da39-0123456789", "da39"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := value("da39", current, tc.shown); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestVariables: the first container that has the variable gets it, and
// new ones go to the front of the first container.
func TestVariables(t *testing.T) {
	t.Parallel()
	w := &kube.Workload{
		TemplateObject: kube.TemplateObject{Target: kube.Target{Kind: kube.Deployment(), UID: "u", ResourceVersion: "7"}},
		PodTemplate: kube.PodTemplate{Containers: []kube.Container{
			{Name: "first"},
			{Name: "second", EnvCount: 2, Markers: map[string]kube.Marker{"_RELOADER_SECRET_A": {Index: 1, Value: "old"}}},
			{Name: "third", EnvCount: 1, Markers: map[string]kube.Marker{"_RELOADER_SECRET_A": {Index: 0, Value: "old"}}},
		}},
	}
	content := fingerprint.Hasher{}.Content(map[string]string{"key": "value"}, nil)
	sources := map[input.ID]*kube.Source{
		input.ConfigMap("a"): {Content: content, Legacy: "1"}, input.Secret("a"): {Content: content, Legacy: "2"}, input.Secret("b"): {Content: content, Legacy: "3"},
	}
	form := Form{Source: func(_ string, id input.ID) (*kube.Source, bool) {
		s, ok := sources[id]
		return s, ok
	}}
	current := content.Version(fingerprint.AllKeys())
	due := []input.Finding{{ID: input.ConfigMap("a"), Versions: input.Versions{Current: current}}, {ID: input.Secret("a"), Versions: input.Versions{Current: current}}, {ID: input.Secret("b"), Versions: input.Versions{Current: current}}}
	changes, err := form.Variables(w, input.Order{All: due, Due: due})
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Template(w.PatchTarget(), changes)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"replace","path":"/metadata/uid","value":"u"},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
		`{"op":"replace","path":"/spec/template/spec/containers/1/env/1","value":{"name":"_RELOADER_SECRET_A","value":"2"}},` +
		`{"op":"add","path":"/spec/template/spec/containers/0/env","value":[]},` +
		`{"op":"add","path":"/spec/template/spec/containers/0/env/0","value":{"name":"_RELOADER_CONFIGMAP_A","value":"1"}},` +
		`{"op":"add","path":"/spec/template/spec/containers/0/env/0","value":{"name":"_RELOADER_SECRET_B","value":"3"}}]`
	if diff := cmp.Diff(want, string(got.Body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The ConfigMap is written again between the decision and the patch.
	sources[input.ConfigMap("a")].Content = fingerprint.Hasher{}.Content(map[string]string{"key": "other"}, nil)
	if changes, err := form.Variables(w, input.Order{All: due, Due: due}); !apierrors.IsConflict(err) {
		t.Errorf("a stale decision gives %v, %v; want a conflict", changes, err)
	}
}
