package doctor

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
)

// cluster has two namespaces, one of them of a team.
func cluster() namespaces {
	all := namespaces{}
	for name, set := range map[string]labels.Set{"shop": {"team": "shop"}, "blog": nil} {
		one := all[name]
		one.labels = set
		all[name] = one
	}
	return all
}

func configured(selector string, watched ...string) installation.Configured {
	c := installation.Configured{Watched: watched}
	if selector != "" {
		c.Selector = labels.SelectorFromSet(labels.Set{"team": selector})
	}
	return c
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		named      []string
		controller installation.Configured
		all        namespaces
		want, gone []string
	}{
		"All":      {nil, configured(""), cluster(), []string{""}, nil},
		"Some":     {nil, configured("", "shop", "shpo"), cluster(), []string{"shop"}, []string{"shpo"}},
		"Selected": {nil, configured("shop"), cluster(), []string{"shop"}, nil},
		"None":     {nil, configured("other"), cluster(), nil, nil},
		"Hidden":   {nil, configured("shop"), nil, []string{""}, nil},
		"Named":    {[]string{"blog"}, configured("", "shop"), cluster(), []string{"blog"}, nil},
		"Typo":     {[]string{"shpo"}, configured(""), cluster(), nil, []string{"shpo"}},
		"Unknown":  {[]string{"shpo"}, configured(""), nil, []string{"shpo"}, nil},
	} {
		f := Facts{Hints: Hints{Nearest: func(string, []string) []string { return nil }}}
		if got := f.within(tc.named, tc.controller, tc.all); !slices.Equal(got, tc.want) || !slices.Equal(f.Namespaces.Absent, tc.gone) {
			t.Errorf("%s: %q and absent %q, want %q and %q", name, got, f.Namespaces.Absent, tc.want, tc.gone)
		}
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b installation.Configured
		want bool
	}{
		"All":         {configured(""), configured(""), true},
		"AllAndOne":   {configured(""), configured("", "shop"), true},
		"Same":        {configured("", "shop", "blog"), configured("", "blog"), true},
		"Apart":       {configured("", "shop"), configured("", "blog"), false},
		"Selected":    {configured("shop"), configured("", "shop"), true},
		"NotSelected": {configured("shop"), configured("", "blog"), false},
		"SelectsNone": {configured("other"), configured(""), false},
	} {
		if share(tc.a, tc.b, cluster()) != tc.want || share(tc.b, tc.a, cluster()) != tc.want {
			t.Errorf("%s: want %t", name, tc.want)
		}
	}
}

func TestTakesAll(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]bool{"--auto-reload-all": true, "--auto-reload-all=true": true, "--auto-reload-all=false": false, "--log-format=json": false} {
		if got := takesAll(corev1.Container{Args: []string{argument}}); got != want {
			t.Errorf("%s: %t", argument, got)
		}
	}
}
