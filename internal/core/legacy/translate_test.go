package legacy_test

import (
	"maps"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	const refused = " isn't a name that an object can have"
	for name, tc := range map[string]struct {
		own        map[string]string
		want       string
		configMaps string
	}{
		"Nothing": {map[string]string{settings.Reload: "auto"}, "", ""},
		"Both":    {map[string]string{legacy.ConfigMapAnnotation: "a, b,a", legacy.SecretAnnotation: "a"}, "configmap/a, configmap/b, secret/a", ""},
		"NoName":  {map[string]string{legacy.ConfigMapAnnotation: "a,B,c_d"}, "configmap/a", `"B"` + refused + `, "c_d"` + refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := legacy.Words{}.Translate(tc.own)
			wanted, lost := map[string]string{}, map[string]string{}
			if tc.want != "" {
				wanted[settings.Reload] = tc.want
			}
			if tc.configMaps != "" {
				lost[legacy.ConfigMapAnnotation] = tc.configMaps
			}
			if !maps.Equal(wanted, got.Annotations) || !maps.Equal(lost, got.Lost) {
				t.Errorf("%+v, want %v and %v", got, wanted, lost)
			}
		})
	}
}
