package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// logLine is what the story reads of a line of Lockstep's JSON log.
type logLine struct {
	Level    string `json:"level"`
	Message  string `json:"msg"`
	Workload string `json:"workload"`
	Verb     string `json:"verb"`
	Reason   string `json:"reason"`
	Detail   string `json:"message"`
	Resource string `json:"resource"`
	Version  string `json:"version"`
	Error    string `json:"err"`

	at time.Time
}

// narrator reads Lockstep's log as it is written, says it in plain words and
// remembers it for the checks of the story.
type narrator struct {
	printer *printer
	began   time.Time

	mu    sync.Mutex
	rest  []byte
	lines []logLine
}

func newNarrator(p *printer) *narrator {
	return &narrator{printer: p, began: time.Now()}
}

// Write takes a piece of the log.
func (n *narrator) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest = append(n.rest, text...)
	for {
		line, rest, complete := bytes.Cut(n.rest, []byte("\n"))
		if !complete {
			return len(text), nil
		}
		n.take(line)
		n.rest = rest
	}
}

func (n *narrator) take(text []byte) {
	l := logLine{at: time.Now()}
	if err := json.Unmarshal(text, &l); err != nil {
		l.Level, l.Message = "ERROR", string(text) // a crash does not speak JSON
	}
	n.lines = append(n.lines, l)
	if words := l.words(); words != "" {
		n.printer.line(fmt.Sprintf("%s  %5.1fs  %s", n.printer.painted(yellow, "lockstep"), l.at.Sub(n.began).Seconds(), words))
	}
}

// words say a log line plainly. Most lines at debug level are of no interest to
// a reader and get none.
func (l logLine) words() string {
	switch {
	case l.Message == "lockstep starts":
		return "starts, version " + l.Version
	case l.Level == "ERROR":
		return "has a problem: " + l.Message + " " + l.Error
	case l.Message != "decided":
		return ""
	}
	reason := " (" + l.Reason + ")"
	switch l.Verb {
	case "remember":
		return "remembers what " + l.Workload + " has: " + l.Detail + reason
	case "wait":
		return "saw " + l.Detail + "; waits for more" + reason
	case "move":
		return "rolls " + l.Workload + ": " + l.Detail + reason
	case "leave":
		return "leaves " + l.Workload + " alone: " + l.Detail + reason
	case "hold":
		return "holds " + l.Workload + ": " + l.Detail + reason
	}
	return ""
}

// await waits for a line.
func (n *narrator) await(ctx context.Context, what string, match func(logLine) bool) error {
	return eventually(ctx, patience, func(context.Context) (bool, string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range n.lines {
			if match(l) {
				return true, ""
			}
		}
		return false, what + " (the last line of its log: " + n.lastLocked() + ")"
	})
}

// awaitVerb waits for the next decision with a verb about the application, after
// the lines that had been read when mark was taken.
func (n *narrator) awaitVerb(ctx context.Context, mark int, verb string) error {
	return eventually(ctx, patience, func(context.Context) (bool, string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range n.lines[mark:] {
			if l.Message == "decided" && l.Verb == verb && l.Workload == "Deployment/"+namespace+"/"+deployment {
				return true, ""
			}
		}
		return false, fmt.Sprintf("Lockstep did not decide to %s %s (the last line of its log: %s)", verb, deployment, n.lastLocked())
	})
}

// mark is a place in the log.
func (n *narrator) mark() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lines)
}

func (n *narrator) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lastLocked()
}

func (n *narrator) lastLocked() string {
	if len(n.lines) == 0 {
		return "none"
	}
	l := n.lines[len(n.lines)-1]
	return l.Message + " " + l.Detail + l.Error
}
