package cli

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/internal/commandline"
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
	file, ok := commandline.Raw(e.Stdout).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// paint writes the lines of a text, each in its colour; empty means none.
func paint(to io.Writer, text []byte, colour func(line int) string) error {
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if err := paintLine(to, bytes.TrimSuffix(line, []byte("\n")), colour(i)); err != nil {
			return err
		}
	}
	return nil
}

// paintLine writes a line. Only the colours are written as they are.
func paintLine(to io.Writer, line []byte, colour string) error {
	end := ""
	if colour != "" {
		end = colourEnd
	}
	_, err := io.WriteString(commandline.Raw(to), colour)
	_, text := to.Write(line)
	_, after := io.WriteString(commandline.Raw(to), end)
	_, newLine := to.Write([]byte("\n"))
	return errors.Join(err, text, after, newLine)
}
