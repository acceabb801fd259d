package reloader

import (
	"log/slog"
	"strings"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/run"
)

// silent is above every level that is logged: the original's fatal and panic lines end it.
const silent = slog.LevelError + 4

// readLog reads the format and level of the log. With a wrong format, the level isn't applied
// either, as in the original.
func (o *Options) readLog() {
	o.Log = run.LogOptions{Lower: true}
	switch o.Process.LogFormat {
	case "":
	case "json":
		o.Log.JSON = true
	default:
		o.warn("--log-format %q: want json or nothing; the log is text of level info", o.Process.LogFormat)
		return
	}
	levels := map[string]slog.Level{
		"trace": slog.LevelDebug - 4, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warning": slog.LevelWarn, "warn": slog.LevelWarn,
		"error": slog.LevelError, "fatal": silent, "panic": silent,
	}
	level, known := levels[strings.ToLower(o.Process.LogLevel)]
	if !known {
		o.warn("--log-level %q: want trace, debug, info, warning, error, fatal or panic; the level is info", o.Process.LogLevel)
	}
	o.Log.Level = level
}

// warn logs a warning, a level that logr lacks.
func warn(log logr.Logger, message string, pairs ...any) {
	slog.New(logr.ToSlogHandler(log)).Warn(message, pairs...)
}
