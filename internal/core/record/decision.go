package record

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// MessageLimit is how many bytes of a decision's message are put on record.
const MessageLimit = 256

// Decision is the decision on a workload that isn't in step. The record stores it so a
// program that didn't decide it can report it too.
type Decision struct {
	Reason input.Reason `json:"reason"`
	// Message is the explanation for users, cut at MessageLimit.
	Message string `json:"message,omitempty"`
	// Since is since when the workload is in that situation.
	Since time.Time `json:"since,omitzero"`
	// Next is when the controller checks again, zero when only an event can change
	// anything.
	Next time.Time `json:"next,omitzero"`
}

// IsZero reports whether nothing is on record: the workload is in step.
func (d Decision) IsZero() bool { return d == Decision{} }

// NewDecision makes a decision that fits on record.
func NewDecision(reason input.Reason, message string, since, next time.Time) Decision {
	return Decision{Reason: reason, Message: Brief(message), Since: since.UTC().Truncate(time.Second), Next: upToSecond(next)}
}

// upToSecond is the next full second: checking a moment too early would find nothing.
func upToSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// Brief cuts a message to at most MessageLimit bytes in its encoded form, where a quote
// takes two.
func Brief(message string) string {
	const end = "…"
	message = strings.ToValidUTF8(message, "?")
	length, cut := 0, 0
	for i, r := range message {
		if length <= MessageLimit-len(end) {
			cut = i
		}
		if length += writtenRune(r); length > MessageLimit {
			return message[:cut] + end
		}
	}
	return message
}

// writtenLength is the length of a valid text in JSON, without the quotes around it.
func writtenLength(text string) (length int) {
	for _, r := range text {
		length += writtenRune(r)
	}
	return length
}

// writtenRune is how many bytes of JSON the library writes for a character. Messages are
// measured at every reconciliation of a waiting workload, so they aren't encoded for that.
func writtenRune(r rune) int {
	switch r {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return len(`\n`)
	case '<', '>', '&', '\u2028', '\u2029':
		return len(`\u003c`)
	}
	if r < ' ' {
		return len(`\u0001`)
	}
	return utf8.RuneLen(r)
}
