package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestWhatAStopCutsOffIsNoError(t *testing.T) {
	t.Parallel()
	var (
		released = errors.New("leader election lost")
		given    = fmt.Errorf("roll deployment/web in namespace shop: %w", context.Canceled)
		full     = errors.New("write the record: disk is full")
	)
	cases := map[string]struct {
		reason  string
		level   slog.Level
		stopped bool
		err     error
		want    string
	}{
		"Released":         {"a stop releases the lease", slog.LevelInfo, true, released, ""},
		"Lost":             {"nobody asked for a stop", slog.LevelInfo, false, released, "level=ERROR"},
		"GivenUp":          {"a stop gives up requests", slog.LevelInfo, true, given, ""},
		"GivenUpInService": {"nobody asked for a stop", slog.LevelInfo, false, given, "level=ERROR"},
		"Failed":           {"what fails during a stop is an error", slog.LevelInfo, true, full, "level=ERROR"},
		"WithoutCause":     {"a line without an error", slog.LevelInfo, true, nil, "level=ERROR"},
		"Debugging":        {"who debugs sees all", slog.LevelDebug, true, released, "level=DEBUG"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out bytes.Buffer
			log := Environment{}.Logger(ctx, &out, LogOptions{Level: tc.level})
			if tc.stopped {
				stop()
			}
			log.V(1).WithName("library").WithValues("workload", "web").Error(tc.err, "a line")
			if got := out.String(); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: %v is logged as %q, want %q", tc.reason, tc.err, got, tc.want)
			}
		})
	}
}
