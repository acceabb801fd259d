package run

import (
	"context"
	"log/slog"

	"github.com/lockstep-dev/lockstep/internal/server"
)

// stopLog logs errors caused by a stop at debug level: every upgrade stops the controller, and
// must not log errors for that. The libraries do not distinguish the two.
type stopLog struct {
	slog.Handler

	// stopped is not nil once the process was asked to stop.
	stopped func() error
}

// Handle implements slog.Handler.
func (h stopLog) Handle(ctx context.Context, line slog.Record) error {
	if line.Level >= slog.LevelError && h.stopped() != nil && isCutOff(line) {
		line.Level = slog.LevelDebug
		if !h.Enabled(ctx, line.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h stopLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h stopLog) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// isCutOff reports whether the line's error comes from the stop alone.
func isCutOff(line slog.Record) bool {
	cut := false
	line.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		cut = is && server.CutOffByStop(err)
		return !is
	})
	return cut
}
