package cli

import (
	"errors"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

// advised adds to an error what a person can do about it. Only this package knows the
// names of flags.
func advised(err error) error {
	if _, missing := errors.AsType[*access.NoNamespaceError](err); missing {
		return fmt.Errorf("%w: make it, or name another one with --own-namespace", err)
	}
	if errors.Is(err, ledger.ErrForeignConfigMap) {
		return fmt.Errorf("%w: rename it, or set another --state-name", err)
	}
	return err
}
