package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// everyCommand walks the whole command line.
func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultHelpFlag()
	visit(cmd)
	for _, child := range cmd.Commands() {
		everyCommand(child, visit)
	}
}

// TestEveryFlagHasARow: the table knows every flag of the commands for users, and nothing else.
func TestEveryFlagHasARow(t *testing.T) {
	t.Parallel()
	unused := userFlags()
	everyCommand(Document(), func(cmd *cobra.Command) {
		if cmd.Name() == controllerName {
			return
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, known := userFlags()[f.Name]; !known {
				t.Errorf("%s --%s: the table in variables.go doesn't say what it sets", cmd.Name(), f.Name)
			}
			delete(unused, f.Name)
		})
	})
	for name := range unused {
		t.Errorf("no command has the flag --%s", name)
	}
}

// TestOnlyTheTableSetsFlags: with the variables of all flags set, each command takes exactly those that the table allows
// it, and warns about the others.
func TestOnlyTheTableSetsFlags(t *testing.T) {
	t.Parallel()
	taken := 0
	everyCommand(Document(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			value := map[string]string{"bool": "true", "duration": "5s", "int": "5"}[f.Value.Type()]
			if value == "" {
				value = "from-variable"
			}
			name := commandline.Variable(f.Name)
			var stderr bytes.Buffer
			env := Environment{
				Stderr: &stderr, Lookup: variables(map[string]string{name: value}),
				Environ: func() []string { return []string{name + "=" + value} },
			}
			reportVariables(cmd, nil, env)
			warned := strings.Contains(stderr.String(), name+" is not read")
			if err := setFromEnvironment(cmd.Name(), cmd.Flags(), env); err != nil {
				t.Fatal(err)
			}
			what := userFlags()[f.Name]
			allowed := cmd.Name() == "controller" || what == connection || what == outputForm
			if f.Changed != allowed || warned == allowed {
				t.Errorf("%s --%s, which sets %s: set is %t and warned is %t, said %q", cmd.Name(), f.Name, what, f.Changed, warned, &stderr)
			}
			if f.Changed {
				taken++
			}
			f.Changed = false
		})
	})
	if taken < 100 {
		t.Errorf("only %d flags were set", taken)
	}
}

// TestDangerousFlagsHaveNoVariable: whatever the table says about others, these are for the command line.
func TestDangerousFlagsHaveNoVariable(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"all", "all-namespaces", "namespace", "selector", "kind", "filename", "force", "now", "overwrite", "reason", "dry-run", "wait"} {
		if hasVariable("roll", flag) {
			t.Errorf("--%s has a variable", flag)
		}
	}
	for _, flag := range []string{"kubeconfig", "context", "as", "as-group", "token", "request-timeout", "controller-namespace", "output", "log-level"} {
		if !hasVariable("status", flag) {
			t.Errorf("--%s has no variable", flag)
		}
	}
}

// TestVariablesThatDontWork: a user who sets one reads that, once, and no value is printed. The flag's present name is
// the advice, and a flag on the command line needs none.
func TestVariablesThatDontWork(t *testing.T) {
	t.Parallel()
	const nowhere = " --kubeconfig /no/such/file"
	for name, c := range map[string]struct {
		reason, args, variable, want string
	}{
		"Selection":     {"the flag selects objects", "roll deployment/web" + nowhere, "LOCKSTEP_SELECTOR=hunter2", "Warning: environment variable LOCKSTEP_SELECTOR is not read: use --selector\n"},
		"Force":         {"the flag overrides a check", "roll deployment/web" + nowhere, "LOCKSTEP_FORCE=true", "Warning: environment variable LOCKSTEP_FORCE is not read: use --force\n"},
		"Namespace":     {"half of an object's name", "explain deployment/web" + nowhere, "LOCKSTEP_NAMESPACE=shop", "Warning: environment variable LOCKSTEP_NAMESPACE is not read: use --namespace\n"},
		"SameFlag":      {"the controller reads it, this command doesn't", "explain deployment/web" + nowhere, "LOCKSTEP_QUIET=5s", "Warning: environment variable LOCKSTEP_QUIET is not read: use --quiet\n"},
		"Typed":         {"the user has seen that the flag counts", "explain deployment/web --quiet 1s" + nowhere, "LOCKSTEP_QUIET=5s", ""},
		"OtherCommand":  {"it is for the controller", "explain deployment/web" + nowhere, "LOCKSTEP_MAX_DELAY=5s", ""},
		"NoCommand":     {"no command reads it, and this one lacks the flag", "version", "LOCKSTEP_OVERWRITE=true", "Warning: environment variable LOCKSTEP_OVERWRITE is not read: --overwrite has no variable\n"},
		"OtherFlag":     {"a variable that exists is near, and sets something else", "status" + nowhere, "LOCKSTEP_ALL=true", "Warning: environment variable LOCKSTEP_ALL is not read: --all has no variable\n"},
		"Argument":      {"the rest of the line is wrong", "roll deployment/web --no-such-flag", "LOCKSTEP_SELECTOR=hunter2", "Warning: environment variable LOCKSTEP_SELECTOR is not read: use --selector\n"},
		"Help":          {"a user reads what the command takes", "roll --help", "LOCKSTEP_FORCE=true", "Warning: environment variable LOCKSTEP_FORCE is not read: use --force\n"},
		"MisspeltOther": {"another command reads the one that is near", "explain deployment/web --no-such-flag", "LOCKSTEP_MAX_DEALY=5s", "Warning: environment variable LOCKSTEP_MAX_DEALY is not known; did you mean LOCKSTEP_MAX_DELAY? This command doesn't read it\n"},
		"Completion":    {"a shell asks, and not a user", "__complete roll --n", "LOCKSTEP_SELECTOR=hunter2", ""},
		"Shorthand":     {"the user has seen that the flag counts", "explain deployment/web -nshop" + nowhere, "LOCKSTEP_NAMESPACE=shop", ""},
		"Combined":      {"a flag among short ones", "status -An shop" + nowhere, "LOCKSTEP_NAMESPACE=shop", ""},
		"ShortValue":    {"the letter is in the value of another", "status -ln=x" + nowhere, "LOCKSTEP_NAMESPACE=shop", "Warning: environment variable LOCKSTEP_NAMESPACE is not read: use --namespace\n"},
		"WithValue":     {"the user has seen that the flag counts", "explain deployment/web --namespace=shop" + nowhere, "LOCKSTEP_NAMESPACE=shop", ""},
		"DropIn":        {"it has its own variables", "reloader --help", "LOCKSTEP_QUIET=5s", "Warning: environment variable LOCKSTEP_QUIET is not read: a drop-in reads the variables of the program that it replaces\n"},
		"Connection":    {"it works", "explain deployment/web" + nowhere, "LOCKSTEP_CONTEXT=nowhere", ""},
		"Misspelt":      {"a variable that exists is near", "explain deployment/web" + nowhere, "LOCKSTEP_CONTEXTS=x", "Warning: environment variable LOCKSTEP_CONTEXTS is not known; did you mean LOCKSTEP_CONTEXT?\n"},
		"WrittenByUs":   {"Lockstep writes it into containers", "explain deployment/web" + nowhere, "LOCKSTEP_INPUTS=x", ""},
		"OfTheDropIns":  {"another program", "explain deployment/web" + nowhere, "MAX_DELAY=x", ""},
		"ControllerOwn": {"it reads all of its own", "controller --quiet 1s" + nowhere, "LOCKSTEP_OBSERVE=true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			variable, value, _ := strings.Cut(c.variable, "=")
			Run(t.Context(), strings.Fields(c.args), Environment{
				Stdout: io.Discard, Stderr: &stderr, Lookup: variables(map[string]string{variable: value}),
				Environ: func() []string { return []string{c.variable} }, Now: time.Now,
			})
			var warnings string
			for line := range strings.Lines(stderr.String()) {
				if strings.HasPrefix(line, "Warning: environment") {
					warnings += line
				}
			}
			if warnings != c.want {
				t.Errorf("%s: warned %q, want %q", c.reason, warnings, c.want)
			}
		})
	}
}

// TestPagesReadNoVariables: an action of "lockstep ui" is about the object that the page shows, in the cluster that the
// page shows, whatever the environment says.
func TestPagesReadNoVariables(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	w.Create(t, testkit.Deployment("api", "app", "db"), testkit.Secret("lockstep-installation-key", "key", strings.Repeat("k", 32)))
	env := Environment{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now, Lookup: func(name string) (string, bool) {
		value, set := map[string]string{
			"LOCKSTEP_ALL": "true", "LOCKSTEP_FORCE": "true", "LOCKSTEP_NOW": "true", "LOCKSTEP_OVERWRITE": "true", "LOCKSTEP_NAMESPACE": "elsewhere",
			"LOCKSTEP_CONTEXT": "nowhere", "LOCKSTEP_TOKEN": "wrong", "LOCKSTEP_CONTROLLER_NAMESPACE": "nowhere", "POD_NAMESPACE": "nowhere",
		}[name]
		return value, set
	}}
	held := func() []string {
		var all []string
		for _, name := range []string{"api", testkit.Web} {
			if reason, is := w.Deployment(t, name).Annotations[settings.Hold]; is {
				all = append(all, name+"="+reason)
			}
		}
		return all
	}
	act := func(arguments ...string) (string, error) {
		return carryOut(t.Context(), []string{"--kubeconfig", w.Cluster.Kubeconfig()}, append(arguments, "-n", w.Namespace), env)
	}
	if text, err := act("hold", "deployment/web", "freeze"); err != nil || !slices.Equal(held(), []string{"web=freeze"}) {
		t.Fatalf("held are %q: %s, %v", held(), text, err)
	}
	if text, err := act("hold", "deployment/web", "other"); err == nil || !slices.Equal(held(), []string{"web=freeze"}) {
		t.Errorf("a hold was replaced without --overwrite: held are %q: %s", held(), text)
	}
	w.Annotate(t, "api", settings.Hold, "mine")
	if text, err := act("roll", "deployment/web", "--controller-namespace", w.Namespace); err == nil || !strings.Contains(text, "use --now") {
		t.Errorf("a held workload was rolled out without --now: %s, %v", text, err)
	}
	if text, err := act("release", "deployment/web"); err != nil || !slices.Equal(held(), []string{"api=mine"}) {
		t.Errorf("held are %q: %s, %v", held(), text, err)
	}
	before := w.Deployment(t, "api").Generation
	if text, err := act("roll", "deployment/web", "--now", "--controller-namespace", w.Namespace); err != nil || strings.Count(text, " rolled out: ") != 1 || w.Deployment(t, "api").Generation != before {
		t.Errorf("one workload was to be rolled out: %s, %v", text, err)
	}
}
