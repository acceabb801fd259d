package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
)

const (
	// gather is how long messages are collected for one request.
	gather = time.Second
	// requestTimeout limits a request.
	requestTimeout = 10 * time.Second
	// firstPause follows a failure; it doubles up to lastPause.
	firstPause = time.Second
	lastPause  = time.Minute
	// most limits the queue. The oldest messages are dropped.
	most = 500
)

// Options of an Announcer.
type Options struct {
	// URL is the webhook. Anyone who knows it can write to the channel, so logs and errors don't
	// contain it.
	URL string
	// Prefix begins every message.
	Prefix string
	Now    func() time.Time
	// Report is called when messages were not sent, once for each kind of failure in a row.
	Report func(error)
}

// Announcer sends events to Slack, several in one request.
type Announcer struct {
	options Options
	client  *http.Client
	added   chan struct{}

	mu      sync.Mutex
	queue   []string
	dropped int
}

// New makes an Announcer. Messages are sent while Run runs, and by Flush.
func New(o Options) *Announcer {
	// A redirect would send the messages elsewhere.
	client := &http.Client{Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Announcer{options: o, client: client, added: make(chan struct{}, 1)}
}

// Announce queues an event, if it is one that users are notified of.
func (a *Announcer) Announce(e announce.Event) {
	if !isReported(e) {
		return
	}
	a.mu.Lock()
	a.queue = append(a.queue, message(a.options.Prefix, a.options.Now(), e))
	a.trim()
	a.mu.Unlock()
	select {
	case a.added <- struct{}{}:
	default:
	}
}

// Run sends queued messages until the context ends.
func (a *Announcer) Run(ctx context.Context) {
	said, pause := "", firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.added:
		}
		for wait := gather; wait > 0; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			var err error
			wait, err = a.send(ctx)
			switch {
			case err == nil:
				said, pause = "", firstPause
				continue
			case ctx.Err() == nil && err.Error() != said:
				said = err.Error()
				a.options.Report(err)
			}
			if wait == again {
				wait, pause = pause, min(2*pause, lastPause)
			}
		}
	}
}

// Flush sends the remaining messages, as far as the context allows.
func (a *Announcer) Flush(ctx context.Context) {
	for {
		wait, err := a.send(ctx)
		if err != nil {
			a.options.Report(err)
		}
		if wait == 0 || err != nil {
			return
		}
	}
}

// again requests another try after the usual pause.
const again time.Duration = -1

// send sends the messages at the front of the queue, and returns when to send the rest: zero
// when there is none. Messages that Slack refuses permanently are dropped.
func (a *Announcer) send(ctx context.Context) (time.Duration, error) {
	text, taken, dropped := a.take()
	if len(taken) == 0 {
		return 0, nil
	}
	if dropped > 0 {
		text = fmt.Sprintf("%d messages were dropped\n%s", dropped, text)
	}
	wait, err := a.post(ctx, text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if wait != 0 {
		a.queue, a.dropped = append(taken, a.queue...), a.dropped+dropped
		a.trim()
		return wait, err
	}
	if len(a.queue) > 0 {
		wait = gather
	}
	return wait, err
}

// take removes as many messages from the queue as fit into one request.
func (a *Announcer) take() (text string, taken []string, dropped int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, count := post(a.queue)
	taken, a.queue = slices.Clone(a.queue[:count]), a.queue[count:]
	dropped, a.dropped = a.dropped, 0
	return text, taken, dropped
}

// trim drops the oldest messages of a queue that is too long.
func (a *Announcer) trim() {
	if over := len(a.queue) - most; over > 0 {
		a.queue, a.dropped = a.queue[over:], a.dropped+over
	}
}

// post sends one request. The pause is zero when a retry is pointless.
func (a *Announcer) post(ctx context.Context, text string) (time.Duration, error) {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.options.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("notify Slack: the webhook is not a URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return again, fmt.Errorf("notify Slack: %w", withoutURL(err))
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return 0, nil
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		pause := again
		if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil && seconds > 0 {
			pause = min(time.Duration(seconds)*time.Second, lastPause)
		}
		return pause, fmt.Errorf("notify Slack: it answered %s; the messages are sent again", response.Status)
	default:
		return 0, fmt.Errorf("notify Slack: it answered %s; the messages are dropped, check the webhook", response.Status)
	}
}

// withoutURL removes the webhook from an error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
