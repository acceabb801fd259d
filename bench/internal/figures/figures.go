// Package figures knows what the benchmarks have in common: how they start and end, and that
// a figure beyond its limit is a failure.
package figures

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Main runs a benchmark as a command that takes a file for its result.
func Main(run func(ctx context.Context, out string) error) {
	ctrl.SetLogger(logr.Discard()) // the client's log isn't a figure
	out := flag.String("out", "", "file for the result; empty means standard output only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// Write writes a result to standard output, and to the file unless that is empty.
func Write(result any, out string) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	if out == "" {
		return nil
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// Limits collects the figures beyond their limits.
type Limits []error

// Most records a figure that is above its limit.
func (l *Limits) Most(what string, got, most int) {
	if got > most {
		*l = append(*l, fmt.Errorf("%s: %d, and at most %d was promised", what, got, most))
	}
}

// Err joins the recorded figures.
func (l Limits) Err() error { return errors.Join(l...) }

// CreateAll creates object(i) for from <= i < to, a few at a time.
func CreateAll(ctx context.Context, c client.Client, from, to int, object func(int) client.Object) error {
	var (
		making sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	numbers := make(chan int)
	for range 8 {
		making.Go(func() {
			for i := range numbers {
				err := c.Create(ctx, object(i))
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for i := from; i < to; i++ {
		numbers <- i
	}
	close(numbers)
	making.Wait()
	return failed
}
