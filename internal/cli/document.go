package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// Document returns the whole command line, for its reference. It is not run.
func Document() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return newRoot(Environment{Stdout: io.Discard, Stderr: io.Discard, Lookup: nothing, Version: "dev"})
}

// Output is the answer of a command for programs, as -o json and -o yaml write it.
type Output struct {
	Command string
	// Answer is an empty value of its type.
	Answer any
	// Names are what -o name lists.
	Names string
}

// Outputs are the answers of all commands that list objects, for the reference.
func Outputs() []Output {
	return []Output{
		{"status", ask.Status{}, "the workloads"},
		{"explain KIND/NAME", ask.Explanation{}, "the inputs of the workload"},
		{"explain configmap/NAME", ask.SourceExplanation{}, "the workloads that follow the ConfigMap or Secret"},
		{"history", ask.History{}, "the ReplicaSets or ControllerRevisions"},
		{"plan", ask.Plan{}, "the workloads"},
		{"images", []imageRow{}, "the workloads, each once"},
		{"doctor", doctorAnswer{}, "the checks"},
		{"lint", lintAnswer{}, "the objects with a finding, each once"},
		{"convert", convertAnswer{}, "the objects with annotations of the tool, each once"},
	}
}
