package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// said is what a command line says, in the given environment.
type said struct {
	stdout, stderr string
	code           int
}

func saying(t *testing.T, program string, args []string, environ ...string) said {
	t.Helper()
	variables := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		variables[name] = value
	}
	var stdout, stderr strings.Builder
	code := cli.Run(t.Context(), args, cli.Environment{
		Program: program, Version: "1.2.3", Stdout: &stdout, Stderr: &stderr,
		Lookup:  func(name string) (string, bool) { value, ok := variables[name]; return value, ok },
		Environ: func() []string { return environ }, Now: time.Now,
	})
	return said{stdout.String(), stderr.String(), code}
}

// TestMistakesAreShort: a mistake is told in two lines, the second of which says where the
// usage is. A wrong flag has the command's usage line between them.
func TestMistakesAreShort(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, args, want string
	}{
		"Command":      {"which command may be meant", "controler", `unknown command "controler"; did you mean controller?`},
		"CommandFlags": {"its flags are not what is wrong", "controler --quiet 5s", `unknown command "controler"; did you mean controller?`},
		"DropIn":       {"also the place of another program", "configmap-atacher -rollout x", `unknown command "configmap-atacher"; did you mean configmap-attacher?`},
		"FarOff":       {"no guess at random", "deploy", `unknown command "deploy"`},
		"Flag":         {"which flag may be meant", "controller --quite 5s", "unknown flag: --quite; did you mean --quiet?"},
		"OneDash":      {"a word after one dash", "controller -quiet 5s", "unknown flag: -quiet; did you mean --quiet?"},
		"NoObject":     {"a pipe whose first part failed", "plan -f /dev/null", "the files contain no objects: did the command that writes them fail?"},
		"CommandHelp":  {"the whole help has no answer", "sttaus --help", `unknown command "sttaus"; did you mean status?`},
		"CommandH":     {"the short flag", "-h stats", `unknown command "stats"; did you mean status?`},
		"HelpCommand":  {"the command", "help sttaus", `unknown command "sttaus"; did you mean status?`},
		"FlagsBefore":  {"as kubectl takes them", "-n shop sattus", `unknown command "sattus"; did you mean status?`},
		"FlagBefore":   {"of a command", "--namespace=shop sattus -o wide", `unknown command "sattus"; did you mean status?`},
		"NotifyTest":   {"its only command", "notify tset ops", `unknown command "notify tset"; did you mean notify test?`},
		"HiddenFlag":   {"a flag that the help doesn't show", "status --state-nam x", "unknown flag: --state-nam; did you mean --state-name?"},
		"RootFlag":     {"without a command", "--hlep", "unknown flag: --hlep; did you mean --help?"},
		"TimeoutAlone": {"it has no effect", "roll deploy/web --timeout 5m", "--timeout needs --wait: without it, the command doesn't wait for the rollout"},
		"Letter":       {"no such letter", "controller -x", "unknown flag: -x"},
		"Duration":     {"what the flag takes", "controller --quiet soon", `--quiet "soon": want a duration, such as 30s or 5m`},
		"Number":       {"what the flag takes", "controller --workers many", `--workers "many": want a whole number`},
		"Bool":         {"what the flag takes", "controller --auto=perhaps", `--auto "perhaps": want true or false`},
		"NoValue":      {"a flag at the end", "controller --quiet", "--quiet needs a value"},
		"Kind":         {"which kind may be meant", "roll deploymnt/web", `workload "deploymnt/web": unknown kind "deploymnt"; did you mean deployment?`},
		"Target":       {"what can be held", "hold pod/web why", "cronjob (cj), rollout (ro); --kind adds another kind; configmap (cm) and secret are accepted too"},
		"NoReason":     {"a hold has a reason", "hold deploy/web", "a reason is missing: add it as the last argument or with --reason"},
		"Shell":        {"which shell may be meant", "completion basj", `no completion for "basj", want bash|zsh|fish|powershell; did you mean bash?`},
		"NoShell":      {"which ones there are", "completion", "name one shell: bash|zsh|fish|powershell"},
		"LogLevel":     {"what is accepted", "controller --log-level loud", `--log-level "loud": want debug, info, warn or error`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := saying(t, "lockstep", strings.Fields(tc.args))
			first, second, _ := strings.Cut(got.stderr, "\n")
			if got.code != 2 || got.stdout != "" || !strings.HasPrefix(first, "Error: ") || !strings.HasSuffix(first, tc.want) && !strings.Contains(first, tc.want+",") {
				t.Errorf("%s: exit code %d, said %q, want %q", tc.reason, got.code, got.stderr, tc.want)
			}
			if usage, rest, found := strings.Cut(second, "\n"); found && strings.HasPrefix(usage, "Usage: ") {
				name, _, _ := strings.Cut(tc.args, " ")
				if strings.HasPrefix(name, "-") {
					name = "COMMAND"
				}
				if !strings.HasPrefix(tc.want, "unknown flag") && !strings.HasPrefix(tc.want, "--") || !strings.HasPrefix(usage, "Usage: lockstep "+name+" ") {
					t.Errorf("%s: the usage is %q", tc.reason, usage)
				}
				second = rest
			} else if strings.HasPrefix(tc.want, "unknown flag") {
				t.Errorf("%s: the usage of the command is missing: %q", tc.reason, got.stderr)
			}
			if !strings.HasPrefix(second, `Run "lockstep`) || strings.Count(second, "\n") != 1 {
				t.Errorf("%s: then %q, want where the usage is", tc.reason, second)
			}
		})
	}
}

// TestHelp: help before and after the name of a command is that of the command, and that of the program for none.
func TestHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"help":                     "Lockstep keeps Kubernetes workloads in step",
		"--help":                   "Lockstep keeps Kubernetes workloads in step",
		"help status":              "List the followed workloads",
		"-h status":                "List the followed workloads",
		"-n shop status -h":        "List the followed workloads",
		"help kube-image-deployer": "kube-image-deployer",
		"__complete stat":          "status",
		"__complete help stat":     "status",
	} {
		got := saying(t, "lockstep", strings.Fields(args))
		if got.code != 0 || !strings.Contains(got.stdout+got.stderr, want) || strings.Contains(got.stderr, "Error") {
			t.Errorf("%s: exit code %d, said %q and %q, want %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
}

// TestVersion: the command and the flag say the same. The flag is answered before the environment is read.
func TestVersion(t *testing.T) {
	t.Parallel()
	command := saying(t, "lockstep", []string{"version"})
	if command.code != 0 || !strings.HasPrefix(command.stdout, "lockstep 1.2.3 (go") {
		t.Errorf("version says %+v", command)
	}
	for _, flag := range []string{"--version", "-v"} {
		if got := saying(t, "lockstep", []string{flag}, "LOCKSTEP_UNHEARD_OF=1"); got != command {
			t.Errorf("version says %+v, %s %+v", command, flag, got)
		}
	}
	for program, name := range map[string]string{"lockstep": "lockstep", "kubectl-lockstep": "kubectl lockstep"} {
		if help := saying(t, program, []string{"--help"}).stdout; !strings.Contains(help, "  -v, --version   version for "+name+"\n") {
			t.Errorf("%s --help does not list --version:\n%s", program, help)
		}
	}
}

// TestReleaseHelp: one table has what a release does to each situation.
func TestReleaseHelp(t *testing.T) {
	t.Parallel()
	help := saying(t, "lockstep", []string{"release", "--help"}).stdout
	for _, want := range []string{"\n    a hold   ", "\n    a reverted change  ", "\n    a quarantined or  ", "  rollout\n", "  none\n"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
}

// TestHelpListsWhatItReplaces: each program whose place this one can take has a line.
func TestHelpListsWhatItReplaces(t *testing.T) {
	t.Parallel()
	help := saying(t, "lockstep", []string{"--help"}).stdout
	for _, name := range cli.DropIns() {
		if !strings.Contains(help, "\n    "+name+"  ") {
			t.Errorf("--help has no line for %s:\n%s", name, help)
		}
	}
	if !strings.Contains(help, "\n  completion ") {
		t.Errorf("--help does not list completion:\n%s", help)
	}
}

// TestCompletionScripts: each shell has a script, which asks the program.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := saying(t, "lockstep", []string{"completion", shell}); got.code != 0 || !strings.Contains(got.stdout, "__complete") {
			t.Errorf("%s: exit code %d, %s\n%s", shell, got.code, got.stderr, got.stdout)
		}
	}
}

// TestUnknownVariablesAreReported once, by name, and are no error.
func TestUnknownVariablesAreReported(t *testing.T) {
	t.Parallel()
	got := saying(t, "lockstep", []string{"version"}, "LOCKSTEP_QUITE=hunter2", "LOCKSTEP_MAX_DELAY=5s", "LOCKSTEP_INPUTS=x",
		"LOCKSTEP_SERVICE_HOST=10.0.0.1", "LOCKSTEP_PORT_8080_TCP=tcp://10.0.0.1:8080")
	want := "Warning: environment variable LOCKSTEP_QUITE is not known; did you mean LOCKSTEP_QUIET? This command doesn't read it\n"
	if got.code != 0 || got.stderr != want {
		t.Errorf("exit code %d, said %q, want %q", got.code, got.stderr, want)
	}
}

// TestPlugin: started by kubectl, the program calls itself as the person did.
func TestPlugin(t *testing.T) {
	t.Parallel()
	help := saying(t, "/usr/local/bin/kubectl-lockstep", []string{"roll", "--help"}).stdout
	for _, want := range []string{"\n  kubectl lockstep roll KIND/NAME... [flags]\n", "\n  kubectl lockstep roll deployment/web -n shop\n"} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is not in\n%s", want, help)
		}
	}
	wrong := saying(t, "kubectl-lockstep", []string{"rol"}).stderr
	if !strings.Contains(wrong, "did you mean roll?") || !strings.Contains(wrong, `"kubectl lockstep --help"`) {
		t.Errorf("a mistake: %q", wrong)
	}
}
