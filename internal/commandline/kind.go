package commandline

import "strings"

// SourceKind finds "configmap" or "secret" by the names that kubectl accepts, ignoring case.
func SourceKind(called string) (kind string, known bool) {
	switch strings.ToLower(called) {
	case "configmap", "configmaps", "cm":
		return "configmap", true
	case "secret", "secrets":
		return "secret", true
	}
	return "", false
}
