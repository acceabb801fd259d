package fingerprint_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

// TestLegacy holds the sums that the original program printed for these data.
func TestLegacy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		data   map[string]string
		want   string
	}{
		"Empty":         {"no data", nil, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		"TwoKeys":       {"no separator between entries", map[string]string{"a": "1", "b": "2"}, "10cf73d13b980e22c78ecdc13f556962f871d697"},
		"Collision":     {"the same bytes in one entry", map[string]string{"a": "1b=2"}, "10cf73d13b980e22c78ecdc13f556962f871d697"},
		"IndicesFirst":  {"9 before 10 before a", map[string]string{"10": "x", "9": "y", "a": "z"}, "d0f9ca4c10aa54f8ac0846e3bcd49b8221c0c7f5"},
		"LeadingZero":   {"01 is no index", map[string]string{"01": "x", "1": "y"}, "76a5aff34f7cab3f7d38baebf7a351e6594686e6"},
		"LargestIndex":  {"4294967295 is a name", map[string]string{"4294967294": "x", "4294967295": "y", "0": "z"}, "58299d05694a67b2f340129bcaab0d1ac8c38f21"},
		"TrailingBreak": {"bytes as they are", map[string]string{"config.yaml": "k: v\n"}, "7cbcb6291ff60072b5be160026aee3dbe7de569e"},
		"UTF8":          {"not Latin-1", map[string]string{"u": "é"}, "262b75b24005438ceaaef06642c2467d0f193c1c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fingerprint.LegacyConfigMap(tc.data); got != tc.want {
				t.Errorf("LegacyConfigMap(%v) = %s, want %s: %s", tc.data, got, tc.want, tc.reason)
			}
		})
	}
}

func TestLegacySecretHashesBase64(t *testing.T) {
	t.Parallel()
	got := fingerprint.LegacySecret(map[string][]byte{"password": []byte("hunter2")})
	if want := "7479e39901664729aa115c150d08085f712eeb8f"; got != want {
		t.Errorf("LegacySecret = %s, want %s", got, want)
	}
}
