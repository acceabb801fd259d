package settings

import (
	"path"
	"strings"
	"testing"
)

// FuzzMatchStars: of patterns with stars only, we say what path.Match says.
func FuzzMatchStars(f *testing.F) {
	for _, pattern := range []string{"*", "a*", "*a", "a*b", "*a*", "a**b", "**", "a*b*c", "", "a", "*aab", "a*a", "*ab*ab"} {
		for _, name := range []string{"", "a", "b", "ab", "aa", "abc", "aab", "aaab", "a.b-c", "axbxc", "abcbc", "abab"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Contains(name, "/") || strings.ContainsAny(pattern, `/?[\`) {
			return
		}
		want, err := path.Match(pattern, name)
		if got := matchStars(pattern, name); err == nil && got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, name, got, want)
		}
	})
}

// BenchmarkMatchStars matches what is slow to match.
func BenchmarkMatchStars(b *testing.B) {
	pattern, name := "*"+strings.Repeat("a", 120)+"b", strings.Repeat("a", 244)
	for b.Loop() {
		matchStars(pattern, name)
	}
}
