package volume

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Mounted replaces a Volume when another program publishes. The files are already where the
// application reads them, so staging and publishing do nothing and rolling back is
// impossible. State is kept in memory.
type Mounted struct {
	dir     string
	current string
	state   map[string][]byte
}

// NewMounted is the volume for files that are watched where they are.
func NewMounted(dir string) *Mounted {
	return &Mounted{dir: dir, state: map[string][]byte{}}
}

// Current names the generation that was last recorded.
func (m *Mounted) Current() (string, error) { return m.current, nil }

// Has is false: only the visible generation exists.
func (m *Mounted) Has(string) bool { return false }

// Verify has nothing to compare: the files belong to another program.
func (m *Mounted) Verify(string) error { return nil }

// Obstacles are left to the program that publishes.
func (m *Mounted) Obstacles(filemap.Tree) map[string]error { return nil }

// Stage returns the directory itself.
func (m *Mounted) Stage(string, filemap.Tree) (string, error) { return m.dir, nil }

// Publish records the generation.
func (m *Mounted) Publish(id string) error {
	m.current = id
	return nil
}

// Prune has nothing to remove.
func (m *Mounted) Prune([]string, func() map[filemap.Digest]bool) (time.Time, error) {
	return time.Time{}, nil
}

// ReadState reads the content that WriteState kept.
func (m *Mounted) ReadState(name string) ([]byte, error) { return m.state[name], nil }

// WriteState keeps content in memory.
func (m *Mounted) WriteState(name string, content []byte) error {
	m.state[name] = content
	return nil
}

// Unpin has nothing to release.
func (m *Mounted) Unpin([]filemap.Entry) {}
