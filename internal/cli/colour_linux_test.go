package cli

import "testing"

// TestColoursOfATerminal: it gets them, unless its user or the terminal refuses.
func TestColoursOfATerminal(t *testing.T) {
	t.Parallel()
	_, program := terminal(t)
	cases := map[string]struct {
		reason    string
		variables map[string]string
		want      bool
	}{
		"Terminal": {"a person looks", map[string]string{"TERM": "xterm"}, true},
		"NoColor":  {"and wants none", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"Empty":    {"an empty variable refuses nothing", map[string]string{"NO_COLOR": ""}, true},
		"Dumb":     {"the terminal has none", map[string]string{"TERM": "dumb"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := usesColour(Environment{Stdout: program, Lookup: variables(tc.variables)}); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}
