package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// keyFile is the state file with the key for generation names. A process that can read it
// can test guesses against those names.
const keyFile = "key"

// hideKey restricts the key to the agent: when a volume is mounted again with an fsGroup,
// every file becomes readable for that group. It writes a new file, because another user may
// own the old one and its mode can't be changed.
func (v *Volume) hideKey() error {
	info, err := v.state.Lstat(keyFile)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode().Perm()&0o077 == 0) {
		return nil
	}
	key, err := v.ReadState(keyFile)
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	return v.WriteState(keyFile, key)
}

// access defines who may read one of the agent's own files.
type access struct {
	mode fs.FileMode
	gid  int
}

// private is for the agent alone.
func private() access { return access{mode: 0o600, gid: -1} }

// WriteState replaces one of the agent's own files next to the data. It is readable for
// everyone who may read the data, by its group or as any user, except for the key.
func (v *Volume) WriteState(name string, content []byte) error {
	who := access{mode: v.opts.FileMode&0o444 | 0o600, gid: v.opts.GID}
	if name == keyFile {
		who = private()
	}
	return writeState(v.state, name, content, who)
}

func writeState(state *os.Root, name string, content []byte, who access) error {
	temporary := name + ".tmp"
	err := state.RemoveAll(temporary) // another user may own a leftover
	if err == nil {
		err = writeNew(state, temporary, content, who)
	}
	if err == nil {
		err = state.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), state.RemoveAll(temporary))
	}
	return nil
}

// writeNew writes a file that doesn't exist. It opens nothing that another program put there in
// the meantime.
func writeNew(state *os.Root, name string, content []byte, who access) error {
	f, err := state.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && who.gid >= 0 {
		err = f.Chown(-1, who.gid)
	}
	if err == nil {
		err = f.Chmod(who.mode)
	}
	return errors.Join(err, f.Close())
}

// ReadState reads one of the agent's own files; a missing one is empty.
func (v *Volume) ReadState(name string) ([]byte, error) {
	raw, err := plainfile.ReadIn(v.state, name, plainfile.Large)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}
