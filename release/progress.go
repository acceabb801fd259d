package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/release/images"
)

const (
	// redraw is how often a terminal shows the progress of a step, heartbeat how often a log
	// does.
	redraw    = 200 * time.Millisecond
	heartbeat = 30 * time.Second
)

// progress shows steps: on a terminal as one line that changes, elsewhere as a line at
// the beginning, at the end, and now and then between them.
type progress struct {
	out      io.Writer
	terminal bool
	current  *step
}

func newProgress(out io.Writer) *progress {
	file, isFile := out.(*os.File)
	return &progress{out: out, terminal: isFile && term.IsTerminal(int(file.Fd()))}
}

// say announces what will take long.
func (p *progress) say(text string) { fmt.Fprintln(p.out, text) }

// Begin starts to show a step.
func (p *progress) Begin(what string) images.Step {
	s := &step{progress: p, what: what, begun: time.Now(), quit: make(chan struct{})}
	every := redraw
	if !p.terminal {
		every = heartbeat
		fmt.Fprintln(p.out, what)
	}
	s.gone.Go(func() { s.watch(every) })
	p.current = s
	return s
}

// stop ends the displayed step, if there is one: it has failed, and the error begins on a
// new line.
func (p *progress) stop() {
	if p.current == nil {
		return
	}
	close(p.current.quit)
	p.current.gone.Wait()
	p.current = nil
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

type step struct {
	*progress
	what  string
	begun time.Time
	quit  chan struct{}
	gone  sync.WaitGroup

	mu     sync.Mutex
	detail string
}

func (s *step) watch(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
			s.show()
		}
	}
}

func (s *step) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%s: %s", s.what, s.elapsed())
	if s.detail != "" {
		line = fmt.Sprintf("%s: %s, %s", s.what, s.detail, s.elapsed())
	}
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K"+line)
		return
	}
	fmt.Fprintln(s.out, "  "+line)
}

func (s *step) elapsed() time.Duration { return time.Since(s.begun).Round(time.Second) }

// Update records the progress of the step; it is shown at the next tick.
func (s *step) Update(detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detail = detail
}

// End shows the result.
func (s *step) End(result string) {
	s.stop()
	fmt.Fprintf(s.out, "%s in %s\n", result, s.elapsed())
}
