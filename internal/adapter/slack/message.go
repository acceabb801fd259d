package slack

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// messageLimit limits one message, postLimit one request: Slack truncates a text after
	// 40,000 characters.
	messageLimit = 3000
	postLimit    = 30000
)

// isReported selects rollouts, and events that require a user to act.
func isReported(e announce.Event) bool {
	return e.Warning || e.Reason == string(input.Reloaded)
}

// level is the word by which users filter messages.
func level(e announce.Event) string {
	switch input.Reason(e.Reason) {
	case input.Reloaded:
		return "info"
	case input.ReloadFailed, input.Unresolved:
		return "error"
	default:
		return "warn"
	}
}

// message is an event as Slack shows it, in its own code fence.
func message(prefix string, at time.Time, e announce.Event) string {
	text := fmt.Sprintf("%s[%s][%s] %s %s/%s: %s", prefix, at.Format(time.RFC3339), level(e), e.About.Kind, e.About.Namespace, e.About.Name, e.Note)
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + "…"
	}
	// These three characters start links and mentions; a fence must not end early.
	return "```" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "```", "'''").Replace(text) + "\n```"
}

// post joins the messages from the front of a queue that fit into one request, and at least one.
func post(queue []string) (text string, count int) {
	for count < len(queue) && (count == 0 || len(text)+len(queue[count]) <= postLimit) {
		text += queue[count]
		count++
	}
	return text, count
}
