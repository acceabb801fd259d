package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/damping"
)

// The words of a series in its written form: "level:6 at:2026-11-15T03:04:05Z".
const levelWord, atWord = "level:", "at:"

// Series is what the record keeps of a source that changes again and again.
type Series struct {
	// Version is the one that began to be delivered last.
	Version string
	// State counts how often in a row that happened.
	damping.State
}

// Encode writes the series as text, without its version.
func (s Series) Encode() string {
	return levelWord + strconv.Itoa(s.Level) + " " + atWord + writtenTime(s.Last)
}

// DecodeSeries parses Encode's output. It skips words that it doesn't know.
func DecodeSeries(version, text string) (Series, error) {
	s := Series{Version: version}
	var err error
	for word := range strings.SplitSeq(text, " ") {
		if level, ok := strings.CutPrefix(word, levelWord); ok && err == nil {
			s.Level, err = strconv.Atoi(level)
		}
		if at, ok := strings.CutPrefix(word, atWord); ok && err == nil {
			s.Last, err = readTime(at)
		}
	}
	if err != nil {
		return Series{}, fmt.Errorf("decode a series: %w", err)
	}
	return s, nil
}
