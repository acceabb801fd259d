package commandline

import (
	"fmt"
	"runtime"
)

// Version is the line that "version" and "--version" print.
func Version(program, version string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)\n", program, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
