package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestPlacesAgreeWithTheReference: what is read where is what the reference says.
func TestPlacesAgreeWithTheReference(t *testing.T) {
	t.Parallel()
	on := func(place string, label, written bool) []string {
		var keys []string
		for _, r := range settings.References() {
			if _, about := settings.ImageContainer(r.Key); about || (r.Accepted == "written by Lockstep") != written {
				continue
			}
			if strings.Contains(r.On, place) && strings.Contains(r.On, "(label)") == label {
				keys = append(keys, r.Key)
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	for name, c := range map[string]struct{ got, want []string }{
		"workload":  {settings.ForWorkloads(), on("workload", false, false)},
		"namespace": {settings.ForNamespaces(), on("namespace", false, false)},
		"source":    {settings.ForSources(), on("ConfigMap", false, false)},
		"labels":    {settings.LabelsForSources(), on("ConfigMap", true, false)},
		"written":   {settings.Written(), slices.Concat(on("", false, true), on("", true, true))},
	} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-reference +code):\n%s", name, diff)
		}
	}
}

func TestIsOurs(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		settings.Reload: true, "lockstep.dev/relod": true, settings.ImagePrefix + "web": true, settings.PlatformPrefix + "web": true,
		"lockstep.devel/reload": false, "example.com/lockstep.dev/": false,
	} {
		if settings.IsOurs(key) != want {
			t.Errorf("%s is ours: %t", key, !want)
		}
	}
}
