package commandline_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

const (
	// hostile is what a tenant or a registry could write: colours and titles of a terminal, a bell,
	// characters that overwrite or turn a line around, hidden ones, and bytes that are no text.
	hostile = "a\x1b[31mred\x1b]0;title\a\r\bb\u009b2Jc\u202edcba\u2066\u200b\x7f\xff\U000e0041\u2028z"
	shown   = "a�[31mred�]0;title���b�2Jc�dcba������z"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"as it is":  {"größer → 名前 🙂", "größer → 名前 🙂"},
		"hostile":   {hostile, shown},
		"more rows": {"a\nb\tc", "a�b�c"},
		"long":      {strings.Repeat("ü", 10_000), strings.Repeat("ü", 1200) + "…"},
		"longest":   {strings.Repeat("x", 1200), strings.Repeat("x", 1200)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := commandline.OneLine(c.text); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestScreen: lines stay lines, and what controls a terminal doesn't, however the text is cut into
// calls.
func TestScreen(t *testing.T) {
	t.Parallel()
	text := "one\n" + hostile + "\ttwo\n" + strings.Repeat("x", 10_000) + "\nend"
	want := "one\n" + shown + "\ttwo\n" + strings.Repeat("x", 5999) + "…\nend"
	for _, size := range []int{1, 2, 7, len(text)} {
		var out bytes.Buffer
		screen := commandline.NewScreen(&out)
		for rest := []byte(text); len(rest) > 0; {
			n, err := screen.Write(rest[:min(size, len(rest))])
			if err != nil || n != min(size, len(rest)) {
				t.Fatalf("%d, %v", n, err)
			}
			rest = rest[n:]
		}
		if got := out.String(); got != want {
			t.Errorf("%d bytes at a time: %q", size, got)
		}
	}
	var out bytes.Buffer
	if commandline.Raw(commandline.NewScreen(&out)) != &out || commandline.Raw(&out) != &out {
		t.Error("the program's own colours have no way out")
	}
}

// TestJSON: programs read what was written, and a terminal isn't controlled by it.
func TestJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	encoder := json.NewEncoder(commandline.JSON(commandline.NewScreen(&out)))
	text := strings.ToValidUTF8(hostile, "") + strings.Repeat("x", 10_000)
	if err := encoder.Encode(text); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
		t.Errorf("%q, %v", back, err)
	}
	if !commandline.IsPlain(out.Bytes()) || !utf8.Valid(out.Bytes()) {
		t.Errorf("%q", out.String())
	}
}
