package docs_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// step is one command of a console session, and what it prints.
type step struct {
	command string
	output  []string
}

// steps reads a console session: "$ " begins a command, which goes on for as long as a
// shell would wait for its end.
func (f fence) steps() []step {
	var found []step
	goesOn := false
	for line := range strings.Lines(f.text) {
		line = strings.TrimSuffix(line, "\n")
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			found[len(found)-1].command += "\n" + line
		case begins:
			found = append(found, step{command: command})
		case len(found) > 0:
			last := &found[len(found)-1]
			last.output = append(last.output, line)
		}
		goesOn = (begins || goesOn) && unfinished(found[len(found)-1].command)
	}
	return found
}

func unfinished(command string) bool {
	_, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	return strings.HasSuffix(command, `\`) || syntax.IsIncomplete(err) || (err != nil && strings.Contains(err.Error(), "unclosed here-document"))
}

// TestCommandsAreUnderstood: the programs take the commands and flags that the pages
// show. Each is asked for its help with the same arguments, which it refuses when it
// does not know one of them.
func TestCommandsAreUnderstood(t *testing.T) {
	t.Parallel()
	programs := tools(t)
	targets := makeTargets(t)
	seen, asked := map[string]int{}, map[string]bool{}
	for _, c := range shownCalls(t) {
		words := strings.Join(c.words, "\x00")
		seen[filepath.Base(c.words[0])]++
		switch {
		case asked[words]:
		case c.words[0] == "make":
			checkTargets(t, c.place, targets, c.words[1:])
		default:
			checkHelp(t, c.place, programs, c.words)
		}
		asked[words] = true
	}
	for _, name := range []string{"lockstep", "lockstep-sync", "kubectl", "make"} {
		if seen[name] < 2 {
			t.Errorf("%d commands of %s were found; this test looks in the wrong place", seen[name], name)
		}
	}
}

// call is one program with its arguments, and where a page shows it.
type call struct {
	place string
	words []string
}

// shownCalls are the calls of all pages, but those that a page shows to be refused.
func shownCalls(t *testing.T) []call {
	t.Helper()
	var found []call
	for _, p := range pages(t) {
		for _, f := range slices.Concat(p.fences("console"), p.fences("sh")) {
			accepted := slices.DeleteFunc(f.steps(), wantsRefusal)
			for _, s := range accepted {
				found = append(found, calls(t, f.String(), s.command)...)
			}
		}
	}
	return found
}

// wantsRefusal: the page shows what a wrong command line gets.
func wantsRefusal(s step) bool {
	return slices.ContainsFunc(s.output, func(line string) bool { return strings.HasPrefix(line, "Error: ") })
}

// calls are the simple commands of a command line, with the words that a shell would
// give them; "x" stands for what the shell would have to run.
func calls(t *testing.T, place, command string) []call {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(command), place)
	if err != nil {
		t.Errorf("%s: %v", place, err)
		return nil
	}
	var found []call
	syntax.Walk(file, func(node syntax.Node) bool {
		simple, ok := node.(*syntax.CallExpr)
		if !ok || len(simple.Args) == 0 {
			return true
		}
		c := call{place: place}
		for _, arg := range simple.Args {
			c.words = append(c.words, literal(arg))
		}
		found = append(found, c)
		return true
	})
	return found
}

func literal(arg *syntax.Word) string {
	word, err := expand.Literal(&expand.Config{
		CmdSubst:  func(w io.Writer, _ *syntax.CmdSubst) error { _, err := io.WriteString(w, "x"); return err },
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "x", nil },
	}, arg)
	if err != nil {
		return "x"
	}
	return word
}

// checkHelp asks a program for help with the arguments of a call.
func checkHelp(t *testing.T, place string, programs map[string]string, words []string) {
	t.Helper()
	name, args := filepath.Base(words[0]), slices.Clone(words[1:])
	if name == "kubectl" && args[0] == "lockstep" { // the plugin
		name, args = "lockstep", args[1:]
	}
	path, ok := programs[name]
	if !ok || slices.Contains(args, "…") {
		return
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	help := exec.CommandContext(t.Context(), path, append(args, "--help")...)
	help.Env = append(os.Environ(), "KUBECONFIG=/dev/null")
	if out, err := help.CombinedOutput(); err != nil {
		t.Errorf("%s: %s %s: %v\n%s", place, name, strings.Join(args, " "), err, out)
	}
}

// checkTargets: every word of a make command is a target or a variable.
func checkTargets(t *testing.T, place string, targets, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(word, "=") && !slices.Contains(targets, word) {
			t.Errorf("%s: make has no target %q", place, word)
		}
	}
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, found := range regexp.MustCompile(`(?m)^([a-z/-]+):`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// tools are the programs that the pages call, by name.
func tools(t *testing.T) map[string]string {
	t.Helper()
	built := labtest.Programs(t, program.Helm, program.Kubectl)
	return map[string]string{
		"lockstep":      labtest.Binary(t, "./cmd/lockstep"),
		"lockstep-sync": labtest.Binary(t, "./cmd/lockstep-sync"),
		"helm":          built[program.Helm].Path,
		"kubectl":       built[program.Kubectl].Path,
	}
}
