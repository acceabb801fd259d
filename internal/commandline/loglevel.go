package commandline

import (
	"fmt"
	"log/slog"
)

// LogLevel parses the value of --log-level.
func LogLevel(text string) (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[text]
	if !ok {
		return 0, fmt.Errorf("--log-level %q: want debug, info, warn or error", text)
	}
	return level, nil
}
