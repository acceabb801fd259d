package cli

import (
	"fmt"
	"io"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// say writes a line for users, whatever its arguments contain.
func say(to io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(to, commandline.OneLine(fmt.Sprintf(format, args...)))
	return err
}
