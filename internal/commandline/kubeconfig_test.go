package commandline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

func TestKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b, there := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "there")
	usual := filepath.Join(dir, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(usual), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{there, usual} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		reason, flag, variable, home string
		want                         []string
		says                         string // of the error, empty when there must be none
	}{
		{"the flag wins", a, b, dir, []string{a}, ""},
		{"none exists", "", a, dir, nil, "KUBECONFIG=" + a + ": no such file"},
		{"none of several exists", "", a + ":" + b, dir, nil, "KUBECONFIG=" + a + ":" + b + ": no such file"},
		{"one of several exists", "", a + ":" + there, dir, []string{a, there}, ""},
		{"the usual place", "", "", dir, []string{usual}, ""},
		{"nothing at the usual place", "", "", filepath.Join(dir, "nowhere"), nil, ""},
		{"no home, as in an empty image", "", "", "", nil, ""},
	} {
		variables := map[string]string{"KUBECONFIG": c.variable, "HOME": c.home}
		got, err := commandline.Kubeconfig(c.flag, func(name string) (string, bool) { value, ok := variables[name]; return value, ok })
		if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%s: error %v, want %q", c.reason, err, c.says)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}
