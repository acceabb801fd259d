package run

import (
	"context"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Environment is a program's view of its process.
type Environment struct {
	Stdout, Stderr io.Writer
	// Lookup finds an environment variable.
	Lookup func(string) (string, bool)
	// Environ lists the environment, to find unknown variables; nil skips the check.
	Environ func() []string
	// Program is the name under which the process was started.
	Program string
	// Version of the build.
	Version string
	// LogLibraries passes the logger to the libraries. They keep it in unguarded process
	// variables, so only a program's start may do it; nil leaves them unchanged.
	LogLibraries func(logr.Logger)
	// Now is the clock.
	Now func() time.Time
}

// LogLibraries makes the Kubernetes libraries of this process write to log.
func LogLibraries(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
}

// HandToLibraries passes a logger to the libraries, if that is allowed here.
func (e Environment) HandToLibraries(log logr.Logger) {
	if e.LogLibraries != nil {
		e.LogLibraries(log)
	}
}

// LogOptions are the format of log lines, text unless JSON is set, and the minimum level.
type LogOptions struct {
	JSON  bool
	Level slog.Level
	// Lower spells levels debug, info, warning and error instead of DEBUG, INFO, WARN and ERROR.
	Lower bool
}

// Logger makes the logger of a process that stops at the end of ctx, and passes it to the
// libraries too.
func (e Environment) Logger(ctx context.Context, w io.Writer, o LogOptions) logr.Logger {
	options := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: o.plainLevel}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if o.JSON {
		handler = slog.NewJSONHandler(w, options)
	}
	log := logr.FromSlogHandler(stopLog{Handler: handler, stopped: ctx.Err})
	e.HandToLibraries(log.V(1))
	return log
}

// plainLevel writes DEBUG for every level below info; logr has many of them.
func (o LogOptions) plainLevel(_ []string, a slog.Attr) slog.Attr {
	level, ok := a.Value.Any().(slog.Level)
	if !ok || a.Key != slog.LevelKey {
		return a
	}
	if level < slog.LevelInfo {
		level = slog.LevelDebug
	}
	word := level.String()
	switch {
	case o.Lower && level == slog.LevelWarn:
		word = "warning"
	case o.Lower:
		word = strings.ToLower(word)
	}
	return slog.String(slog.LevelKey, word)
}

// gcPercent lets the heap grow by half between two collections instead of doubling. Nearly all
// garbage is made while a first list streams in, and a memory limit has to allow for that peak.
// bench/README.md has the figures.
const gcPercent = 50

// BoundGarbage applies gcPercent and 90% of the container's memory limit, where GOGC and
// GOMEMLIMIT aren't set. Near the limit the runtime collects more often instead of exceeding it.
func (e Environment) BoundGarbage() {
	if _, set := e.Lookup("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	_, _ = memlimit.Set() // There is nothing to follow outside of a container.
}
