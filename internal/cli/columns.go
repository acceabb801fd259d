package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// columns are a table for users, each as wide as it needs to be.
type columns struct{ table *tabwriter.Writer }

func newColumns(to io.Writer) columns {
	return columns{tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)}
}

func (t columns) row(cells ...string) error {
	for i, cell := range cells {
		cells[i] = commandline.OneLine(cell)
	}
	_, err := fmt.Fprintln(t.table, strings.Join(cells, "\t"))
	return err
}

// end writes the table.
func (t columns) end() error { return t.table.Flush() }

// say writes a line for users, whatever its arguments contain.
func say(to io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(to, commandline.OneLine(fmt.Sprintf(format, args...)))
	return err
}
