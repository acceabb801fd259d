package ui

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// shell writes commands as a user types them.
type shell struct {
	// program is how the user calls lockstep, with the flags that lead to the cluster.
	program string
	// installed are the installation's own objects. Names that are empty are the default ones.
	installed ask.Own
}

// usualNamespace is where commands search an installation.
const usualNamespace = "lockstep-system"

// own are the flags for an installation that commands don't find by themselves.
//
//go:noinline
func (s shell) own() []string {
	var flags []string
	if name := s.installed.Namespace; name != "" && name != usualNamespace {
		flags = append(flags, "--controller-namespace", name)
	}
	if name := s.installed.State; name != "" && name != ask.DefaultState {
		flags = append(flags, "--state-name", name)
	}
	return flags
}

// ownKey are the flags for a command that needs the installation key.
func (s shell) ownKey() []string {
	if name := s.installed.Key; name != "" && name != ask.DefaultKey {
		return append(s.own(), "--key-name", name)
	}
	return s.own()
}

// resume ends an operator's stops, and those of versions that failed: each at its source, and that
// of an image at the workload.
func (s shell) resume(namespace, workload string, stops []ask.Stop, versions []ask.VersionStop) []offer {
	var all []offer
	add := func(use string, arguments ...string) {
		all = append(all, offer{use, s.lockstep(append(append([]string{"resume"}, arguments...), s.own()...)...)})
	}
	for _, stop := range stops {
		if stop.Namespace == "" {
			add("End the stop of every automatic change", "--all")
		} else {
			add("End the stop of this namespace", "-n", stop.Namespace)
		}
	}
	for _, version := range versions {
		if id, err := input.ParseSource(version.Input); err == nil {
			add("Deliver the failed version anyway", id.String(), "-n", namespace)
		} else if workload != "" {
			add("Deliver the failed image anyway", workload, "-n", namespace)
		}
	}
	return all
}

// plan shows the effect of a change that isn't applied yet.
func (s shell) plan(namespace string) offer {
	return offer{"See what a changed file would roll out", s.lockstep(append([]string{"plan", "-f", "FILE", "-n", namespace}, s.ownKey()...)...)}
}

// lockstep is a command of lockstep.
//
//go:noinline
func (s shell) lockstep(arguments ...string) string {
	name, flags := s.parts()
	return withFlags(name, arguments, flags)
}

// resolve asks a registry and no cluster.
func (s shell) resolve(image string) string {
	name, _ := s.parts()
	return withFlags(name, []string{"resolve", image}, "")
}

// kubectl is a command of kubectl for the same cluster.
func (s shell) kubectl(arguments ...string) string {
	_, flags := s.parts()
	return withFlags("kubectl", arguments, flags)
}

// parts are the program's name and its flags: "kubectl lockstep" and " --context lab".
func (s shell) parts() (name, flags string) {
	if at := strings.Index(s.program, " --"); at >= 0 {
		return s.program[:at], s.program[at:]
	}
	return s.program, ""
}

// withFlags puts the flags last, where a reader expects them, or before the "--" after which a
// flag would be an argument.
func withFlags(name string, arguments []string, flags string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, argument := range arguments {
		if argument == "--" {
			b.WriteString(flags)
			flags = ""
		}
		b.WriteString(" " + quote(argument))
	}
	return b.String() + flags
}

// quote is an argument for a POSIX shell. Between single quotes nothing has a meaning but the
// next single quote.
func quote(argument string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if argument != "" && strings.TrimFunc(argument, plain) == "" {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// offer is a command, and what it is for.
type offer struct{ use, command string }

// commandList shows commands to copy.
func commandList(offers []offer) node {
	return section("commands", "Commands",
		el("dl", "", each(offers, func(o offer) node {
			return together(el("dt", "", text(o.use)), el("dd", "", commandCode(o.command)))
		})))
}

// commandCode is a command as code, with a button that copies it.
func commandCode(command string) node {
	return el("div", class("command"), el("code", "", text(command)),
		el("button", attr("type", "button")+class("copy")+attr("data-copy", command), text("Copy")))
}
