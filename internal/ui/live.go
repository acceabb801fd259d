package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// mostLives is how many live connections are served.
	mostLives = 32
	// sendTimeout limits sending to a browser that doesn't read.
	sendTimeout = 10 * time.Second
	// againEvery is how often a page is made again without a change: it shows ages.
	againEvery = 10 * time.Second
)

// serveLive sends a page whenever it is another one than the browser has, as server-sent events:
// "page" with the new <main>, or "gone" with words while the cluster doesn't answer.
func (s *Server) serveLive(w http.ResponseWriter, r *http.Request) {
	at, err := url.Parse(r.URL.Query().Get("at"))
	if err != nil || at.Host != "" || at.Scheme != "" || !strings.HasPrefix(at.Path, "/") {
		http.Error(w, "which page?", http.StatusBadRequest)
		return
	}
	select {
	case s.lives <- struct{}{}:
		defer func() { <-s.lives }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close some", mostLives), http.StatusServiceUnavailable)
		return
	}
	has := r.Header.Get("Last-Event-ID")
	if has == "" {
		has = r.URL.Query().Get("has")
	}
	at, _ = withoutPart(at)
	(&live{server: s, at: at, has: has, to: w, flush: http.NewResponseController(w)}).run(r)
}

// live is a page that is open.
type live struct {
	server *Server
	at     *url.URL
	// has is the version that the browser has, and gone the words that it shows.
	has, gone string
	to        http.ResponseWriter
	flush     *http.ResponseController
}

func (l *live) run(r *http.Request) {
	heard, stop := l.server.board.listen()
	defer stop()
	l.to.Header().Set("Content-Type", "text/event-stream")
	if l.write("retry: 1000\n\n") != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	looks := false
	for ctx.Err() == nil {
		began := l.server.board.now()
		p := page{gone: l.server.board.gone()}
		if p.gone == "" {
			p = l.server.make(ctx, l.at)
			l.server.board.narrow(heard, p)
		}
		if !looks && p.namespace != "" && !p.ofBoard && l.server.covers(p.namespace) {
			looks = true
			l.server.board.watches.look(ctx, &looking, p.namespace, p.object, heard.wake)
		}
		if ctx.Err() != nil || l.send(p) != nil {
			return
		}
		// Changes come in groups, and a page that is hard to make isn't made all the time.
		if took := l.server.board.now().Sub(began); !p.ofBoard {
			pause(ctx, max(gather, min(took, longestRest)))
		}
		select {
		case <-heard.changed:
		case <-time.After(l.server.again):
		case <-ctx.Done():
		}
	}
}

// send sends what the browser doesn't have yet. A page that can't be fresh isn't sent: the browser
// keeps the last one, and says since when it is.
func (l *live) send(p page) error {
	if p.gone != "" {
		if l.gone != "" {
			return l.write(": still\n\n") // An error tells that the browser left.
		}
		l.gone, l.has = p.gone, ""
		return l.event("gone", "", shown(p.gone))
	}
	l.gone = ""
	version := p.version()
	if version == l.has {
		return l.write(": same\n\n")
	}
	l.has = version
	return l.event("page", version, string(p.main()))
}

func (l *live) event(name, id, data string) error {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	for line := range strings.Lines(data) {
		b.WriteString("data: " + strings.TrimRight(line, "\r\n") + "\n")
	}
	return l.write(b.String() + "\n")
}

func (l *live) write(words string) error {
	if err := l.flush.SetWriteDeadline(l.server.board.now().Add(sendTimeout)); err != nil {
		return err
	}
	if _, err := l.to.Write([]byte(words)); err != nil {
		return err
	}
	return l.flush.Flush()
}
