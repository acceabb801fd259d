package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// Document returns the whole command line, for its reference. It is not run.
func Document() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return newRoot(Environment{Stdout: io.Discard, Stderr: io.Discard, Lookup: nothing, Version: "dev"})
}
