package labtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeApt writes down its arguments. After "install" the programs are there, unless it
// fails.
const fakeApt = `#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >>"$0.asked"
test "$1" = install || exit 0
test -z "$FAKE_APT_FAILS" || { echo "no such package" >&2; exit 100; }
for tool in fake-nginx fake-promtool; do /bin/cp "$0" "${0%/*}/$tool"; done
`

func TestInstall(t *testing.T) {
	const update = "noninteractive update -qq"
	const install = "noninteractive install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 nginx prometheus"
	const command = "sudo apt-get install --no-install-recommends nginx prometheus"
	cases := map[string]struct {
		reason    string
		apt, root bool
		fails     string
		asked     []string
		progress  string
		want      []string // in the error; none means no error
	}{
		"installed": {
			reason: "root on Debian: one installation that waits for the lock, and says what for", apt: true, root: true,
			asked: []string{update, install}, progress: "reload a real nginx",
		},
		"not root":       {reason: "only root can install", apt: true, want: []string{"reload a real nginx", command}},
		"another system": {reason: "there is no apt-get", root: true, want: []string{command}},
		"failed": {
			reason: "what apt-get says is passed on", apt: true, root: true, fails: "1", progress: "nginx",
			asked: []string{update, install}, want: []string{"apt-get install", "no such package", command},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			t.Setenv("FAKE_APT_FAILS", c.fails)
			apt := filepath.Join(dir, "apt-get")
			if c.apt {
				if err := os.WriteFile(apt, []byte(fakeApt), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var progress strings.Builder
			err := installer{
				packages: []Package{{"nginx", "reload a real nginx", []string{"fake-nginx"}}, {"prometheus", "check alerts", []string{"fake-promtool"}}},
				root:     c.root, progress: &progress,
			}.install(t.Context())
			if (err == nil) != (len(c.want) == 0) {
				t.Errorf("%s: error is %v", c.reason, err)
			}
			for _, want := range c.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want %q in it", c.reason, err, want)
				}
			}
			if !strings.Contains(progress.String(), c.progress) {
				t.Errorf("%s: it reports %q, want %q in it", c.reason, progress.String(), c.progress)
			}
			if again := (installer{progress: &progress}); again.install(t.Context()) != nil || !strings.HasSuffix(progress.String(), "all Debian packages are installed\n") {
				t.Errorf("with nothing to install it reports %q", progress.String())
			}
			asked, _ := os.ReadFile(apt + ".asked")
			if diff := cmp.Diff(c.asked, strings.FieldsFunc(string(asked), func(r rune) bool { return r == '\n' })); diff != "" && len(asked)+len(c.asked) > 0 {
				t.Errorf("%s: apt-get was called with (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

// TestTiers: each tier contains the one before it, and plain "go test" is the smallest.
func TestTiers(t *testing.T) {
	for i, tier := range Tiers() {
		for j, other := range Tiers() {
			if got := tier.Includes(other); got != (j <= i) {
				t.Errorf("%s includes %s: %t", tier, other, got)
			}
		}
	}
	t.Setenv(TierEnv, "")
	if tier, err := runningTier(); tier != TierTest || err != nil {
		t.Errorf("without %s the tier is %q, error %v", TierEnv, tier, err)
	}
	t.Setenv(TierEnv, "everything")
	if _, err := runningTier(); err == nil || !strings.Contains(err.Error(), "use test, all or release") {
		t.Errorf("an unknown tier gives the error %v", err)
	}
}

// TestTierOfPrograms: a tier builds only the programs that its tests need. The oldest
// Kubernetes and the GitOps agent take minutes, so only a release waits for them.
func TestTierOfPrograms(t *testing.T) {
	bare := []string{"etcd", "kube-apiserver", "kube-controller-manager", "registry"}
	for _, name := range TierPrograms(TierTest) {
		if !slices.Contains(bare, name) {
			t.Errorf("\"make test\" builds %s", name)
		}
	}
	release := []string{"gitops-agent", "etcd@1.34", "kube-apiserver@1.34", "kube-controller-manager@1.34"}
	var later []string
	for _, name := range TierPrograms(TierRelease) {
		if !slices.Contains(TierPrograms(TierAll), name) {
			later = append(later, name)
		}
	}
	if diff := cmp.Diff(release, later); diff != "" {
		t.Errorf("programs that only \"make test-release\" builds (-want +got):\n%s", diff)
	}
}

// TestNothingInstallsBehindATest: only the installer, its command and their tests may name a
// program that installs packages.
func TestNothingInstallsBehindATest(t *testing.T) {
	t.Parallel()
	installs := regexp.MustCompile(`\b(apt-get|aptitude|dpkg|labtest\.Install)\b|["'/]apt["' ]|"make", "packages"`)
	installer := []string{"internal/labtest/packages.go", "internal/labtest/packages_test.go", "lab/commands.go", "lab/packages_test.go"}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || slices.Contains(installer, strings.TrimPrefix(path, "../../")) {
			return err
		}
		text, err := os.ReadFile(path)
		if command := installs.Find(text); command != nil {
			t.Errorf("%s names %s: list the package in internal/labtest/packages.go instead", path, command)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
