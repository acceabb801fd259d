package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
)

// manifestOptions are the files of a command that reads manifests.
type manifestOptions struct {
	files     []string
	recursive bool
}

func (o *manifestOptions) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVarP(&o.files, "filename", "f", nil, "a file, a directory, or - for standard input; may be repeated")
	fs.BoolVarP(&o.recursive, "recursive", "R", false, "also read subdirectories")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault // names of files
	}
}

// add takes the arguments as further files: the shell expands "-f *.yaml" to such.
func (o *manifestOptions) add(args []string) error {
	o.files = append(o.files, args...)
	if len(o.files) == 0 {
		return usageError{errors.New("name a file, a directory or - with --filename (-f)")}
	}
	return nil
}

// read reads the files as reader says, and reports that it waits for a user to type.
func (o *manifestOptions) read(reader manifest.Reader, stdin io.Reader, env Environment) (manifest.Found, error) {
	if file, ok := stdin.(*os.File); ok && slices.Contains(o.files, manifest.Stdin) && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintln(env.Stderr, "reading manifests from the terminal; end them with Ctrl-D")
	}
	reader.Stdin, reader.Recursive = stdin, o.recursive
	return reader.Read(o.files)
}

// readAll reads every object that it can, whatever else the files contain.
func (o *manifestOptions) readAll(stdin io.Reader, env Environment) (manifest.Found, error) {
	return o.read(manifest.Reader{SkipOthers: true, Generated: true, GoOn: true}, stdin, env)
}
