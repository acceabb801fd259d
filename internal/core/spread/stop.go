package spread

import (
	"slices"
	"strconv"

	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// Stopped describes why a version isn't delivered to further workloads, empty when it is. It is
// stopped as soon as it failed on as many workloads as the threshold, zero for never.
func Stopped(failed []string, threshold int) string {
	if threshold == 0 || len(failed) < threshold {
		return ""
	}
	why := "failed on " + objectname.OfID(slices.Min(failed))
	if more := len(failed) - 1; more > 0 {
		why += " and " + strconv.Itoa(more) + " more"
	}
	return why
}
