package commandline

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Columns are a table for users, each as wide as it needs to be.
type Columns struct {
	table *tabwriter.Writer
	err   error
}

// NewColumns begins a table whose columns are gap blanks apart.
func NewColumns(to io.Writer, gap int) *Columns {
	return &Columns{table: tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)}
}

// Row adds a row, whatever its cells contain. A failure is returned by End.
func (c *Columns) Row(cells ...string) {
	for i, cell := range cells {
		cells[i] = OneLine(cell)
	}
	if _, err := fmt.Fprintln(c.table, strings.Join(cells, "\t")); c.err == nil {
		c.err = err
	}
}

// End writes the rest of the table.
func (c *Columns) End() error {
	if err := c.table.Flush(); c.err == nil {
		c.err = err
	}
	return c.err
}
