package ask

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// reasonsPage is the reference of reasons.
const reasonsPage = "https://github.com/lockstep-dev/lockstep/blob/main/docs/reference/reasons.md"

// Reference is the address of a reason in the reference, empty for a word that isn't there.
func Reference(reason string) string {
	if input.MeaningOf(input.Reason(reason)) == "" {
		return ""
	}
	return reasonsPage + "#" + strings.ToLower(reason)
}
