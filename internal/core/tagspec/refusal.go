package tagspec

import "fmt"

// Reason is why a text was refused.
type Reason string

// The reasons for a refusal.
const (
	// NoTag is a repository without a spec.
	NoTag Reason = "NoTag"
	// HasDigest is a reference that is pinned already.
	HasDigest Reason = "HasDigest"
	// BadRepository is a repository that the kubelet would not pull either.
	BadRepository Reason = "BadRepository"
	// BadTag is neither a tag nor a glob.
	BadTag Reason = "BadTag"
	// BadRange is a range that can't be parsed.
	BadRange Reason = "BadRange"
	// BadPattern is a regular expression that can't be parsed.
	BadPattern Reason = "BadPattern"
	// TooLarge is a text that is longer, or a pattern that is larger, than any useful one.
	TooLarge Reason = "TooLarge"
)

// RefusedError is a text that doesn't name an image or tags.
type RefusedError struct {
	// Text is the refused text, at most its beginning.
	Text string
	// Reason is the same for the same mistake.
	Reason Reason
	// Advice explains what is wrong and what to write.
	Advice string
}

// Error names the refused text and explains what to write.
func (e *RefusedError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Advice) }

func refuse(text string, reason Reason, advice string, args ...any) *RefusedError {
	const shown = 100
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	return &RefusedError{Text: text, Reason: reason, Advice: fmt.Sprintf(advice, args...)}
}
