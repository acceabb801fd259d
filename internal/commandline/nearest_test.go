package commandline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, word string
		candidates   []string
		want         []string
	}{
		"Missing":      {"a letter is missing", "controler", []string{"attach", "controller", "roll"}, []string{"controller"}},
		"Swapped":      {"two letters changed places", "quite", []string{"kind", "quiet"}, []string{"quiet"}},
		"SwappedShort": {"also in a short word", "wbe", []string{"db", "web"}, []string{"web"}},
		"Closest":      {"what needs fewer changes hides the rest", "weba", []string{"web", "webbed"}, []string{"web"}},
		"Begun":        {"the beginning of a name", "check", []string{"checkout-7", "web"}, []string{"checkout-7"}},
		"Case":         {"capitals are no mistake", "WEB", []string{"web"}, []string{"web"}},
		"Short":        {"of three letters at least two must be right", "web", []string{"db", "wab"}, []string{"wab"}},
		"Many":         {"a hint is short", "web", []string{"web-1", "web-2", "web-3", "web-4"}, []string{"web-1", "web-2", "web-3"}},
		"Far":          {"nothing is near", "ingress", []string{"web", "api"}, nil},
		"Nothing":      {"no word, no hint", "", []string{"web"}, nil},
		"NoChoice":     {"no candidates", "web", nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, commandline.Nearest(tc.word, tc.candidates)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	if got := commandline.Hint("quite", "--", []string{"quiet", "kind"}); got != "; did you mean --quiet?" {
		t.Errorf("one name: %q", got)
	}
	if got := commandline.Hint("wab", "deployment/", []string{"web", "wag"}); got != "; did you mean deployment/web or deployment/wag?" {
		t.Errorf("two names: %q", got)
	}
	if got := commandline.Hint("ingress", "", []string{"web"}); got != "" {
		t.Errorf("no name: %q", got)
	}
}
