package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	// readEvery is how often the targets file is read.
	readEvery = 10 * time.Second
	// lastWords limits how long remaining messages are sent at the end.
	lastWords = 5 * time.Second
	// mostBytes limits the targets file; a Secret isn't larger.
	mostBytes = 1 << 20
)

// Options of a Notifier.
type Options struct {
	// File has the targets. It is read again and again.
	File string
	// Config replaces the file.
	Config *notice.Config
	// Namespace returns the annotations of a namespace, by which it chooses a target; nil when
	// namespaces don't choose.
	Namespace func(string) map[string]string
	// Metrics is nil for none.
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Report is called when messages aren't sent or the file can't be read, once for each kind
	// of failure in a row. Its errors contain neither addresses nor keys.
	Report func(error)
	// Transport replaces the usual one, which uses the proxies of the environment.
	Transport http.RoundTripper
	// Answered, unless it is nil, gets the beginning of each answer. Then any status means that
	// the message was sent.
	Answered func(status int, body []byte)
}

// Notifier sends events to the targets. A nil one has no targets.
type Notifier struct {
	options Options
	metrics *metrics

	mu      sync.Mutex
	text    []byte // of the file when it was last read
	said    string // the last problem with the file
	config  notice.Config
	senders map[string]*sender
}

// New makes a Notifier and reads its file. Messages are sent while Run runs, and by Flush.
func New(o Options) *Notifier {
	n := &Notifier{options: o, metrics: newMetrics(o.Metrics), senders: map[string]*sender{}}
	if o.Config != nil {
		n.use(*o.Config)
		return n
	}
	n.read()
	return n
}

// Announce queues an event for its targets, if it is one that users are notified of. It never
// waits for a target.
func (n *Notifier) Announce(e announce.Event) {
	severity, is := notice.SeverityOf(input.Reason(e.Reason), e.Warning)
	if n == nil || !is {
		return
	}
	now := n.options.Now()
	it := notice.Notice{
		At: now, Reason: input.Reason(e.Reason), Severity: severity,
		Namespace: e.About.Namespace, Kind: e.About.Kind, Name: e.About.Name, Text: e.Note,
	}
	if !e.Change.IsZero() {
		it.Change, it.Shared = e.Change.String(), e.Change.IsShared()
	}
	chosen := ""
	if n.options.Namespace != nil {
		chosen = strings.TrimSpace(n.options.Namespace(it.Namespace)[settings.Notify])
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.config.For(it, chosen) {
		n.senders[name].add(it, now)
	}
}

// Problem says what is wrong with the target that a namespace chooses, empty when nothing is or
// the targets aren't known.
func (n *Notifier) Problem(namespace, target string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.config.Targets == nil {
		return ""
	}
	return n.config.Problem(namespace, target)
}

// Run reads the file and sends messages until the context ends.
func (n *Notifier) Run(ctx context.Context) {
	if n == nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		n.mu.Lock()
		for _, s := range n.senders {
			s.started.Do(func() { running.Go(func() { s.run(ctx) }) })
		}
		n.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(readEvery):
		}
		if n.options.Config == nil {
			n.read()
		}
	}
}

// Flush sends the remaining messages at the end of a process, within a few seconds and even if the
// context has ended.
func (n *Notifier) Flush(ctx context.Context) {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	n.mu.Lock()
	senders := slices.Collect(maps.Values(n.senders))
	n.mu.Unlock()
	var running sync.WaitGroup
	for _, s := range senders {
		running.Go(func() { s.flush(ctx) })
	}
	running.Wait()
}

// read reads the file. One that can't be used changes nothing but the metric.
func (n *Notifier) read() {
	text, err := readFile(n.options.File)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.text != nil && bytes.Equal(text, n.text) {
		return
	}
	n.text = text
	var config notice.Config
	if err == nil {
		config, err = notice.Parse(text)
	}
	if err != nil {
		n.metrics.setValid(false)
		if err.Error() != n.said {
			n.said = err.Error()
			n.options.Report(fmt.Errorf("read the notification targets: %w; the previous targets stay in use", err))
		}
		return
	}
	n.said = ""
	n.metrics.setValid(true)
	n.use(config)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = errors.New("the file is larger than 1 MiB")
	}
	return text, err
}

// use replaces the configuration. A target that stays keeps its queue.
func (n *Notifier) use(c notice.Config) {
	n.config = c
	for name, s := range n.senders {
		if _, stays := c.Targets[name]; !stays {
			s.stop()
			delete(n.senders, name)
			n.metrics.forget(name)
		}
	}
	for name, t := range c.Targets {
		if s, is := n.senders[name]; is {
			s.set(t, c.Policy(t))
			continue
		}
		n.senders[name] = newSender(t, c.Policy(t), &n.options, n.metrics)
	}
}
