package labtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// fakeApt writes down what it is asked for. What it would install is there after
// the word "install", unless it fails.
const fakeApt = `#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >>"$0.asked"
test "$1" = install || exit 0
test -z "$FAKE_APT_FAILS" || { echo "no such package" >&2; exit 100; }
for tool in containerd runc ctr ip; do /bin/cp "$0" "${0%/*}/$tool"; done
for plugin in bridge host-local loopback; do : >"${0%/*}/$plugin"; done
`

func TestMissingToolsAreInstalledOrNamed(t *testing.T) {
	const install = "install -q -y --no-install-recommends containerd runc containernetworking-plugins iproute2"
	const advice = "install containerd, runc, containernetworking-plugins, iproute2"
	cases := map[string]struct {
		reason string
		apt    bool
		env    map[string]string
		asked  []string
		want   []string // of the error; none means that there is no error
	}{
		"installed": {
			reason: "root on Debian, and nobody has refused",
			apt:    true, asked: []string{"noninteractive update -q", "noninteractive " + install},
		},
		"refused": {
			reason: "whoever refuses is told what to install", apt: true,
			env: map[string]string{InstallEnv: "no"}, want: []string{"a real node needs containerd, runc, ctr, ip", advice},
		},
		"another system": {reason: "there is no apt-get", want: []string{"a real node needs containerd", advice}},
		"failed": {
			reason: "what apt-get says is passed on", apt: true, env: map[string]string{"FAKE_APT_FAILS": "1"},
			asked: []string{"noninteractive update -q", "noninteractive " + install},
			want:  []string{advice, "apt-get install", "no such package"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			t.Setenv(program.CacheEnv, t.TempDir())
			t.Setenv(InstallEnv, "")
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			apt := filepath.Join(dir, "apt-get")
			if c.apt {
				if err := os.WriteFile(apt, []byte(fakeApt), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			err := installTools(t.Context(), &strings.Builder{}, dir)
			if (err == nil) != (len(c.want) == 0) {
				t.Errorf("%s: error is %v", c.reason, err)
			}
			for _, want := range c.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want %q in it", c.reason, err, want)
				}
			}
			asked, _ := os.ReadFile(apt + ".asked")
			if diff := cmp.Diff(c.asked, strings.FieldsFunc(string(asked), func(r rune) bool { return r == '\n' })); diff != "" && len(asked)+len(c.asked) > 0 {
				t.Errorf("%s: apt-get was asked for (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}
