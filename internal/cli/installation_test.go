package cli

import (
	"io"
	"strings"
	"testing"
)

// TestControllerNamespace: the flag and its old name, on the command line and in the environment. The
// command line wins, and then the new name.
func TestControllerNamespace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		environ map[string]string
		want    string
	}{
		{[]string{"--controller-namespace", "new"}, nil, "new"},
		{[]string{"--own-namespace", "old"}, nil, "old"},
		{[]string{"--controller-namespace", "new"}, map[string]string{"LOCKSTEP_OWN_NAMESPACE": "other"}, "new"},
		{[]string{"--own-namespace", "old"}, map[string]string{"LOCKSTEP_CONTROLLER_NAMESPACE": "other"}, "old"},
		{nil, map[string]string{"LOCKSTEP_OWN_NAMESPACE": "old"}, "old"},
		{nil, map[string]string{"LOCKSTEP_OWN_NAMESPACE": "old", "LOCKSTEP_CONTROLLER_NAMESPACE": "new"}, "new"},
	} {
		cmd := newStatus(Environment{})
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if err := setFromEnvironment(cmd.Name(), cmd.Flags(), Environment{Lookup: variables(c.environ)}); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Lookup(controllerNamespaceFlag).Value.String(); got != c.want {
			t.Errorf("%q with %v: %q, want %q", c.args, c.environ, got, c.want)
		}
	}
}

// TestFlagsOfOneSetting: whichever name a user types, it takes precedence over the variables of all names.
func TestFlagsOfOneSetting(t *testing.T) {
	t.Parallel()
	environ := map[string]string{}
	for _, name := range []string{"LOCKSTEP_CONTROLLER_NAMESPACE", "LOCKSTEP_OWN_NAMESPACE", "LOCKSTEP_NAMESPACE", "LOCKSTEP_FORM", "LOCKSTEP_STRATEGY"} {
		environ[name] = "from-variable"
	}
	for name, flags := range map[string][]string{
		"roll":   {"controller-namespace", "own-namespace", "form", "strategy"},
		"notify": {"controller-namespace", "own-namespace", "namespace"},
		"stop":   {"controller-namespace", "own-namespace"},
	} {
		for _, flag := range flags {
			cmd, _, err := Document().Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags([]string{"--" + flag, "from-flag"}); err != nil {
				t.Fatal(err)
			}
			if err := setFromEnvironment(cmd.Name(), cmd.Flags(), Environment{Lookup: variables(environ), Stderr: io.Discard}); err != nil {
				t.Fatal(err)
			}
			if got := cmd.Flags().Lookup(flag).Value.String(); got != "from-flag" {
				t.Errorf("%s --%s: %q", name, flag, got)
			}
		}
	}
}

// TestInternalNamesAreHidden in the help of client commands, and not in the controller's.
func TestInternalNamesAreHidden(t *testing.T) {
	t.Parallel()
	for _, cmd := range Document().Commands() {
		usage := cmd.Flags().FlagUsages()
		for _, name := range []string{"--own-namespace", "--state-name", "--key-name", "--lease-name"} {
			if shown := strings.Contains(usage, name+" "); shown != (cmd.Name() == "controller") {
				t.Errorf("%s: %s shown is %t", cmd.Name(), name, shown)
			}
		}
		if cmd.Flags().Lookup(ownNamespaceFlag) != nil && cmd.Name() != "controller" && !strings.Contains(usage, "--controller-namespace ") {
			t.Errorf("%s does not show --controller-namespace", cmd.Name())
		}
	}
}
