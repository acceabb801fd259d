package record

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// Words of a turn, after its template.
const (
	turnHealthy = "healthy"
	turnFreed   = "freed"
)

// encodeTurn writes a turn as words: "3fa9c1d2e40b77aa healthy". A prepared one has no
// template: " healthy".
func encodeTurn(t spread.Turn) string {
	words := []string{t.Template}
	if t.Healthy {
		words = append(words, turnHealthy)
	}
	if t.Freed {
		words = append(words, turnFreed)
	}
	return strings.Join(words, " ")
}

// decodeTurn parses encodeTurn's output. Words of newer programs are dropped.
func decodeTurn(text string) spread.Turn {
	template, rest, _ := strings.Cut(text, " ")
	t := spread.Turn{Template: template}
	for word := range strings.FieldsSeq(rest) {
		t.Healthy = t.Healthy || word == turnHealthy
		t.Freed = t.Freed || word == turnFreed
	}
	return t
}
