package volume

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Mounted stands in for a Volume when another program publishes: the files are
// already where the application reads them, so that staging and publishing
// have nothing to do and going back is impossible. State is kept in memory.
type Mounted struct {
	dir     string
	current string
	state   map[string][]byte
}

// NewMounted is the volume for files that are watched where they are.
func NewMounted(dir string) *Mounted {
	return &Mounted{dir: dir, state: map[string][]byte{}}
}

// Current names the generation that was last taken note of.
func (m *Mounted) Current() (string, error) { return m.current, nil }

// Has is false: no generation but the visible one can be had.
func (m *Mounted) Has(string) bool { return false }

// Verify has nothing to compare: the files are another program's.
func (m *Mounted) Verify(string) error { return nil }

// Obstacles are the other program's matter.
func (m *Mounted) Obstacles(filemap.Tree) map[string]error { return nil }

// Stage returns the directory itself.
func (m *Mounted) Stage(string, filemap.Tree) (string, error) { return m.dir, nil }

// Publish takes note of the generation.
func (m *Mounted) Publish(id string) error {
	m.current = id
	return nil
}

// Prune has nothing to remove.
func (m *Mounted) Prune([]string, func() map[filemap.Digest]bool) (time.Time, error) {
	return time.Time{}, nil
}

// ReadState reads what WriteState kept.
func (m *Mounted) ReadState(name string) ([]byte, error) { return m.state[name], nil }

// WriteState keeps content in memory.
func (m *Mounted) WriteState(name string, content []byte) error {
	m.state[name] = content
	return nil
}

// Unpin has nothing to release.
func (m *Mounted) Unpin([]filemap.Entry) {}
