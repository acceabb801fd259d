package cli

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// The colours of lines that a user should not miss.
const (
	colourWaits = "\x1b[33m" // yellow
	colourStuck = "\x1b[31m" // red
	colourEnd   = "\x1b[0m"
)

// usesColour reports whether the output is a terminal and the user has not disabled colours.
func usesColour(e Environment) bool {
	if value, set := e.Lookup("NO_COLOR"); set && value != "" {
		return false
	}
	if kind, _ := e.Lookup("TERM"); kind == "dumb" {
		return false
	}
	file, ok := e.Stdout.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// paint writes the lines of a text, each in its colour; empty means none.
func paint(to io.Writer, text []byte, colour func(line int) string) error {
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if c := colour(i); c != "" {
			line = bytes.Join([][]byte{[]byte(c), bytes.TrimSuffix(line, []byte("\n")), []byte(colourEnd + "\n")}, nil)
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
	return nil
}
