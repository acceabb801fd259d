// Package preset knows how to check, notify and query well-known applications: the flags
// that a user would otherwise have to find out.
package preset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Preset contains the flags for one application.
type Preset struct {
	// Program is the name of the application's process, and File its main
	// configuration file below the root.
	Program, File string
	// Check, Notify and Confirm are values of the flags of those names. Resolve replaces
	// {program}, {file}, {process} and {url} in them.
	Check   string
	Notify  []string
	Confirm string
	// URL is the application's own default address.
	URL string
}

// Choice adapts a preset to one pod.
type Choice struct {
	// File and URL replace the preset's own when they are not empty.
	File, URL string
	// Socket is a control socket, for applications that have one.
	Socket string
	// Child is true when the application is the agent's own child.
	Child bool
}

// all is a function because a map in a variable could be changed.
func all() map[string]Preset {
	return map[string]Preset{
		"nginx": {
			Program: "nginx", File: "nginx.conf",
			Check: "nginx -t -q -c {dir}/{file}", Notify: []string{"signal:HUP@{process}"}, Confirm: "workers:{process}",
		},
		"haproxy": {
			Program: "haproxy", File: "haproxy.cfg",
			Check: "haproxy -c -f {dir}/{file}", Notify: []string{"signal:USR2@{process}"}, Confirm: "haproxy:{socket}",
		},
		"prometheus": {
			Program: "prometheus", File: "prometheus.yml", URL: "http://127.0.0.1:9090",
			Check: "promtool check config {dir}/{file}", Notify: []string{"{url}/-/reload"},
			Confirm: "metric:prometheus_config_last_reload_successful==1@{url}/metrics",
		},
		"postgresql": {
			Program: "postgres", File: "postgresql.conf",
			Check: "postgres -C max_connections --config-file={dir}/{file}", Notify: []string{"signal:HUP@{process}"},
		},
		"apache": {
			Program: "apache2", File: "apache2.conf",
			Check: "apache2 -t -f {dir}/{file}", Notify: []string{"signal:USR1@{process}"}, Confirm: "workers:{process}",
		},
		"unbound": {
			Program: "unbound", File: "unbound.conf",
			Check: "unbound-checkconf {dir}/{file}", Notify: []string{"signal:HUP@{process}"},
		},
	}
}

// Names lists the presets.
func Names() []string { return slices.Sorted(maps.Keys(all())) }

// ErrNoSocket reports that the application is queried through a socket, and none is
// configured.
var ErrNoSocket = errors.New("application haproxy: its master socket is missing (haproxy -W -S /run/haproxy-master.sock)")

// Resolve returns the preset's flags for one pod.
func Resolve(name string, choice Choice) (Preset, error) {
	p, ok := all()[name]
	if !ok {
		return Preset{}, fmt.Errorf("application %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if strings.Contains(p.Confirm, "{socket}") && choice.Socket == "" {
		return Preset{}, ErrNoSocket
	}
	if choice.File != "" {
		p.File = choice.File
	}
	if choice.URL != "" {
		p.URL = strings.TrimSuffix(choice.URL, "/")
	}
	process := "name:" + p.Program
	if choice.Child {
		process = "child"
	}
	replace := strings.NewReplacer("{file}", p.File, "{url}", p.URL, "{process}", process, "{socket}", choice.Socket)
	p.Check, p.Confirm = replace.Replace(p.Check), replace.Replace(p.Confirm)
	notify := make([]string, 0, len(p.Notify))
	for _, n := range p.Notify {
		notify = append(notify, replace.Replace(n))
	}
	p.Notify = notify
	return p, nil
}
