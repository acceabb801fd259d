package rollouts

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/core/window"
)

// maxWindows bounds how many parsed windows are kept.
const maxWindows = 1024

// windows are maintenance windows that were parsed before. A cluster has few of them, and parsing
// one reads the file of its time zone.
type windows struct {
	mu     sync.Mutex
	parsed map[string]parsedWindow
}

type parsedWindow struct {
	window window.Window
	err    error
}

func (w *windows) parse(text string) (window.Window, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.parsed[text]
	if !ok {
		if len(w.parsed) >= maxWindows || w.parsed == nil {
			w.parsed = map[string]parsedWindow{}
		}
		known.window, known.err = window.Parse(text)
		w.parsed[text] = known
	}
	return known.window, known.err
}
