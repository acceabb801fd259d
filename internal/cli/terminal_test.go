package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
)

// hostile is what a tenant or a registry could write: sequences that control a terminal, further
// lines and cells, characters that turn the text around, and far too much of it.
var hostile = "x\x1b[2J\x1b]0;t\a\r\n\tError: fake\u202e\u2066\u009b31m\u200b\x7f" + strings.Repeat("y", 10_000)

// fill sets every text of a value, one element in each list and map, and what pointers point to.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text)
		fill(value, text)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, text)
			}
		}
	default:
	}
}

// filled is a value with that text everywhere.
func filled[T any](text string) T {
	var value T
	fill(reflect.ValueOf(&value).Elem(), text)
	return value
}

// printers print an answer with that text everywhere, as each command does.
func printers() map[string]func(env Environment, text string) error {
	now := time.Now()
	return map[string]func(env Environment, text string) error{
		"status": func(env Environment, text string) error {
			o := statusOptions{output: outputOptions{formatWide}, scope: scopeOptions{all: true}}
			return o.print(env, filled[ask.Status](text), true)
		},
		"explain a workload": func(env Environment, text string) error {
			o := explainOptions{output: outputOptions{formatWide}}
			return o.print(env, workloadAnswer{filled[ask.Explanation](text)})
		},
		"explain a source": func(env Environment, text string) error {
			o := explainOptions{output: outputOptions{formatWide}}
			return o.print(env, sourceAnswer{filled[ask.SourceExplanation](text)})
		},
		"history": func(env Environment, text string) error {
			return printHistory(env.Stdout, filled[ask.History](text), now, true)
		},
		"plan": func(env Environment, text string) error {
			return printPlan(env.Stdout, filled[ask.Plan](text), true)
		},
		"plan of sources": func(env Environment, text string) error {
			plan := ask.Plan{}
			for _, change := range []ask.Alter{ask.Refused, ask.Assumed} {
				s := filled[ask.PlannedSource](text)
				s.Change = change
				plan.Sources = append(plan.Sources, s)
			}
			return printPlan(env.Stdout, plan, true)
		},
		"images": func(env Environment, text string) error {
			return printImages(env.Stdout, filled[[]imageRow](text), now, false)
		},
		"doctor": func(env Environment, text string) error {
			return printChecks(env.Stdout, env, filled[[]doctor.Check](text))
		},
		"lint": func(env Environment, text string) error {
			return (&lintOptions{output: outputOptions{formatWide}}).print(env, filled[lintAnswer](text))
		},
		"roll": func(env Environment, text string) error {
			(&roll{env: env}).say(text)
			return nil
		},
		"other lines": func(env Environment, text string) error { return say(env.Stdout, "%s: %s", text, text) },
		"resolve": func(env Environment, text string) error {
			return (&resolveOptions{output: "tag"}).print(env.Stdout, tagspec.Image{}, imagewatch.Resolution{Tag: text})
		},
	}
}

// TestHostileText: what tenants and registries wrote is printed as one value: it doesn't control the
// terminal, doesn't make further lines, and is cut.
func TestHostileText(t *testing.T) {
	t.Parallel()
	for name, print := range printers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmless, lines := onScreen(t, print, "x")
			if lines == 0 {
				t.Fatal("nothing is printed")
			}
			got, n := onScreen(t, print, hostile)
			if n != lines {
				t.Errorf("%d lines, and of harmless text %d:\n%s\n%s", n, lines, short(got), harmless)
			}
			if !commandline.IsPlain([]byte(got)) || strings.Contains(got, "\t") {
				t.Errorf("it controls the terminal: %q", short(got))
			}
			for line := range strings.Lines(got) {
				if strings.HasPrefix(line, "Error: fake") {
					t.Errorf("a line is made up: %q", short(line))
				}
				if len([]rune(line)) > 6001 {
					t.Errorf("a line of %d characters", len([]rune(line)))
				}
			}
		})
	}
}

func onScreen(t *testing.T, show func(Environment, string) error, text string) (out string, lines int) {
	t.Helper()
	var to bytes.Buffer
	env := Environment{Stdout: commandline.NewScreen(&to), Stderr: commandline.NewScreen(&to), Lookup: variables(nil), Now: time.Now}
	if err := show(env, text); err != nil {
		t.Fatal(err)
	}
	return to.String(), strings.Count(to.String(), "\n")
}

func short(text string) string { return fmt.Sprintf("%.600s", text) }

// TestHostileTextForPrograms: programs read what was written, and a terminal isn't controlled by it.
func TestHostileTextForPrograms(t *testing.T) {
	t.Parallel()
	for _, format := range []string{formatJSON, formatYAML} {
		for _, text := range []string{hostile, "plain: text"} {
			var to bytes.Buffer
			rows := filled[[]imageRow](text)
			if err := (outputOptions{format}).write(commandline.NewScreen(&to), rows, nil); err != nil {
				t.Fatal(err)
			}
			read := json.Unmarshal
			if format == formatYAML {
				read = func(text []byte, to any) error { return yaml.Unmarshal(text, to) }
			}
			var back []imageRow
			if err := read(to.Bytes(), &back); err != nil || !reflect.DeepEqual(back, rows) {
				t.Errorf("%s: %v, it reads back as %s", format, err, short(fmt.Sprint(back)))
			}
			if !commandline.IsPlain(to.Bytes()) {
				t.Errorf("%s controls the terminal: %q", format, short(to.String()))
			}
		}
	}
}

// TestEveryCommandWritesToAScreen: what a command prints without a table is escaped too, and so is an
// error.
func TestEveryCommandWritesToAScreen(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	env := Environment{Stdout: &stdout, Stderr: &stderr, Lookup: variables(nil), Version: "\x1b[2J", Now: time.Now}
	Run(t.Context(), []string{"version"}, env)
	Run(t.Context(), []string{"lint", "\x1b[2J/none"}, env)
	for name, out := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
		if !commandline.IsPlain([]byte(out)) || !strings.Contains(out, "[2J") {
			t.Errorf("%s: %q", name, out)
		}
	}
}
