package images

import "testing"

// FuzzParseMemo: what is read of a memo is written and read again without a difference.
func FuzzParseMemo(f *testing.F) {
	for _, seed := range []string{"", "request=3fa9c1d2;again=1700000000,1700000060;contested;accepted;ok=1.4@77ab;bad=77ab,88cd", "again=x,-9223372036854775808", "ok=@", "bad=;bad", ";;=", "ok=a@b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := ParseMemo(text).String()
		if again := ParseMemo(written).String(); again != written {
			t.Errorf("%q is written as %q, and then as %q", text, written, again)
		}
	})
}
