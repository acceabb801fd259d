package program

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	heartbeat = 20 * time.Second // between two progress lines of a build
	tailLines = 20               // of go build's output are shown when it fails
)

// report shows the progress of a build. It is the standard error of go build -v, which
// prints a line for each package and each download.
type report struct {
	out   io.Writer
	batch []recipe
	begun time.Time

	quit chan struct{}
	gone sync.WaitGroup

	mu       sync.Mutex
	rest     []byte // of an incomplete line
	lines    []string
	packages int
	download int
}

func startReport(out io.Writer, batch []recipe) *report {
	r := &report{out: out, batch: batch, begun: time.Now(), quit: make(chan struct{})}
	expected := FirstBuilds(described(batch), runtime.NumCPU())
	fmt.Fprintf(out, "building %s, first time only, about %s\n", describe(batch), Rough(expected))
	r.gone.Go(r.beat)
	return r
}

func (r *report) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-ticker.C:
			fmt.Fprintln(r.out, r.sofar())
		}
	}
}

func (r *report) sofar() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	doing := fmt.Sprintf("%d packages compiled", r.packages)
	if r.packages == 0 {
		doing = fmt.Sprintf("%d modules downloaded", r.download)
	}
	return fmt.Sprintf("  %s, %s so far", doing, r.elapsed())
}

func (r *report) built() {
	fmt.Fprintf(r.out, "built %s in %s\n", describe(r.batch), r.elapsed())
}

func (r *report) elapsed() time.Duration { return time.Since(r.begun).Round(time.Second) }

// stop ends the heartbeat and waits for its end.
func (r *report) stop() {
	close(r.quit)
	r.gone.Wait()
}

// Write takes the output of go build.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p...)
	for {
		line, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.rest = rest
		r.count(string(line))
	}
}

func (r *report) count(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		r.download++
		return
	case !strings.ContainsAny(line, " \t:"):
		r.packages++
		return
	}
	r.lines = append(r.lines, line)
}

// tail is the end of go build's output, without its progress.
func (r *report) tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines[max(0, len(r.lines)-tailLines):], "\n")
}
