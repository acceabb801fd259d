package commandline

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxValue limits one value, such as a cell of a table, in characters. The note of an event
	// fits.
	maxValue = 1200
	// maxLine limits a line.
	maxLine = 5 * maxValue
	// ellipsis ends a text that was cut.
	ellipsis = "…"
)

// isPlain reports whether a terminal shows the character and nothing else: it doesn't move the
// cursor, ring, or change the direction of the text.
func isPlain(r rune) bool { return unicode.IsPrint(r) }

// OneLine makes a text safe to print as one value: annotations, events and answers of registries
// come from other users than the one who reads them here. It replaces characters that would begin
// another line or cell, or control the terminal, and cuts a long text.
func OneLine(text string) string {
	var out strings.Builder
	length := 0
	for _, r := range text {
		if length++; length > maxValue {
			return out.String() + ellipsis
		}
		if !isPlain(r) {
			r = unicode.ReplacementChar
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Screen is where a command writes text for people. Whatever the text contains, it replaces
// characters that control a terminal, and cuts long lines, so a command cannot forget to.
type Screen struct {
	to io.Writer

	mu     sync.Mutex
	length int    // of the current line
	rest   []byte // the beginning of a character whose end wasn't written yet
}

// NewScreen makes a screen that writes to a terminal, a file or a pipe.
func NewScreen(to io.Writer) *Screen { return &Screen{to: to} }

// Write implements io.Writer.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bytes.Buffer
	left := slices.Concat(s.rest, text)
	for len(left) > 0 && utf8.FullRune(left) {
		r, size := utf8.DecodeRune(left)
		left = left[size:]
		s.show(&out, r)
	}
	s.rest = bytes.Clone(left)
	if _, err := s.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (s *Screen) show(out *bytes.Buffer, r rune) {
	if r == '\n' {
		s.length = 0
		out.WriteByte('\n')
		return
	}
	s.length++
	switch {
	case s.length == maxLine:
		out.WriteString(ellipsis)
	case s.length > maxLine:
	case isPlain(r) || r == '\t':
		out.WriteRune(r)
	default:
		out.WriteRune(unicode.ReplacementChar)
	}
}

// Raw is what a screen writes to, for the program's own colours and for output that programs read.
// Other writers stay as they are.
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(*Screen); ok {
		return s.to
	}
	return w
}

// JSON makes a writer for JSON that may end up on a terminal: it escapes characters in strings that
// a terminal would obey and that encoders leave as they are. Programs read the same. Each call of
// Write has whole characters.
func JSON(w io.Writer) io.Writer { return jsonWriter{Raw(w)} }

type jsonWriter struct{ to io.Writer }

// Write implements io.Writer.
func (j jsonWriter) Write(text []byte) (int, error) {
	safe := text
	if !IsPlain(text) {
		var out bytes.Buffer
		for _, r := range string(text) {
			switch {
			case isPlain(r) || r == '\n' || r == '\t':
				out.WriteRune(r)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
			default:
				fmt.Fprintf(&out, `\u%04x`, r)
			}
		}
		safe = out.Bytes()
	}
	if _, err := j.to.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}

// IsPlain reports whether a text contains nothing that controls a terminal but lines and tabs.
func IsPlain(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return !isPlain(r) && r != '\n' && r != '\t' }) < 0
}
