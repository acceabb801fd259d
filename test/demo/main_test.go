package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestChapterIsLeftOut: one that the cluster lacks something for says what, and the
// story goes on; one that fails ends it.
func TestChapterIsLeftOut(t *testing.T) {
	var told []string
	chapterThat := func(title string, err error) chapter {
		return chapter{title, func(context.Context, *story) error {
			told = append(told, title)
			return err
		}}
	}
	var out strings.Builder
	s := &story{printer: newPrinter(&out, false)}
	failure := errors.New("two rollouts")
	err := tell(t.Context(), s, []chapter{
		chapterThat("a canary", missingError{errors.New("there is no helm in PATH")}),
		chapterThat("a failure", failure),
		chapterThat("the end", nil),
	})
	if !errors.Is(err, failure) || strings.Join(told, ", ") != "a canary, a failure" {
		t.Errorf("told %q, error %v, want the failure to end the story", told, err)
	}
	if want := "Chapter 1, a canary, is left out: there is no helm in PATH."; !strings.Contains(out.String(), want) {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}

func TestFirstChapters(t *testing.T) {
	for asked, want := range map[string]int{"": 7, "1": 1, "7": 7, "0": 0, "8": 0, "-1": 0, "two": 0} {
		got, err := firstChapters(asked)
		if len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("CHAPTERS=%q: %d chapters, error %v, want %d", asked, len(got), err, want)
		}
	}
}
