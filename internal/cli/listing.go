package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// listing shows the progress of a long list of tags on a terminal, on one line that is cleared
// at the end.
type listing struct {
	out   io.Writer // nil without a terminal
	pages int
}

func newListing(out io.Writer) *listing {
	file, isFile := commandline.Raw(out).(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return &listing{}
	}
	return &listing{out: file}
}

// page records one page. A single page isn't a long list yet.
func (l *listing) page(repository string, tags int) {
	l.pages++
	if l.out != nil && l.pages > 1 {
		fmt.Fprintf(l.out, "\r\x1b[K%s: %d tags so far", commandline.OneLine(repository), tags)
	}
}

func (l *listing) end() {
	if l.out != nil && l.pages > 1 {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
