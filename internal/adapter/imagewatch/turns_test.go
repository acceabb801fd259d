package imagewatch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

// half is a registry that is silent about the repositories of one tenant, and a standIn for others.
type half struct {
	*standIn

	silent atomic.Int64 // requests that it has received and not answered
	most   atomic.Int64 // of them at the same time
}

func (h *half) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/v2/greedy/") {
		return h.standIn.RoundTrip(r)
	}
	h.most.Store(max(h.most.Load(), h.silent.Add(1))) // Goroutines of a bubble may race, and this only counts too few.
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

// TestRegistryThatIsDown: when a registry is known to be down, only one check of a namespace waits for
// it, and the namespace's images from other registries are checked in time.
func TestRegistryThatIsDown(t *testing.T) {
	t.Parallel()
	h := &half{standIn: newStandIn()}
	synctest.Test(t, func(t *testing.T) {
		r := imagewatch.New(imagewatch.Options{Registries: registry.Options{Transport: h}})
		run(t, r)
		var watches []*imagewatch.Watch
		for i := range 100 {
			watches = append(watches, r.Watch(ask(t, owner(), "down.example/greedy/app-%d:1", i), func() {}))
		}
		watches = append(watches, r.Watch(ask(t, owner(), "r.example/app:1"), func() {}))
		after(2 * time.Minute)
		h.most.Store(0)
		before := h.heads.Load()
		after(time.Hour)
		if n := h.most.Load(); n != 1 {
			t.Errorf("%d checks wait for a registry that is down, want 1", n)
		}
		if n := h.heads.Load() - before; n < 54 {
			t.Errorf("the other registry was asked %d times in an hour", n)
		}
		for _, w := range watches[:100] {
			if registry.KindOf(w.View().Err) == "" {
				t.Fatal("a question has no error")
			}
		}
		for _, w := range watches {
			w.Stop()
		}
		after(time.Minute)
	})
}

// dripping is a network of registries with one image each, of more than 64 KiB. The greedy ones send
// its beginning, and then nothing.
type dripping struct{ begun atomic.Int64 }

const large = `{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]`

func (d *dripping) RoundTrip(r *http.Request) (*http.Response, error) {
	text := large + strings.Repeat(" ", 100<<10) + "}"
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Docker-Content-Digest": {sum(text)}}, Body: http.NoBody, Request: r, ContentLength: -1}
	if r.Method != http.MethodGet || r.URL.Path == "/v2/" {
		return response, nil
	}
	var body io.Reader = strings.NewReader(text)
	if strings.HasPrefix(r.URL.Host, "greedy") {
		d.begun.Add(1)
		body = io.MultiReader(io.LimitReader(body, 90<<10), silence{r.Context().Done()})
	}
	response.Body = io.NopCloser(body)
	return response, nil
}

type silence struct{ end <-chan struct{} }

func (s silence) Read([]byte) (int, error) {
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// TestDrippingManifests: a namespace whose registries send large manifests slowly leaves room for
// those of others.
func TestDrippingManifests(t *testing.T) {
	t.Parallel()
	d := &dripping{}
	synctest.Test(t, func(t *testing.T) {
		r := imagewatch.New(imagewatch.Options{Registries: registry.Options{Transport: d}})
		run(t, r)
		watch := func(namespace, host string) *imagewatch.Watch {
			q := ask(t, nil, "%s/app:1", host)
			q.Namespace, q.Platforms = namespace, []v1.Platform{platform(t, "linux/amd64")}
			return r.Watch(q, func() {})
		}
		var greedy []*imagewatch.Watch
		for i := range 32 {
			greedy = append(greedy, watch("greedy", fmt.Sprintf("greedy%d.example", i)))
		}
		after(time.Second)
		if d.begun.Load() == 0 {
			t.Error("no manifest is being read")
		}
		modest := watch("modest", "modest.example")
		after(time.Second)
		if err := modest.View().Err; registry.KindOf(err) != registry.NoPlatform {
			t.Errorf("the other namespace's manifest wasn't read: %v", err)
		}
		modest.Stop()
		for _, w := range greedy {
			w.Stop()
		}
		after(time.Minute) // The last requests end.
	})
}
