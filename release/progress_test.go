package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A terminal has one line that changes; a log has lines, and one now and then while
// nothing else happens.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal bool
		during   time.Duration
		want     string
	}{
		"terminal": {
			terminal: true, during: 500 * time.Millisecond,
			want: "\r\x1b[Kcompile: 3 packages, 0s\r\x1b[Kcompile: 3 packages, 0s\r\x1b[Kcompiled in 1s\n",
		},
		"log": {
			during: 70 * time.Second,
			want:   "compile\n  compile: 3 packages, 30s\n  compile: 3 packages, 1m0s\ncompiled in 1m10s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				step := (&progress{out: &out, terminal: c.terminal}).Begin("compile")
				step.Update("3 packages")
				time.Sleep(c.during)
				step.End("compiled")
				if out.String() != c.want {
					t.Errorf("shown is\n%q, want\n%q", out.String(), c.want)
				}
			})
		})
	}
}

// The error of a step that fails begins on a line of its own, also on a terminal.
func TestProgressOfAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		shown := &progress{out: &out, terminal: true}
		shown.Begin("push")
		time.Sleep(redraw)
		synctest.Wait()
		shown.stop()
		shown.stop()
		if want := "\r\x1b[Kpush: 0s\r\x1b[K"; out.String() != want {
			t.Errorf("shown is %q, want %q", out.String(), want)
		}
	})
}

// Who builds images learns first how long it will take.
func TestBuildSaysHowLongItTakes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is compiled
	var out bytes.Buffer
	if err := run(ctx, []string{"images", "--out", filepath.Join(t.TempDir(), "images"), "--source", ".."}, io.Discard, &out); err == nil {
		t.Error("a build that was cancelled ended well")
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); !strings.Contains(first, "minutes the first time") {
		t.Errorf("the first line is %q", first)
	}
}
