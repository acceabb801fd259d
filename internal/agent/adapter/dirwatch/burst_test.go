package dirwatch_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/dirwatch"
)

// A burst of changes in a plain directory costs one look, and so does the kubelet's swap.
// TestSettle shows the rule in virtual time.
func TestABurstCostsOneLook(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "..one"))
	mkdir(t, filepath.Join(dir, "..two"))
	mustLink(t, "..one", filepath.Join(dir, "..data"))
	woken := make(chan struct{}, 10000)
	done := make(chan error, 1)
	go func() {
		done <- dirwatch.Watch(t.Context(), dir, dirwatch.Options{Rescan: time.Hour, Poll: time.Hour}, func() { woken <- struct{}{} })
	}()
	<-woken // it has begun
	const files = 500
	for i := range files {
		write(t, filepath.Join(dir, "file"+strings.Repeat("x", i%50)), strings.Repeat("y", i))
	}
	await(t, woken, done)
	// More than one when the machine took breaks of its own in the middle.
	if more := settled(woken); more > files/10 {
		t.Errorf("%d files were %d looks, want about one", files, more+1)
	}
	swapLink(t, dir, "..two")
	await(t, woken, done)
}

func await(t *testing.T, woken <-chan struct{}, done <-chan error) {
	t.Helper()
	select {
	case <-woken:
	case err := <-done:
		t.Fatal(errors.Join(errors.New("the watch ended"), err))
	case <-time.After(patience):
		t.Fatal("nobody was woken")
	}
}

// settled counts until nothing comes for several times the gap that ends a burst.
func settled(woken <-chan struct{}) int {
	for n := 0; ; n++ {
		select {
		case <-woken:
		case <-time.After(500 * time.Millisecond):
			return n
		}
	}
}
