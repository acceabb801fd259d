package reloader

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/feature/reloader"
)

// newAlerts notifies the receiver of reloads. It is nil if alerts are off, or if the error says
// why they can't be sent. The options are completed.
func newAlerts(a Alert, o notify.Options) (*notify.Notifier, error) {
	if !a.On {
		return nil, nil //nolint:nilnil // a nil notifier notifies nobody
	}
	if a.URL == "" {
		return nil, errors.New("ALERT_ON_RELOAD is true, but ALERT_WEBHOOK_URL is not set")
	}
	transport, err := through(string(a.Proxy))
	if err != nil {
		return nil, err
	}
	config := notice.Each(notice.Target{
		Name: "ALERT_WEBHOOK_URL", Kind: notice.Webhook, URL: a.URL,
		Headers: map[string]notice.Hidden{"Content-Type": notice.Hidden(a.contentType())}, Body: a.body,
	})
	o.Config, o.Transport = &config, transport
	return notify.New(o), nil
}

// through is a transport that uses the proxy, and none without one: the environment's proxies
// aren't for alerts.
func through(proxy string) (*http.Transport, error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second}
	if proxy == "" {
		return transport, nil
	}
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, errors.New("ALERT_WEBHOOK_PROXY is not a URL") // It may contain a password.
	}
	transport.Proxy = http.ProxyURL(u)
	return transport, nil
}

// The sinks that take JSON. Any other takes text.
const (
	sinkSlack      = "slack"
	sinkTeams      = "teams"
	sinkGoogleChat = "gchat"
)

func (a Alert) contentType() string {
	switch a.Sink {
	case sinkSlack, sinkTeams, sinkGoogleChat:
		return "application/json"
	default:
		return "text/plain"
	}
}

// body is the original's request for one message.
func (a Alert) body(text string) []byte {
	if a.Info != "" {
		text = a.Info + " : " + text
	}
	switch a.Sink {
	case sinkSlack:
		return encode(slackMessage{[]slackAttachment{{Color: "good", Author: "Reloader", Text: text}}})
	case sinkTeams, sinkGoogleChat:
		return encode(map[string]string{"text": text})
	default:
		return []byte(strings.ReplaceAll(text, "*", ""))
	}
}

type slackMessage struct {
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color  string `json:"color"`
	Author string `json:"author_name"`
	Text   string `json:"text"`
}

// encode writes values that can always be encoded.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}

// alertText is the message about a reload, with bold names.
func alertText(e reloader.Event) string {
	return "Changes detected in *" + e.Source.Name + "* of type *" + string(e.Source.Type) + "* in namespace *" + e.About.Namespace +
		"*: reloaded *" + e.About.Name + "* of type *" + e.About.Kind + "* in namespace *" + e.About.Namespace + "*"
}

// newWebhook sends a request to the URL of --webhook-url at each call, in the background. The
// options are completed.
func newWebhook(u notice.Hidden, o notify.Options) *notify.Notifier {
	config := notice.Each(notice.Target{
		Name: "--webhook-url", Kind: notice.Webhook, URL: u,
		Body: func(string) []byte { return []byte(`{"webhook":"update successful"}`) },
	})
	o.Config = &config
	return notify.New(o)
}

// call queues one request.
func call(webhook *notify.Notifier) {
	webhook.Announce(announce.Event{About: &corev1.ObjectReference{}, Reason: reloader.Reloaded})
}
