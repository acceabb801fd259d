package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

const (
	// requestTimeout limits a request.
	requestTimeout = 10 * time.Second
	// chatPace is the least time between two requests to a target. Chats take about one a second.
	chatPace = time.Second
	// firstPause follows a failure; it doubles up to lastPause. A target may ask for up to
	// longestPause.
	firstPause   = time.Second
	lastPause    = time.Minute
	longestPause = 10 * time.Minute
	// mostAnswer limits how much of an answer is read.
	mostAnswer = 1 << 10
)

// sender sends the messages of one target, one request after the other.
type sender struct {
	options *Options
	metrics *metrics
	started sync.Once
	added   chan struct{}
	stopped chan struct{}
	stop    func()

	mu     sync.Mutex
	target notice.Target
	client *http.Client
	queue  *notice.Queue
	// said is the last failure that was reported.
	said string
}

func newSender(t notice.Target, p notice.Policy, o *Options, m *metrics) *sender {
	s := &sender{options: o, metrics: m, added: make(chan struct{}, 1), stopped: make(chan struct{}), queue: notice.NewQueue(p)}
	s.stop = sync.OnceFunc(func() { close(s.stopped) })
	s.set(t, p)
	m.begin(t.Name)
	return s
}

// set changes the target.
func (s *sender) set(t notice.Target, p notice.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil || s.target.CA != t.CA {
		s.client = newClient(t.CA, s.options.Transport)
	}
	s.target = t
	s.queue.SetPolicy(p)
}

// add queues a notice.
func (s *sender) add(n notice.Notice, now time.Time) {
	s.mu.Lock()
	dropped := s.queue.Add(n, now)
	s.metrics.count(s.target.Name, resultDropped, dropped)
	s.metrics.setWaiting(s.target.Name, s.queue.Len())
	s.mu.Unlock()
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// run sends messages when they are due, until the context ends.
func (s *sender) run(ctx context.Context) {
	var notBefore time.Time
	pause := firstPause
	for {
		if !s.awaitDue(ctx, notBefore) {
			return
		}
		answer, taken := s.send(ctx, (*notice.Queue).Due)
		now := s.options.Now()
		switch {
		case ctx.Err() != nil:
			return
		case taken == 0:
			continue // It was dropped meanwhile.
		case answer.again:
			s.report(answer)
			advised, _ := retryafter.Of(answer.header, now, longestPause)
			notBefore = now.Add(max(advised, pause))
			pause = min(2*pause, lastPause)
		default:
			s.report(answer)
			notBefore, pause = now.Add(s.pace()), firstPause
		}
	}
}

// pace is the least time between two requests to the target. One that gets a request for each
// notice isn't slowed down: a burst would take too long, and it can ask for a pause.
func (s *sender) pace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target.Body != nil {
		return 0
	}
	return chatPace
}

// awaitDue waits until a message is due, and not before a time; false at the end.
func (s *sender) awaitDue(ctx context.Context, notBefore time.Time) bool {
	for {
		s.mu.Lock()
		next, waits := s.queue.Next()
		s.mu.Unlock()
		var due <-chan time.Time
		if waits {
			if next.Before(notBefore) {
				next = notBefore
			}
			wait := next.Sub(s.options.Now())
			if wait <= 0 && ctx.Err() == nil {
				return true
			}
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.stopped:
			return false
		case <-s.added:
		case <-due:
		}
	}
}

// flush sends everything that waits, until a request fails.
func (s *sender) flush(ctx context.Context) {
	all := func(q *notice.Queue, _ time.Time) []notice.Pending { return q.All() }
	for {
		answer, taken := s.send(ctx, all)
		s.report(answer)
		if taken == 0 || answer.again {
			return
		}
	}
}

// report reports a failure, unless it is the one that was reported last.
func (s *sender) report(a answer) {
	said, err := "", a.err
	if err != nil {
		if a.then != "" {
			err = fmt.Errorf("%w; %s", err, a.then)
		}
		said = err.Error()
	}
	s.mu.Lock()
	isNew := said != s.said
	s.said = said
	s.mu.Unlock()
	if isNew && err != nil {
		s.options.Report(err)
	}
}

// send sends one request with the first of the chosen messages. It returns how many there were.
func (s *sender) send(ctx context.Context, choose func(*notice.Queue, time.Time) []notice.Pending) (answer, int) {
	now := s.options.Now()
	s.mu.Lock()
	chosen := choose(s.queue, now)
	target, client, dropped := s.target, s.client, s.queue.Dropped()
	s.mu.Unlock()
	if len(chosen) == 0 {
		return answer{}, 0
	}
	messages := make([]notice.Message, len(chosen))
	for i, p := range chosen {
		messages[i] = p.Message
	}
	request, taken := notice.Render(target, messages, dropped, now)
	got := post(ctx, client, target, request, s.options.Answered)
	if got.again && ctx.Err() != nil || s.isStopped() {
		return got, taken
	}
	s.metrics.count(target.Name, got.result(), taken)
	if !got.again {
		s.mu.Lock()
		s.queue.Done(chosen[:taken], s.options.Now())
		s.queue.Reported(dropped)
		s.metrics.setWaiting(target.Name, s.queue.Len())
		s.mu.Unlock()
	}
	return got, taken
}

// isStopped reports whether the target is gone.
func (s *sender) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// answer is how a request ended.
type answer struct {
	err error
	// then is what becomes of the messages, for people.
	then string
	// again is true when the messages have to be sent again. The header may say when.
	again  bool
	header http.Header
}

func (a answer) result() string {
	switch {
	case a.again:
		return resultRetried
	case a.err != nil:
		return resultRefused
	default:
		return resultSent
	}
}

// post sends one request. Its errors contain neither the address nor what was sent.
func post(ctx context.Context, client *http.Client, t notice.Target, r notice.Request, answered func(int, []byte)) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(t.URL), bytes.NewReader(r.Body))
	if err != nil {
		return answer{err: fmt.Errorf("notify %s: its address is not a URL", t.Name)}
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: fmt.Errorf("notify %s: %w", t.Name, withoutURL(err)), again: true}
	}
	defer response.Body.Close()
	if answered != nil {
		body, _ := io.ReadAll(io.LimitReader(response.Body, mostAnswer)) // The status is enough.
		answered(response.StatusCode, body)
		return answer{}
	}
	refusal := fmt.Errorf("notify %s: it answered %d %s", t.Name, response.StatusCode, http.StatusText(response.StatusCode))
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return answer{}
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return answer{err: refusal, then: "Lockstep sends the messages again", again: true, header: response.Header}
	default:
		return answer{err: refusal, then: "the messages are dropped; check the webhook"}
	}
}

// newClient makes a client that trusts further certificates. A redirect would send the messages
// elsewhere.
func newClient(ca string, transport http.RoundTripper) *http.Client {
	if own, ok := http.DefaultTransport.(*http.Transport); ok && transport == nil {
		own = own.Clone()
		own.DisableKeepAlives = true // Messages are rare, and a connection that was kept may be dead.
		if ca != "" {
			pool, err := x509.SystemCertPool()
			if err != nil {
				pool = x509.NewCertPool()
			}
			pool.AppendCertsFromPEM([]byte(ca))
			own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
		transport = own
	}
	return &http.Client{
		Transport: transport, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// withoutURL removes the webhook from an error. The library has several texts for a timeout.
func withoutURL(err error) error {
	e, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case e.Timeout():
		return errors.New("it didn't answer in time")
	default:
		return e.Err
	}
}

// Send sends one message to a target at once.
func Send(ctx context.Context, t notice.Target, m notice.Message, now time.Time) error {
	request, _ := notice.Render(t, []notice.Message{m}, 0, now)
	return post(ctx, newClient(t.CA, nil), t, request, nil).err
}
