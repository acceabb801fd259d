package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// columns are a table for people.
type columns struct{ table *tabwriter.Writer }

func newColumns(out io.Writer) columns {
	return columns{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// row adds a row. What fails is returned when the table is flushed.
func (c columns) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = commandline.OneLine(cell)
	}
	_, _ = fmt.Fprintln(c.table, strings.Join(cells, "\t"))
}
