package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Colours of a terminal, as their escape sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// printer writes the story. The story and Lockstep's log are written at the same time, so
// each line is written in one piece.
type printer struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
}

func newPrinter(out io.Writer, colour bool) *printer {
	return &printer{out: out, colour: colour}
}

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintln(p.out, text)
}

func (p *printer) painted(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *printer) heading(text string) {
	p.line("")
	p.line(p.painted(bold, text))
	p.line(p.painted(bold, strings.Repeat("-", len(text))))
}

// good is a check that holds.
func (p *printer) good(text string) {
	p.line(p.painted(green, "ok ") + " " + text)
}

func (p *printer) failure(err error) {
	p.line(p.painted(red, "FAILED") + " " + err.Error())
}

// Write takes progress lines of the lab, so a printer can replace a terminal.
func (p *printer) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
