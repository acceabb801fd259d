package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// listing shows on a terminal how far a long list of tags is, on one line that is gone
// in the end.
type listing struct {
	out   io.Writer // nil if there is no terminal
	pages int
}

func newListing(out io.Writer) *listing {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return &listing{}
	}
	return &listing{out: out}
}

// page notes one page. The first one is no long list yet.
func (l *listing) page(repository string, tags int) {
	l.pages++
	if l.out != nil && l.pages > 1 {
		fmt.Fprintf(l.out, "\r\x1b[K%s: %d tags so far", repository, tags)
	}
}

func (l *listing) end() {
	if l.out != nil && l.pages > 1 {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
