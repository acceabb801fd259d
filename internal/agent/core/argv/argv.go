// Package argv knows how a command line in one string becomes the arguments of a program,
// without a shell: it only expands the agent's own placeholders.
package argv

import (
	"errors"
	"strings"
)

// Split cuts a command line at blanks. Single quotes keep everything, double quotes keep
// blanks, a backslash keeps the next character. An error does not show the line, which may
// contain credentials.
func Split(line string) ([]string, error) {
	s := splitter{}
	for _, r := range line {
		s.take(r)
	}
	if s.quote != 0 || s.escaped {
		return nil, errors.New("a quote or a backslash is not closed")
	}
	s.end()
	if len(s.words) == 0 {
		return nil, errors.New("the command is empty")
	}
	return s.words, nil
}

// Quote quotes a word so Split returns it unchanged.
func Quote(word string) string {
	if word != "" && !strings.ContainsAny(word, "'\"\\ \t\n") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// splitter is the state between two characters.
type splitter struct {
	words   []string
	word    strings.Builder
	started bool
	escaped bool
	quote   rune
}

func (s *splitter) take(r rune) {
	switch {
	case s.escaped:
		s.escaped = false
		s.add(r)
	case r == '\\' && s.quote != '\'':
		s.escaped = true
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote == 0 && (r == '\'' || r == '"'):
		s.quote, s.started = r, true
	case s.quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
		s.end()
	default:
		s.add(r)
	}
}

func (s *splitter) add(r rune) {
	s.started = true
	s.word.WriteRune(r)
}

func (s *splitter) end() {
	if s.started {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.started = false
}

// Expand replaces {name} in every argument by the name's value. Braces around
// anything else stay as they are.
func Expand(args []string, values map[string]string) []string {
	pairs := make([]string, 0, 2*len(values))
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	replacer := strings.NewReplacer(pairs...)
	expanded := make([]string, len(args))
	for i, arg := range args {
		expanded[i] = replacer.Replace(arg)
	}
	return expanded
}
