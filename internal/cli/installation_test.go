package cli

import (
	"strings"
	"testing"
)

// TestFlagsOfOneSetting: whichever name a user types, it takes precedence over the variables of all names.
func TestFlagsOfOneSetting(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"LOCKSTEP_CONTROLLER_NAMESPACE": "from-variable", "LOCKSTEP_NAMESPACE": "from-variable"}
	for _, flag := range []string{"controller-namespace", "namespace"} {
		cmd, _, err := Document().Find([]string{"notify"})
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags([]string{"--" + flag, "from-flag"}); err != nil {
			t.Fatal(err)
		}
		if err := setFromEnvironment(cmd.Name(), cmd.Flags(), Environment{Lookup: variables(environ)}); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Lookup(flag).Value.String(); got != "from-flag" {
			t.Errorf("--%s: %q", flag, got)
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
		if cmd.Flags().Lookup(controllerNamespaceFlag) != nil && !strings.Contains(usage, "--controller-namespace ") {
			t.Errorf("%s does not show --controller-namespace", cmd.Name())
		}
	}
}
