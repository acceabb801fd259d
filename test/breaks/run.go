package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// session is one run of the command.
type session struct {
	out     io.Writer
	results *results
	queue   *queue
	lab     map[string]bool // packages whose tests use the lab
	began   time.Time
	within  time.Duration // see options

	mu       sync.Mutex
	progress progress
	missed   []error
}

func run(ctx context.Context, o options, out io.Writer) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	breaks, err := load(filepath.Join(root, "test/breaks"), o.wanted)
	if err != nil {
		return err
	}
	if breaks, err = since(ctx, root, o.since, breaks); err != nil {
		return err
	}
	trees, err := newTrees(ctx, root, out)
	if err != nil {
		return err
	}
	defer trees.remove()
	s := &session{out: out}
	if s.results, err = readResults(filepath.Join(root, resultsFile), trees.hash, o.fresh); err != nil {
		return err
	}
	todo := s.left(breaks)
	fmt.Fprintln(out, s.progress.begin())
	if len(todo) > 0 {
		if s.lab, err = usersOfTheLab(ctx, trees.first(), todo); err != nil {
			return err
		}
	}
	s.queue, s.began, s.within = newQueue(todo), time.Now(), o.within
	err = s.work(ctx, trees, min(o.workers, len(todo)))
	done := s.progress.takenOver + s.progress.ran
	fmt.Fprintf(out, "%d of %d defects are noticed%s\n", done-len(s.missed), len(breaks), after(s.began))
	switch left := s.queue.left(); {
	case err != nil || done == len(breaks):
	case o.within > 0 && len(left) == len(breaks)-done:
		fmt.Fprintf(out, "%s did not begin within %s: %s\n", count(left), o.within, names(left))
	default:
		err = fmt.Errorf("%d breaks did not run", len(breaks)-done)
	}
	return errors.Join(append(s.missed, err)...)
}

func count(breaks []Break) string {
	if len(breaks) == 1 {
		return "1 break"
	}
	return fmt.Sprintf("%d breaks", len(breaks))
}

func names(breaks []Break) string {
	var all []string
	for _, b := range breaks {
		all = append(all, b.ID)
	}
	return strings.Join(all, " ")
}

// tired reports whether no further test begins.
func (s *session) tired() bool { return s.within > 0 && time.Since(s.began) > s.within }

func after(began time.Time) string {
	return ", after " + time.Since(began).Round(time.Second).String()
}

// left returns the breaks that no earlier run has noticed.
func (s *session) left(breaks []Break) []Break {
	var todo []Break
	for _, b := range breaks {
		if !s.results.has(b) {
			todo = append(todo, b)
		}
	}
	s.progress = progress{all: len(breaks), takenOver: len(breaks) - len(todo)}
	return todo
}

// work lets the workers empty the queue.
func (s *session) work(ctx context.Context, trees *trees, count int) error {
	workers := make([]*worker, count)
	for i := range workers { // All have their copies before the first makes a change.
		tree, err := trees.of(strconv.Itoa(i + 1))
		if err != nil {
			return err
		}
		workers[i] = &worker{session: s, tree: tree}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, count)
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() {
			errs[i] = errors.Join(w.run(ctx), w.end())
			if errs[i] != nil {
				cancel() // An error of one worker stops all.
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// controlled reports what a test did without a break.
func (s *session) controlled(g group, failed error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, controlLine(g, failed, took))
}

// outcome is what a test did with a break.
type outcome struct {
	missed error // nil when the test noticed it
	late   bool  // noticed by a wait in vain
	took   time.Duration
}

// report records the result of a break.
func (s *session) report(b Break, o outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.ran++
	s.progress.elapsed = time.Since(s.began)
	fmt.Fprintln(s.out, s.progress.line(b, o))
	if o.missed != nil {
		s.missed = append(s.missed, withName(b, o.missed))
		return nil
	}
	return s.results.add(b, o.took.Seconds())
}
