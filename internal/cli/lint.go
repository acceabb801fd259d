package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/lint"
)

// lintOptions are the flags of "lockstep lint".
type lintOptions struct {
	kinds    []string
	reads    readOptions
	files    manifestOptions
	output   outputOptions
	complete bool
}

func newLint(env Environment) *cobra.Command {
	var o lintOptions
	cmd := &cobra.Command{
		Use:   "lint -f FILE|DIRECTORY|-...",
		Short: "Check the Lockstep settings in manifests, without a cluster",
		Long: `Check the Lockstep settings in manifests, without a cluster. The command finds

    unknown and misplaced annotations and labels, and suggests the right ones
    invalid values, durations and tag specs
    image annotations for containers that don't exist
    settings that exclude each other
    references to ConfigMaps and Secrets that aren't in the files

It uses the controller's parsers, so both agree. A reference to a missing object is a warning,
because the cluster may contain the object; with --complete it is an error. Standard error shows
the number of other objects and of documents without an object.

Name files with -f or as arguments. docs/help/doctor.md explains every rule. -o wide adds the
objects' namespaces.

If a file isn't valid YAML, the command still checks the others. It reports the file on standard
error, and with -o json in the field "unreadable".

Exit codes: 0 no errors, perhaps warnings; 1 errors; 2 wrong usage, or a file that isn't valid
YAML.`,
		Example: `  lockstep lint -f deploy/
  lockstep lint -f deploy/ -R --complete
  kustomize build . | lockstep lint -f -
  helm template web ./chart | lockstep lint -f - -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.InOrStdin(), env)
		},
	}
	fs := cmd.Flags()
	o.reads.bind(fs)
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
	fs.BoolVar(&o.complete, "complete", false, "the files are complete: a reference to an object that they don't contain is an error")
	o.files.bind(cmd)
	o.output.bind(cmd)
	return cmd
}

// lintAnswer is the output of the command.
type lintAnswer struct {
	lint.Result

	Files int `json:"files"`
	// NoObjects are the documents that aren't objects.
	NoObjects int `json:"noObjects"`
	// Unreadable are the files, or documents in them, that could not be read and checked.
	Unreadable []unreadable `json:"unreadable"`
}

// unreadable is a file that could not be read, or the place in it that isn't a manifest.
type unreadable struct {
	File string `json:"file"`
	// Line is the line in the file, omitted if the message is about the whole file.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

func (o *lintOptions) run(_ context.Context, args []string, stdin io.Reader, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return usageError{err}
	}
	words, err := o.reads.words(settings.Defaults{})
	if err != nil {
		return usageError{err}
	}
	if err := o.files.add(args); err != nil {
		return err
	}
	found, err := o.files.readAll(stdin, env)
	if err != nil {
		return usageError{err}
	}
	answer := lintAnswer{Files: found.Files, NoObjects: found.Others, Unreadable: allUnreadable(found.Wrong), Result: lint.Check(found.Objects, lint.Options{
		Kinds: kinds, Words: words, Complete: o.complete, Nearest: commandline.Nearest,
	})}
	if len(found.Objects) > 0 || o.output.format == formatJSON || o.output.format == formatYAML { // Output for programs is never empty.
		if err := o.print(env, answer); err != nil {
			return err
		}
	}
	switch n := answer.Count(review.Error); {
	case len(found.Wrong) > 0:
		return usageError{unreadError(answer.Unreadable)}
	case len(found.Objects) == 0:
		return usageError{fmt.Errorf("%w (render a chart first, with \"helm template\"; -R reads subdirectories)", errNoObjects)}
	case n > 0:
		return fmt.Errorf("%s", counted(n, "error"))
	}
	return nil
}

// allUnreadable lists the files that could not be read. Without any it is empty, not nil, so
// JSON output contains a list.
func allUnreadable(wrong []error) []unreadable {
	all := make([]unreadable, len(wrong))
	for i, err := range wrong {
		all[i].Message = err.Error()
		if e, ok := errors.AsType[*manifest.Error](err); ok {
			all[i] = unreadable{File: e.File, Line: e.Line, Message: e.Err.Error() + templateHint(e)}
		}
	}
	return all
}

// templateHint is the advice for a file that is a Helm template.
func templateHint(e *manifest.Error) string {
	if e.Line == 0 {
		return ""
	}
	text, err := os.ReadFile(e.File)
	if err != nil || !bytes.Contains(text, []byte("{{")) {
		return ""
	}
	return "; this looks like a Helm template: render it first, and pipe the output of \"helm template CHART\" to this command"
}

// unreadError lists the files that could not be read, one per line.
func unreadError(files []unreadable) error {
	all := make([]error, len(files))
	for i, u := range files {
		all[i] = &manifest.Error{File: u.File, Line: u.Line, Err: errors.New(u.Message)}
	}
	return errors.Join(all...)
}

func (o *lintOptions) print(env Environment, answer lintAnswer) error {
	if !o.output.isForUsers() {
		return o.output.list(env.Stdout, answer, listedOf(answer.Findings, func(f lint.Mistake) listed { return listed{f.Namespace, f.Object} }), nil)
	}
	var text bytes.Buffer
	for _, f := range answer.Findings {
		object := f.Object
		if o.output.isWide() && f.Namespace != "" {
			object += " in namespace " + f.Namespace
		}
		_ = say(&text, "%s:%d: %s: %s: %s (%s)", f.File, f.Line, f.Severity, object, f.Message, f.Rule)
	}
	err := paint(env.Stdout, text.Bytes(), func(line int) string {
		switch {
		case line >= len(answer.Findings) || !usesColour(env):
			return ""
		case answer.Findings[line].Severity == review.Error:
			return colourStuck
		}
		return colourWaits
	})
	_ = say(env.Stderr, "%s", answer.summary())
	return err
}

// summary describes in one line what was checked, and what was not.
func (a lintAnswer) summary() string {
	text := fmt.Sprintf("%s: %s, %s, %s", counted(a.Files, "file"), counted(a.Workloads, "workload"), counted(a.Sources, "ConfigMaps and Secrets"), counted(a.Namespaces, "namespace"))
	var others []string
	for _, kind := range slices.Sorted(maps.Keys(a.Others)) {
		others = append(others, fmt.Sprintf("%d %s", a.Others[kind], kind))
	}
	if len(others) > 0 {
		text += "; checked only the metadata keys of: " + strings.Join(others, ", ")
	}
	if a.NoObjects > 0 {
		text += "; skipped " + counted(a.NoObjects, "document") + " without an object"
	}
	return text
}

// counted is a number with what it counts: "1 file", "2 files".
func counted(n int, what string) string {
	if n != 1 && !strings.HasSuffix(what, "s") {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
