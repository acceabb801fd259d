package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

func newVersion(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this build",
		Args:  noArguments,
		RunE:  func(*cobra.Command, []string) error { return printVersion(env) },
	}
}

func printVersion(env Environment) error {
	_, err := io.WriteString(env.Stdout, commandline.Version(programName, env.Version))
	return err
}
