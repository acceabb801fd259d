package keychain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// maxFile limits the size of Docker's configuration.
const maxFile = 4 << 20

// File is Docker's configuration file. Each query reads it, so changes apply immediately.
type File struct {
	Path string
	// Named means that a user named the file, so it has to exist. Elsewhere Docker may or may not
	// have written one.
	Named bool
}

// Credentials of the file, and those of its credential helpers.
func (f File) Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error) {
	text, err := f.read()
	if errors.Is(err, fs.ErrNotExist) && !f.Named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Docker's configuration: %w", err)
	}
	r := ring{repository: repository}
	c, err := r.addFile(text)
	if err != nil {
		err = fmt.Errorf("docker's configuration %s: %w", f.Path, err)
	}
	found := r.credentials()
	helped, helperErr := c.ask(ctx, repository)
	if helped != (Credential{}) {
		found = append([]Credential{helped}, found...)
	}
	return found, errors.Join(err, helperErr)
}

func (f File) read() ([]byte, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile))
}
