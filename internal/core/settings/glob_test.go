package settings

import (
	"path"
	"strings"
	"testing"
)

// FuzzMatchGlob: our way to match says what path.Match says.
func FuzzMatchGlob(f *testing.F) {
	for _, pattern := range []string{"*", "a*", "*a", "a*b", "*a*", "a**b", "**", "a*b*c", "", "a", "?", "[ab]*", `\*`, "*aab", "a*a"} {
		for _, name := range []string{"", "a", "b", "ab", "aa", "abc", "aab", "aaab", "a.b-c", "axbxc", "abcbc"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Contains(name, "/") || strings.Contains(pattern, "/") {
			return // no name has one, and a pattern ends there
		}
		want, err := path.Match(pattern, name)
		if got := matchGlob(pattern, name); err == nil && got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, name, got, want)
		}
	})
}
