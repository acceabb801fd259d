package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// logLine is the part of a line of Lockstep's JSON log that the story reads.
type logLine struct {
	Level    string `json:"level"`
	Message  string `json:"msg"`
	Workload string `json:"workload"`
	Source   string `json:"source"`
	Verb     string `json:"verb"`
	Reason   string `json:"reason"`
	Detail   string `json:"message"`
	Resource string `json:"resource"`
	Version  string `json:"version"`
	Error    string `json:"err"`

	at time.Time
}

// narrator reads Lockstep's log as it is written, rewords it in plain English and keeps it
// for the checks of the story.
type narrator struct {
	printer  *printer
	workload string // the application, as the log names it
	began    time.Time

	mu    sync.Mutex
	rest  []byte
	spoke bool // of a decision
	lines []logLine
}

func newNarrator(p *printer, workload string) *narrator {
	return &narrator{printer: p, workload: workload, began: time.Now()}
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
		l.Level, l.Message = "ERROR", string(text) // a crash isn't logged as JSON
	}
	n.lines = append(n.lines, l)
	if n.isOfCrowd(l) {
		return
	}
	// That all is well is worth showing once, for a Lockstep that has just started.
	if words := l.words(); words != "" && (l.Reason != "InStep" || !n.spoke) {
		n.spoke = n.spoke || l.Message == "decided"
		n.printer.line(fmt.Sprintf("%s  %5.1fs  %s", n.printer.painted(yellow, "lockstep"), l.at.Sub(n.began).Seconds(), words))
	}
}

// isOfCrowd reports whether a line is about one of the many Deployments, and not about its rollout:
// a reader would see it a dozen times.
func (n *narrator) isOfCrowd(l logLine) bool {
	return strings.Contains(l.Workload, "/"+team) && l.Verb != "roll"
}

// remembered counts the workloads that Lockstep has on record, of those whose names have this beginning.
func (n *narrator) remembered(prefix string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := map[string]bool{}
	for _, l := range n.lines {
		if l.Verb == "remember" && strings.Contains(l.Workload, "/"+prefix) {
			known[l.Workload] = true
		}
	}
	return len(known)
}

// words is a log line in plain English. Most debug lines are not interesting for a reader
// and have none.
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
	if l.Source != "" {
		return l.ofSource() + reason
	}
	switch l.Verb {
	case "remember":
		return "remembers the versions of " + l.workload() + ": " + l.Detail + reason
	case "wait":
		return "saw " + l.Detail + "; waits for more" + reason
	case "roll":
		return "rolls out " + l.workload() + ": " + l.Detail + reason
	case "leave":
		return "leaves " + l.workload() + " alone: " + l.Detail + reason
	case "hold":
		return "holds " + l.workload() + ": " + l.Detail + reason
	}
	return ""
}

// workload is the workload as commands write it: deployment/web.
func (l logLine) workload() string {
	kind, rest, _ := strings.Cut(l.Workload, "/")
	_, name, _ := strings.Cut(rest, "/")
	return strings.ToLower(kind) + "/" + name
}

// ofSource describes an action on a ConfigMap or Secret.
func (l logLine) ofSource() string {
	if l.Verb == "attach" {
		return "attaches " + l.Source + " " + l.Detail
	}
	return "looks at " + l.Source + ": " + l.Detail
}

// hasDecision reports whether a decision about the application was read after
// the mark: with the verb, or any when that is empty.
func (n *narrator) hasDecision(mark int, verb string) bool {
	return n.decision(mark, verb).Message != ""
}

// decision is the first one about the application after the mark, with the verb, or any when
// that is empty. It is empty when there is none.
func (n *narrator) decision(mark int, verb string) logLine {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines[mark:] {
		if l.Message == "decided" && l.Workload == n.workload && (verb == "" || l.Verb == verb) {
			return l
		}
	}
	return logLine{}
}

// mark is a place in the log.
func (n *narrator) mark() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lines)
}

// last is the last informative line.
func (n *narrator) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) == 0 {
		return "none"
	}
	l := n.lines[len(n.lines)-1]
	return l.Message + " " + l.Detail + l.Error
}
