package main

import (
	"errors"
	"io"
	"os"

	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
)

// janitor waits until its standard input ends, which it does when the process
// that holds the other end of the pipe is gone, and then removes the control
// group. The processes in it are gone by then, or are being ended by the kernel.
func janitor(args []string) error {
	if len(args) != 1 {
		return errors.New("want: janitor CONTROL-GROUP")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return controlgroup.Remove(args[0])
}
