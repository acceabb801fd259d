package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

type logOptions struct {
	format string
	level  string
}

func (o *logOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.format, "log-format", "text", "format of log lines: text or json")
	fs.StringVar(&o.level, "log-level", "info", "least level that is logged: debug (also what was decided against), info, warn or error")
}

// LogLibraries makes the Kubernetes libraries of this process write to log.
func LogLibraries(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
}

// logger makes the logger of a process that is asked to stop by the end of ctx, and hands
// it to the libraries as well.
func (o *logOptions) logger(ctx context.Context, w io.Writer, env Environment) (logr.Logger, error) {
	level, err := commandline.LogLevel(o.level)
	if err != nil {
		return logr.Logger{}, usageError{err}
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel}
	var handler slog.Handler
	switch o.format {
	case "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return logr.Logger{}, usageError{fmt.Errorf("--log-format %q: want text or json", o.format)}
	}
	log := logr.FromSlogHandler(stopLog{Handler: handler, stopped: ctx.Err})
	env.logLibraries(log.V(1))
	return log, nil
}

// plainLevel writes DEBUG for every level below info; logr has many of them.
func plainLevel(_ []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && level < slog.LevelInfo {
		return slog.String(slog.LevelKey, slog.LevelDebug.String())
	}
	return a
}
