package commandline

import (
	"slices"
	"strings"
)

// variablePrefix is the prefix of both programs' environment variables.
const variablePrefix = "LOCKSTEP_"

// Variable is the environment variable of a flag: LOCKSTEP_MAX_DELAY for --max-delay.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// NotRead is the warning about a variable that looks like a flag of the program but doesn't set it.
func NotRead(variable, flag string) string {
	return "Warning: environment variable " + variable + " is not read: use --" + flag
}

// foreignVariables have Lockstep's prefix but don't set a flag: those that Lockstep writes into
// containers and for commands that the agent runs, and those that a drop-in mode of the agent or
// the project's own tools read.
func foreignVariables() []string {
	return []string{
		"LOCKSTEP_INPUTS", "LOCKSTEP_DIR", "LOCKSTEP_GENERATION", "LOCKSTEP_CHANGED_FILES", "LOCKSTEP_HEALTH_ADDR",
		"LOCKSTEP_LAB", "LOCKSTEP_LAB_CACHE", "LOCKSTEP_LAB_PART", "LOCKSTEP_TIER", "LOCKSTEP_BINARY", "LOCKSTEP_PATIENCE",
	}
}

// UnknownVariables are the variables with Lockstep's prefix that a program with these flags
// doesn't know. environ is as in os.Environ. Variables that Kubernetes sets for a Service whose
// name begins with lockstep aren't meant for the program.
func UnknownVariables(environ, flags []string) []string {
	var known, unknown []string
	for _, flag := range flags {
		known = append(known, Variable(flag))
	}
	names := make([]string, len(environ))
	for i, pair := range environ {
		names[i], _, _ = strings.Cut(pair, "=")
	}
	for _, name := range names {
		ours := strings.HasPrefix(name, variablePrefix)
		if ours && !slices.Contains(known, name) && !slices.Contains(foreignVariables(), name) && !isOfService(name, names) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// isOfService reports whether Kubernetes has set the variable for a Service. It sets all
// variables of a Service together, including NAME_SERVICE_HOST.
func isOfService(name string, names []string) bool {
	return slices.ContainsFunc(names, func(other string) bool {
		service, isHost := strings.CutSuffix(other, "_SERVICE_HOST")
		rest, belongs := strings.CutPrefix(name, service)
		return isHost && belongs && (strings.HasPrefix(rest, "_SERVICE_") || rest == "_PORT" || strings.HasPrefix(rest, "_PORT_"))
	})
}
