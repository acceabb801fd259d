package stakater_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		items []string
		want  string
	}{
		"none":                             {nil, ""},
		"one empty item":                   {[]string{""}, ""},
		"equal":                            {[]string{"a=1"}, "a=1"},
		"equal, twice":                     {[]string{"a==1"}, "a==1"},
		"not equal":                        {[]string{"a!=1"}, "a!=1"},
		"all of them":                      {[]string{"a=1", "b=2"}, "a=1,b=2"},
		"exists":                           {[]string{"a"}, "a"},
		"doesn't exist":                    {[]string{"!a"}, "!a"},
		"a set":                            {[]string{"a in (1,2)"}, "a in (1,2)"},
		"a set that the list cut":          {[]string{"a in (1", "2)", "b"}, "a in (1,2),b"},
		"not in a set":                     {[]string{"a notin (1)"}, "a notin (1)"},
		"colon":                            {[]string{"a:1"}, "a=1"},
		"colon and star":                   {[]string{"a:*"}, "a"},
		"equals and star":                  {[]string{"a=*"}, "a"},
		"a colon and a prefix":             {[]string{"example.com/a:1", "b:*"}, "b,example.com/a=1"},
		"an empty value":                   {[]string{"a="}, "a="},
		"D27: several in one item":         {[]string{"a=1,b=2"}, "a=1,b=2"},
		"D27: several with colons":         {[]string{"a:1,b:2"}, "a=1,b"},
		"D27: several with stars":          {[]string{"a=*,b=*"}, "error"},
		"D27: several with colon and star": {[]string{"a:*,b:*"}, "error"},
		"a star elsewhere":                 {[]string{"a=b*"}, "error"},
		"not equal to a star":              {[]string{"a!=*"}, "error"},
		"an empty item beside another":     {[]string{"a", ""}, "error"},
		"no key":                           {[]string{"=1"}, "error"},
		"a colon alone":                    {[]string{":"}, "error"},
		"an open set":                      {[]string{"a in (1"}, "error"},
		"a key that isn't one":             {[]string{"a b"}, "error"},
		"a value that isn't one":           {[]string{"a=ü"}, "error"},
	} {
		got, err := stakater.Selector(tc.items)
		switch {
		case tc.want == "error":
			if err == nil {
				t.Errorf("%s: %q is read as %s", name, tc.items, got)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.String() != tc.want:
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func FuzzSelector(f *testing.F) {
	for _, item := range []string{"a:1", "a:*", "a=*", "a in (1", "!a", "a:1,b:2", ":"} {
		f.Add(item, "2)")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		selector, err := stakater.Selector([]string{one, two})
		if err != nil {
			return
		}
		if _, err := labels.Parse(selector.String()); err != nil {
			t.Errorf("%q and %q: %v", one, two, err)
		}
	})
}
