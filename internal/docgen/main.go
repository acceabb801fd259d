// Command docgen writes the parts of docs/ that follow from the code: the references of
// annotations, reasons, metrics and output, and the command line.
//
// "make docs" runs it; "make verify" fails when its output is not committed.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	agentcli "github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/internal/cli"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

//go:generate go run . ../../docs

const notice = "<!-- Written by internal/docgen. Change the code, then run \"make docs\". -->\n\n"

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: docgen DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// write writes every generated document below the directory.
func write(dir string) error {
	metrics, err := metricsPage()
	if err != nil {
		return err
	}
	outputs, err := outputsPage()
	if err != nil {
		return err
	}
	pages := map[string]string{
		"annotations.md": annotationsPage(),
		"reasons.md":     reasonsPage(),
		"metrics.md":     metrics,
		"output.md":      outputs,
	}
	reference := filepath.Join(dir, "reference")
	if err := os.MkdirAll(reference, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(reference, name), []byte(notice+text), 0o644); err != nil {
			return err
		}
	}
	return writeCommandLine(filepath.Join(dir, "cli"))
}

// writeCommandLine writes a page for each command. It recreates the directory, so a removed
// command doesn't leave a page behind.
func writeCommandLine(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, root := range []*cobra.Command{cli.Document(), agentcli.Document()} {
		root.DisableAutoGenTag = true // a date would make every day's output differ
		err := doc.GenMarkdownTreeCustom(root, dir, func(string) string { return notice }, func(name string) string { return name })
		if err != nil {
			return err
		}
	}
	return nil
}

func annotationsPage() string {
	t := newTable("key", "on", "values", "meaning")
	for _, r := range settings.References() {
		t.row("`"+r.Key+"`", r.On, r.Accepted, r.Meaning)
	}
	return "# Annotations and labels\n\nWhat is not understood is reported by a warning event on the workload, which names the\n" +
		"annotation, the value and what is accepted; a workload whose own setting it is\n" +
		"is left alone until it is corrected. Unknown keys, values of a namespace or a source, and `first`, `after` and `window` have no effect then;\n" +
		"only `lockstep.dev/observe` of a namespace counts as `true` when it is not understood.\n\n" + t.String()
}

func reasonsPage() string {
	t := newTable("reason", "meaning", "ends with")
	for _, e := range input.Explanations() {
		t.row(fmt.Sprintf(`<a id="%s"></a>`, strings.ToLower(string(e.Reason)))+"`"+string(e.Reason)+"`", e.Meaning, input.Ends(e.Reason))
	}
	return "# Reasons of the controller\n\nThose of the agent in the pod are in [sync](sync.md#reasons). One word says why Lockstep did something, or why it did not. It is the same in events, in the\n" +
		"log (`reason=`), in the label `reason` of metrics, in `lockstep explain` and in the code (`internal/core/input`).\n\n" + t.String() + statesSection()
}

// statesSection lists the states that aren't reasons, because the controller doesn't set
// them.
func statesSection() string {
	t := newTable("state", "meaning", "ends with")
	for _, s := range []struct{ name, meaning, ends string }{
		{ask.NotOnRecord, "The workload asks to be followed, and the controller has nothing on record of it: it has not looked at the workload yet, or the workload uses nothing that can be followed. Also when you may not read the record, and no event that you can read says more.", "the controller's first look, and something that it can follow"},
		{ask.NotFollowedAnyMore, "`lockstep status -w` listed the workload before, and does not any more.", ""},
		{ask.NotWatched, "The controller does not watch the namespace of the workload, by the arguments of its Deployment.", "a controller that watches the namespace"},
	} {
		t.row(fmt.Sprintf(`<a id="%s"></a>`, strings.ToLower(s.name))+"`"+s.name+"`", s.meaning, s.ends)
	}
	return "\n## States that only the commands give\n\n`lockstep status`, `explain` and `images` show the reason of the controller as the state of a workload. They also know\n" +
		"these states, which no event, log line or metric has:\n\n" + t.String()
}

// table is a Markdown table.
type table struct{ text strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.row(strings.Split(strings.Repeat("--- ", len(columns)-1)+"---", " ")...)
	return t
}

func (t *table) row(cells ...string) {
	t.text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (t *table) String() string { return t.text.String() }
