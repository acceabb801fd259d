package argv_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/core/argv"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		reason, in string
		want       []string
		wantErr    string
	}{
		"words":          {reason: "blanks of any number divide", in: " nginx  -t\t-c x ", want: []string{"nginx", "-t", "-c", "x"}},
		"single quotes":  {reason: "a shell script stays one argument", in: `sh -c 'a "b" \n'`, want: []string{"sh", "-c", `a "b" \n`}},
		"double quotes":  {reason: "an escaped quote is a character", in: `a "b \"c\""`, want: []string{"a", `b "c"`}},
		"empty argument": {reason: "quotes with nothing between are an argument", in: `a ''`, want: []string{"a", ""}},
		"joined":         {reason: "quotes may begin inside a word", in: `--x="a b"c`, want: []string{"--x=a bc"}},
		"no expansion":   {reason: "there is no shell", in: `echo $HOME *`, want: []string{"echo", "$HOME", "*"}},
		"open quote":     {reason: "half a command is a mistake", in: `a 'b`, wantErr: "not closed"},
		"open backslash": {reason: "half a command is a mistake", in: `a \`, wantErr: "not closed"},
		"nothing":        {reason: "nothing cannot be run", in: "  ", wantErr: "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := argv.Split(c.in)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("%s: error %v", c.reason, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", c.reason, err, diff)
			}
		})
	}
}

// A line that is not closed may hold a password, and its error goes to the log.
func TestAnErrorShowsNothingOfTheLine(t *testing.T) {
	for _, line := range []string{
		`http://admin:hunter2@localhost/reload 'x`,
		`http://localhost/ header="Authorization: Bearer hunter2`,
		`curl -u admin:hunter2 \`,
	} {
		_, err := argv.Split(line)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "localhost") {
			t.Errorf("error %v", err)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"//h/reload?a=b&c": "//h/reload?a=b&c", // a plain word stays readable
		"it's":             `'it'\''s'`,
		"a b":              "'a b'",
		`a\b`:              `'a\b'`,
		"":                 "''",
	} {
		if got := argv.Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
		if words, err := argv.Split(argv.Quote(word)); err != nil || len(words) != 1 || words[0] != word {
			t.Errorf("Split(Quote(%q)) = %q, %v", word, words, err)
		}
	}
}

func TestExpand(t *testing.T) {
	got := argv.Expand([]string{"{dir}/x", "{other}", "a{dir}b"}, map[string]string{"dir": "/r"})
	if diff := cmp.Diff([]string{"/r/x", "{other}", "a/rb"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(`a 'b c' "d" \e`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := argv.Split(line)
		if err != nil {
			return
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = argv.Quote(w)
		}
		again, err := argv.Split(strings.Join(quoted, " "))
		if diff := cmp.Diff(words, again); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", line, err, diff)
		}
	})
}
