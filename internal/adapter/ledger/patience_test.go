package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// answer is an API server that answers every new ConfigMap in the same way.
type answer struct {
	client.WithWatch

	create func(context.Context) error
}

func (a answer) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	return a.create(ctx)
}

// recordsOf is a record on that API server.
func recordsOf(create func(context.Context) error) (*Records, *problems) {
	p := &problems{}
	return New(answer{create: create}, Options{Name: "state", Now: time.Now, Report: p.report, Status: func(mirror.Sync) {}}), p
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestRecordsDoNotWaitForEver: a write that hangs ends, so that the other shards have
// their turn, and who waits for it waits no longer than they have time.
func TestRecordsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := recordsOf(hang)
		a, b := neighbours(r)
		put(t, r, a, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		flushed := make(chan time.Duration)
		go func() {
			r.flush(ctx)
			flushed <- time.Since(began)
		}()
		synctest.Wait()
		short, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		if _, err := r.PutNow(short, b, entryOf(b, "1")); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a write beside one that hangs ends after %s with %v, want after its own second", time.Since(began), err)
		}
		if took := <-flushed; took != writeTimeout {
			t.Errorf("a write that hangs ends after %s, want %s; problems %s", took, writeTimeout, p.text())
		}
	})
}

// TestAnOutageIsNotWaitedOut: an API server that did not answer is asked again within
// seconds, however long it was away. A workload whose entry waits would look like one
// that was never followed.
func TestAnOutageIsNotWaitedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, last, longest := time.Now(), time.Now(), time.Duration(0)
		r, _ := recordsOf(func(ctx context.Context) error {
			longest = max(longest, time.Since(last))
			err := hang(ctx)
			last = time.Now()
			return err
		})
		a, _ := neighbours(r)
		put(t, r, a, "1")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if longest > longestOutage+flushEvery || time.Since(began) < 10*time.Minute {
			t.Errorf("%s between two attempts, want at most %s", longest, longestOutage)
		}
	})
}

// hangs is an API server that answers for all shards but one.
type hangs struct {
	client.WithWatch

	name    string
	written chan string
}

func (h hangs) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	if object.GetName() == h.name {
		return hang(ctx)
	}
	object.SetResourceVersion("1")
	h.written <- object.GetName()
	return nil
}

// TestAShardThatHangsHoldsUpNoOther: workloads of other shards are on record within the
// second in which they always are.
func TestAShardThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &hangs{written: make(chan string, shardCount)}
		r := New(server, Options{Name: "state", Now: time.Now, Report: func(error) {}, Status: func(mirror.Sync) {}})
		a := deploymentKey("shop", "a")
		server.name = r.shardOf(a).name
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		put(t, r, a, "1")
		time.Sleep(flushEvery + time.Millisecond) // the write of the one hangs now
		for i := range shardCount * 4 {
			put(t, r, deploymentKey("shop", fmt.Sprint("b", i)), "1")
		}
		time.Sleep(flushEvery)
		if got := len(server.written); got != shardCount-1 {
			t.Errorf("%d shards were written beside one that hangs, want %d", got, shardCount-1)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestRefusedRecordsAreSpacedOut: a permission that is missing for good is not asked for
// over and over. When the process stops there is a last attempt.
func TestRefusedRecordsAreSpacedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var attempts []string
		r, p := recordsOf(func(context.Context) error {
			attempts = append(attempts, time.Since(began).String())
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
		})
		a, _ := neighbours(r)
		put(t, r, a, "1")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(attempts), "[1s 2s 4s 8s 16s 32s 1m4s 2m4s 3m0s]"; got != want {
			t.Errorf("attempts after %s, want %s", got, want)
		}
		if text := p.text(); strings.Count(text, "forbidden") != 1 {
			t.Errorf("told %q, want it once", text)
		}
	})
}
