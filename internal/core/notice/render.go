package notice

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"
)

// signatureHeader has the time and the HMAC of time and body: "t=1763175600,v1=6c3f…".
const signatureHeader = "X-Lockstep-Signature"

// Request is one POST to a target.
type Request struct {
	Header map[string]string
	Body   []byte
}

// chat is what a chat takes: the size of one message and of a whole request in bytes, how a text
// is escaped, and the request's JSON.
type chat struct {
	message, post int
	escape        *strings.Replacer
	body          func(note string, texts []string) any
}

// chatOf is the chat of a kind; false for a target that isn't for people.
func chatOf(kind Kind) (chat, bool) {
	// A fence shows a text as it is; it must not end early.
	fence := []string{"```", "'''"}
	switch kind {
	case Slack: // It truncates a text after 40,000 characters. The three characters start links and mentions.
		return chat{3000, 30000, strings.NewReplacer(append(fence, "&", "&amp;", "<", "&lt;", ">", "&gt;")...), func(note string, texts []string) any {
			return map[string]any{"text": note + fenced(texts, "")}
		}}, true
	case GoogleChat: // It takes 4,096 characters, and reads <users/all> as a mention.
		return chat{3000, 4000, strings.NewReplacer(append(fence, "<", "‹")...), func(note string, texts []string) any {
			return map[string]any{"text": note + fenced(texts, "\n")}
		}}, true
	case Discord: // It takes 2,000 characters.
		return chat{1800, 1900, strings.NewReplacer(fence...), func(note string, texts []string) any {
			return map[string]any{"content": note + fenced(texts, "\n"), "allowed_mentions": map[string]any{"parse": []string{}}}
		}}, true
	case Teams: // It takes 28 KB of JSON. A text run isn't Markdown.
		return chat{3000, 12000, strings.NewReplacer(), card}, true
	case Alertmanager, PagerDuty, Webhook:
	}
	return chat{}, false
}

func fenced(texts []string, between string) string {
	return "```" + strings.Join(texts, "\n```"+between+"```") + "\n```"
}

// card is an Adaptive Card in a message, as the workflow "post to a channel when a webhook request
// is received" takes it.
func card(note string, texts []string) any {
	if note != "" {
		texts = append([]string{strings.TrimSpace(note)}, texts...)
	}
	blocks := make([]any, len(texts))
	for i, text := range texts {
		blocks[i] = map[string]any{
			"type": "RichTextBlock", "separator": i > 0,
			"inlines": []any{map[string]any{"type": "TextRun", "text": text}},
		}
	}
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil,
		"content": map[string]any{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
			"msteams": map[string]any{"width": "Full"}, "body": blocks,
		},
	}}}
}

// Render makes one request to the target: it takes as many messages from the front of the queue as
// fit into one, and at least one. Dropped is how many others were dropped before.
func Render(t Target, queue []Message, dropped int, now time.Time) (request Request, taken int) {
	var body []byte
	c, isChat := chatOf(t.Kind)
	switch {
	case t.Body != nil:
		body, taken = t.Body(queue[0].Notices[0].Text), 1
	case isChat:
		note := ""
		if dropped > 0 {
			note = number(dropped) + " messages were dropped\n"
		}
		texts := c.texts(t, queue)
		body, taken = encode(c.body(note, texts)), len(texts)
	case t.Kind == Alertmanager:
		var alerts []any
		for taken < len(queue) && (taken == 0 || len(alerts) < mostAlerts) {
			alerts = append(alerts, alertsOf(queue[taken])...)
			taken++
		}
		body = encode(alerts)
	case t.Kind == PagerDuty:
		body, taken = encode(incident(t, queue[0])), 1
	case t.Template != "":
		body, taken = []byte(queue[0].fill(t.Template)), 1
	default:
		body, taken = encode(document(queue[0], dropped)), 1
	}
	return Request{Header: t.header(body, now), Body: body}, taken
}

// texts are the messages from the front of a queue that fit into one request, and at least one.
func (c chat) texts(t Target, queue []Message) (texts []string) {
	size := 0
	for _, m := range queue {
		text := c.escape.Replace(cut(t.line(m), c.message))
		if size += len(text) + len("``````\n\n"); len(texts) > 0 && size > c.post {
			break
		}
		texts = append(texts, text)
	}
	return texts
}

// line is a message for people.
func (t Target) line(m Message) string {
	severity, text := string(m.Severity), m.Text()
	if n := m.Notices[0]; t.Plain {
		text = n.Kind + " " + n.Namespace + "/" + n.Name + ": " + n.Text
		if m.Severity == Warning {
			severity = "warn" // Users filter by this word.
		}
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return ' ' // JSON needs six characters for each of them.
		}
		return r
	}, text)
	return t.Prefix + "[" + m.At.Format(time.RFC3339) + "][" + severity + "] " + text
}

// encode writes JSON. Escapes for HTML would make a text up to six times as long.
func encode(v any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil // Maps, lists and texts can always be encoded.
	}
	return bytes.TrimSpace(body.Bytes())
}

func (t Target) header(body []byte, now time.Time) map[string]string {
	header := map[string]string{"Content-Type": "application/json"}
	if t.Template != "" && !isJSONTemplate(t.Template) {
		header["Content-Type"] = "text/plain; charset=utf-8"
	}
	for name, value := range maps.All(t.Headers) {
		header[name] = string(value)
	}
	if t.Token != "" {
		header["Authorization"] = "Bearer " + string(t.Token)
	}
	if t.HMAC != "" {
		header[signatureHeader] = sign(t.HMAC, body, now)
	}
	return header
}

// sign is the signature of a body: the time is signed with it, so a receiver can refuse an old
// request that somebody repeats.
func sign(key Hidden, body []byte, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
