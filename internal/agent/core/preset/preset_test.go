package preset_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/core/preset"
)

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		reason, app            string
		choice                 preset.Choice
		check, notify, confirm string
	}{
		"sidecar":    {reason: "another container's process is found by its name", app: "nginx", check: "nginx -t -q -c {dir}/nginx.conf", notify: "signal:HUP@name:nginx", confirm: "workers:name:nginx"},
		"subprocess": {reason: "the child is meant", app: "nginx", choice: preset.Choice{Child: true, File: "etc/n.conf"}, check: "nginx -t -q -c {dir}/etc/n.conf", notify: "signal:HUP@child", confirm: "workers:child"},
		"address": {
			reason: "the application's own address replaces the default", app: "prometheus", choice: preset.Choice{URL: "http://127.0.0.1:1/p/"},
			check: "promtool check config {dir}/prometheus.yml", notify: "http://127.0.0.1:1/p/-/reload", confirm: "metric:prometheus_config_last_reload_successful==1@http://127.0.0.1:1/p/metrics",
		},
		"socket": {reason: "haproxy is asked on its master socket", app: "haproxy", choice: preset.Choice{Socket: "/s"}, check: "haproxy -c -f {dir}/haproxy.cfg", notify: "signal:USR2@name:haproxy", confirm: "haproxy:/s"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := preset.Resolve(c.app, c.choice)
			if err != nil || p.Check != c.check || strings.Join(p.Notify, " ") != c.notify || p.Confirm != c.confirm {
				t.Errorf("%s: %+v %v", c.reason, p, err)
			}
		})
	}
}

// Nothing that Resolve should have filled in may be left.
func TestNoPlaceholderIsLeft(t *testing.T) {
	for _, name := range preset.Names() {
		p, err := preset.Resolve(name, preset.Choice{Socket: "/s"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, text := range append(p.Notify, p.Check, p.Confirm) {
			if rest := strings.ReplaceAll(text, "{dir}", ""); strings.ContainsAny(rest, "{}") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}
