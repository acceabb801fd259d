package cli

import (
	"context"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/run"
)

type logOptions struct {
	run.LogOptions
}

func (o *logOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.Format, "log-format", "text", "format of log lines: text or json")
	fs.StringVar(&o.Level, "log-level", "info", "least level that is logged: debug (also what was decided against), info, warn or error")
}

// logger makes the logger of a command. Invalid log flags are a usage error.
func (o *logOptions) logger(ctx context.Context, w io.Writer, env Environment) (logr.Logger, error) {
	log, err := env.Logger(ctx, w, o.LogOptions)
	if err != nil {
		return logr.Logger{}, usageError{err}
	}
	return log, nil
}
