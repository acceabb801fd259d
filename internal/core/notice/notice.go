package notice

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Severity is how urgent a notice is.
type Severity string

// The severities, from the lowest.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Severities lists all of them.
func Severities() []Severity { return []Severity{Info, Warning, Error} }

// SeverityOf is the severity of an event; false when users are not notified of it. They are
// notified of warnings, of rollouts, and of the kill switch, whose own event isn't a warning.
func SeverityOf(reason input.Reason, warning bool) (Severity, bool) {
	switch reason {
	case input.Reloaded, input.Evicted, input.Refreshed, input.AwaitsPods:
		return Info, true
	case input.ReloadFailed, input.RolloutFailed, input.PutBack, input.VersionStopped, input.Unresolved, input.AttachFailed, input.RecordUnwritable:
		return Error, warning
	case input.Stopped:
		return Warning, true
	default:
		return Warning, warning
	}
}

// Notice is one thing that happened to one object.
type Notice struct {
	At       time.Time
	Reason   input.Reason
	Severity Severity
	// Namespace, Kind and Name are the object's.
	Namespace, Kind, Name string
	Text                  string
	// Change is the cause, such as "configmap/app 77ab01c9de"; empty when there is none. Shared is
	// true when it is the same change in all namespaces.
	Change string
	Shared bool
}

// textLimit limits the text of one notice, which may contain an API server's answer.
const textLimit = 1000

// cut shortens a text to a number of bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// object is how users spell the object: "deployment/web".
func (n Notice) object() string { return strings.ToLower(n.Kind) + "/" + n.Name }

// group is the same for notices that are sent as one message. A version that is stopped, and the
// workload that failed with it, are one message.
func (n Notice) group() string {
	reason, where, about := n.Reason, n.Namespace, n.Change
	switch {
	case n.Reason == input.Stopped:
		about = n.Text // each change of the kill switch is news
	case n.Change != "" && n.Reason == input.RolloutFailed:
		reason = input.VersionStopped
	}
	if n.Shared {
		where = ""
	}
	return strings.Join([]string{string(reason), where, about}, "\x00")
}

// sum is the same for a notice that repeats another.
func (n Notice) sum() (short [16]byte) {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(n.Reason), n.Namespace, n.Kind, n.Name, n.Text, n.Change}, "\x00")))
	copy(short[:], sum[:])
	return short
}

// Message is what is sent for notices of one group.
type Message struct {
	// At is the time of the last notice.
	At       time.Time
	Reason   input.Reason
	Severity Severity
	// Namespace is empty when the notices are from several.
	Namespace string
	Change    string
	Notices   []Notice
	// More counts notices that are not listed.
	More int
}

// Join makes one message of the notices of a group, and of a number of others that were not
// kept.
func Join(notices []Notice, more int) Message {
	first := notices[0]
	m := Message{Reason: first.Reason, Severity: first.Severity, Namespace: first.Namespace, Change: first.Change, Notices: notices, More: more}
	for _, n := range notices {
		if n.At.After(m.At) {
			m.At = n.At
		}
		if n.Namespace != first.Namespace {
			m.Namespace = ""
		}
	}
	return m
}

// Test is the message of "lockstep notify test".
func Test(target string, at time.Time) Message {
	return Join([]Notice{{
		At: at, Reason: "Test", Severity: Info, Namespace: "test", Kind: "target", Name: target,
		Text: "a test message, sent with \"lockstep notify test\"",
	}}, 0)
}

// Count is the number of notices.
func (m Message) Count() int { return len(m.Notices) + m.More }

// listed is how many objects, and how many texts, a message for people lists.
const listed = 10

// Title is the first line for people.
func (m Message) Title() string {
	title := string(m.Reason)
	if m.Namespace != "" {
		title += " in namespace " + m.Namespace
	}
	if m.Change != "" {
		title += " for " + m.Change
	}
	if count := m.Count(); count > 1 {
		title += ": " + number(count) + " objects"
	}
	return title
}

// Lines has a line for each text, after the objects that it is about.
func (m Message) Lines() []string {
	var texts []string
	about := map[string][]string{}
	for _, n := range m.Notices {
		if !slices.Contains(texts, n.Text) {
			texts = append(texts, n.Text)
		}
		about[n.Text] = append(about[n.Text], m.name(n))
	}
	more := m.More
	var lines []string
	for i, text := range texts {
		objects := about[text]
		if i >= listed {
			more += len(objects)
			continue
		}
		hidden := max(len(objects)-listed, 0)
		if len(texts) == 1 { // Those that were not kept belong to it.
			hidden, more = hidden+more, 0
		}
		lines = append(lines, andMore(objects[:min(len(objects), listed)], hidden)+": "+text)
	}
	if more > 0 {
		lines = append(lines, "and "+number(more)+" more")
	}
	return lines
}

// name is an object within this message.
func (m Message) name(n Notice) string {
	if m.Namespace == "" {
		return n.Namespace + "/" + n.object()
	}
	return n.object()
}

// objects lists the objects in one line.
func (m Message) objects() string {
	var names []string
	for _, n := range m.Notices {
		if name := m.name(n); len(names) < listed && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return andMore(names, max(m.Count()-listed, 0))
}

func andMore(names []string, more int) string {
	list := strings.Join(names, ", ")
	if more > 0 {
		list += " and " + number(more) + " more"
	}
	return list
}

// Text is the whole message for people.
func (m Message) Text() string {
	return m.Title() + "\n" + strings.Join(m.Lines(), "\n")
}
