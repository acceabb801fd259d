package imagewatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

// half is a registry that is silent about the repositories of one tenant, and a standIn for others.
type half struct {
	*standIn

	silent atomic.Int64 // requests that it has received and not answered
}

func (h *half) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/v2/greedy/") {
		return h.standIn.RoundTrip(r)
	}
	h.silent.Add(1)
	defer h.silent.Add(-1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestNamespacesAreCheckedInTurn: a namespace with thousands of questions that a registry doesn't
// answer has only a few checks at a time, and another namespace's question is checked at once, even
// at the same registry.
func TestNamespacesAreCheckedInTurn(t *testing.T) {
	t.Parallel()
	h := &half{standIn: newStandIn()}
	synctest.Test(t, func(t *testing.T) {
		r := imagewatch.New(imagewatch.Options{Registries: registry.Options{Transport: h}})
		run(t, r)
		var reads atomic.Int64
		watch := func(namespace, image string) *imagewatch.Watch {
			q := ask(t, counted{owner(), &reads}, "%s", image)
			q.Namespace, q.Asker = namespace, namespace
			return r.Watch(q, func() {})
		}
		var greedy []*imagewatch.Watch
		for i := range 2000 {
			greedy = append(greedy, watch("greedy", fmt.Sprintf("r.example/greedy/app-%d:1", i)))
		}
		after(time.Second)
		if reads.Load() > 6 || h.silent.Load() == 0 {
			t.Errorf("%d checks have begun, and %d requests wait for an answer", reads.Load(), h.silent.Load())
		}
		modest := []*imagewatch.Watch{watch("modest", "r.example/modest/app:1"), watch("modest", "other.example/modest/app:1")}
		after(time.Second)
		for _, w := range modest {
			if v := w.View(); v.Digest != somewhere || v.Err != nil {
				t.Errorf("the other namespace's image: %+v", v)
			}
		}
		for _, w := range greedy[1:] {
			w.Stop()
		}
		before := reads.Load()
		after(90 * time.Second)
		if n := reads.Load() - before; n > 10 {
			t.Errorf("%d checks of questions that are watched no more", n)
		}
		if greedy[0].View().Err == nil {
			t.Error("the silent registry's question has no error")
		}
		greedy[0].Stop()
		after(time.Minute) // Its last request ends.
	})
}
