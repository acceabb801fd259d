// Command docgen writes the parts of docs/ that follow from the code: the references of
// annotations, reasons, metrics and output, and the command line.
//
// "make docs" runs it; "make verify" fails when its output is not committed.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		"variables.md":   variablesPage(),
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
	return "# Annotations and labels\n\nIf Lockstep doesn't understand a setting, it reports a warning event on the workload. The event names the annotation, the value\n" +
		"and the accepted values. Lockstep then leaves the workload alone until you correct the setting, with these exceptions:\n\n" +
		"- Unknown keys have no effect.\n- Invalid values on a namespace or a source have no effect, except `lockstep.dev/observe` on a namespace, which counts as `true`.\n" +
		"- Invalid values of `first`, `after` and `window` have no effect.\n\n" + t.String()
}

func reasonsPage() string {
	var page strings.Builder
	page.WriteString("# Reasons of the controller\n\nA reason is one word for why Lockstep did something, or didn't. You find it in events, in the log (`reason=`),\n" +
		"in the label `reason` of metrics, and in `lockstep explain` and `lockstep status`. The reasons of the agent in the pod are in [sync](sync.md#reasons).\n\n" +
		"The last column is what the workload waits for. It is empty if there is nothing to wait for.\n")
	for _, s := range []struct {
		title   string
		reasons []input.Explanation
	}{
		{"ConfigMaps and Secrets", input.FollowExplanations()},
		{"Images", input.ImageExplanations()},
		{"Revisioned objects", input.RevisionExplanations()},
		{"Commands", input.CommandExplanations()},
	} {
		t := newTable("reason", "meaning", "waits for")
		for _, e := range s.reasons {
			t.row(anchored(string(e.Reason)), e.Meaning, withCode(input.Ends(e.Reason)))
		}
		page.WriteString("\n## " + s.title + "\n\n" + t.String())
	}
	return page.String() + statesSection()
}

// anchored is a name that a link can lead to.
func anchored(name string) string {
	return fmt.Sprintf(`<a id="%s"></a>`, strings.ToLower(name)) + "`" + name + "`"
}

// withCode marks the commands and annotations in a text for a terminal.
func withCode(text string) string {
	return regexp.MustCompile(`lockstep\.dev/[a-z]+(: [a-z]+)?|lockstep (roll|release|resume)\b|kubectl rollout resume`).ReplaceAllString(text, "`$0`")
}

// statesSection lists the states that aren't reasons, because the controller doesn't set
// them.
func statesSection() string {
	t := newTable("state", "meaning", "waits for")
	for _, s := range []struct{ name, meaning, ends string }{
		{ask.NotOnRecord, "The workload requests to be followed, but isn't in the controller's record: the controller hasn't checked it yet, or the workload doesn't use anything that can be followed. You also see this state if you aren't allowed to read the record, and the events that you can read don't show the state.", "the controller's first check, and an input that it can follow"},
		{ask.NotFollowedAnyMore, "`lockstep status -w` listed the workload before, but Lockstep doesn't follow it any more.", ""},
		{ask.NotWatched, "According to the arguments of its Deployment, the controller doesn't watch the workload's namespace.", "a controller that watches the namespace"},
	} {
		t.row(anchored(s.name), s.meaning, s.ends)
	}
	return "\n## States that only commands show\n\n`lockstep status`, `explain` and `images` show the controller's reason as the state of a workload. They also show\n" +
		"these states, which aren't in events, logs or metrics:\n\n" + t.String()
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
