package spread

import (
	"slices"
	"strconv"
	"strings"
)

// Stopped describes why a version isn't delivered to further workloads, empty when it is. It is
// stopped as soon as it failed on as many workloads as the threshold, zero for never.
func Stopped(failed []string, threshold int) string {
	if threshold == 0 || len(failed) < threshold {
		return ""
	}
	why := "failed on " + Name(slices.Min(failed))
	if more := len(failed) - 1; more > 0 {
		why += " and " + strconv.Itoa(more) + " more"
	}
	return why
}

// Name is a workload's ID for users: "deployment/web in shop" for "Deployment.apps/shop/web".
func Name(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return id
	}
	kind, _, _ = strings.Cut(kind, ".")
	return strings.ToLower(kind) + "/" + name + " in " + namespace
}
