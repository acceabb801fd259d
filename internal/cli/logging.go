package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/run"
)

type logOptions struct {
	format, level string
}

func (o *logOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.format, "log-format", "text", "format of log lines: text or json")
	fs.StringVar(&o.level, "log-level", "info", "lowest level to log: debug (includes decisions not to act), info, warn or error")
}

// logger makes the logger of a command. Invalid log flags are a usage error.
func (o *logOptions) logger(ctx context.Context, w io.Writer, env Environment) (logr.Logger, error) {
	level, err := commandline.LogLevel(o.level)
	if err != nil {
		return logr.Logger{}, usageError{err}
	}
	if o.format != "text" && o.format != "json" {
		return logr.Logger{}, usageError{fmt.Errorf("--log-format %q: want text or json", o.format)}
	}
	asJSON := o.format == "json"
	if w = commandline.Raw(w); asJSON { // The handlers escape text by themselves.
		w = commandline.JSON(w)
	}
	return env.Logger(ctx, w, run.LogOptions{JSON: asJSON, Level: level}), nil
}
