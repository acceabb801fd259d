package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestRealNodeNamesWhatIsMissing: nothing is built or started for a node that this
// machine cannot have.
func TestRealNodeNamesWhatIsMissing(t *testing.T) {
	labtest.In(t, labtest.TierAll)
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Fatal("run as root on Linux: only root can give up permissions")
	}
	binary := copyOfLab(t)
	cases := map[string]struct {
		permissions []string // what setpriv takes away
		want        string
	}{
		"root":       {[]string{"--reuid=65534", "--regid=65534", "--clear-groups"}, "a real node needs root on Linux"},
		"namespaces": {[]string{"--bounding-set=-sys_admin", "--inh-caps=-sys_admin"}, "a real node needs namespaces and mounts of its own (the capability CAP_SYS_ADMIN)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			args := slices.Concat(c.permissions, []string{binary, "exec", "--node", "real", "--", "true"})
			_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: "setpriv", Args: args})
			if code != 1 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want 1 and the one line %q", code, stderr, c.want)
			}
		})
	}
}

// copyOfLab is the lab's command in a directory that every user may enter.
func copyOfLab(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(labtest.Binary(t, "./lab"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/lab", content, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + "/lab"
}
