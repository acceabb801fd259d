package images_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/release/images"
)

// someRegistry is a registry that can be made to refuse.
type someRegistry struct {
	address string
	refuse  atomic.Pointer[func(*http.Request) int]
	mounted atomic.Int64
}

func newRegistry(t *testing.T) *someRegistry {
	t.Helper()
	r := &someRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if refuse := r.refuse.Load(); refuse != nil {
			if status := (*refuse)(request); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		if request.Method == http.MethodHead && strings.Contains(request.URL.Path, "/blobs/") {
			// Repositories of this registry share blobs, which real ones do not show.
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if request.URL.Query().Get("mount") != "" {
			r.mounted.Add(1)
		}
		inner.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.address = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *someRegistry) refuses(decide func(*http.Request) int) { r.refuse.Store(&decide) }

func (r *someRegistry) pusher(t *testing.T) images.Pusher {
	t.Helper()
	target, err := images.ParseTarget(r.address+"/team/lockstep", "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return images.Pusher{Target: target, Keychain: authn.NewMultiKeychain(), Progress: images.Silent{}}
}

// tags are the digests of the images by their tagged names, "" where there is none.
func (r *someRegistry) tags(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, image := range images.Table() {
		tag, err := name.NewTag(r.address + "/team/" + image.Name + ":v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		found[image.Name] = ""
		if d, err := remote.Head(tag, remote.WithContext(t.Context())); err == nil {
			found[image.Name] = d.Digest.String()
		}
	}
	return found
}

func wantTags(t *testing.T, built []images.Built) map[string]string {
	t.Helper()
	want := map[string]string{}
	for _, b := range built {
		digest, err := b.Index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		want[b.Name] = digest.String()
	}
	return want
}

func TestPush(t *testing.T) {
	t.Parallel()
	to := newRegistry(t)
	built, _ := smallImages(t)
	pusher := to.pusher(t)
	if err := pusher.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	pushed, err := pusher.Push(t.Context(), built)
	if err != nil {
		t.Fatal(err)
	}
	want := wantTags(t, built)
	if diff := cmp.Diff(want, to.tags(t)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	for _, p := range pushed {
		if reference := to.address + "/team/" + p.Name + ":v1.2.3@" + want[p.Name]; p.Reference != reference {
			t.Errorf("reference %s, want %s", p.Reference, reference)
		}
		wantAttached(t, p.Reference)
	}
	// Eight predecessors, each with one layer for both platforms and one for each: none
	// of them is sent again.
	if n := to.mounted.Load(); n != 24 {
		t.Errorf("%d layers were taken over inside the registry, want 24", n)
	}
}

// wantAttached looks for an SBOM of the index and of each platform's image, as a
// scanner does.
func wantAttached(t *testing.T, reference string) {
	t.Helper()
	digest, err := name.NewDigest(reference)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	subjects := []name.Digest{digest}
	for _, d := range manifest.Manifests {
		subjects = append(subjects, digest.Context().Digest(d.Digest.String()))
	}
	for _, subject := range subjects {
		found, err := remote.Referrers(subject)
		if err != nil {
			t.Fatal(err)
		}
		list, err := found.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Manifests) != 1 {
			t.Fatalf("attached to %s: %+v, want one SBOM", subject, list.Manifests)
		}
		attached, err := remote.Image(digest.Context().Digest(list.Manifests[0].Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := attached.Manifest(); err != nil || m.ArtifactType != "application/spdx+json" || m.Subject.Digest.String() != subject.DigestStr() {
			t.Errorf("attached to %s: %+v, error %v, want an SBOM", subject, m, err)
		}
	}
}

// A registry that fails anywhere before the tags leaves every tag where it was.
func TestNoTagMovesUnlessEverythingWasPushed(t *testing.T) {
	t.Parallel()
	old, fresh := smallImages(t)
	last := images.Table()[len(images.Table())-1].Name
	for reason, refuse := range map[string]func(*http.Request) int{
		"the last image's layers": func(r *http.Request) int {
			return refuseIf(r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/team/"+last+"/blobs/"))
		},
		"the last image's manifest": func(r *http.Request) int {
			return refuseIf(r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/team/"+last+"/manifests/"))
		},
		"the last image's SBOM": func(r *http.Request) int {
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/team/"+last+"/manifests/") {
				return 0
			}
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			return refuseIf(err != nil || bytes.Contains(body, []byte("spdx")))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			to := newRegistry(t)
			pusher := to.pusher(t)
			if _, err := pusher.Push(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			before := to.tags(t)
			to.refuses(refuse)
			_, err := pusher.Push(t.Context(), fresh)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "/team/"+last) || !strings.HasSuffix(err.Error(), "; no tag was moved") {
				t.Errorf("error %v, want one line that names %s and says that no tag was moved", err, last)
			}
			to.refuses(func(*http.Request) int { return 0 })
			if diff := cmp.Diff(before, to.tags(t)); diff != "" {
				t.Errorf("tags moved although something was missing:\n%s", diff)
			}
			if diff := cmp.Diff(wantTags(t, old), before); diff != "" {
				t.Errorf("the tags were not there before:\n%s", diff)
			}
		})
	}
}

// Tags of several repositories cannot move in one step: who reads the error knows how
// many of them have.
func TestTagsThatMovedAreCounted(t *testing.T) {
	t.Parallel()
	old, fresh := smallImages(t)
	const refused = 2 // the third
	to := newRegistry(t)
	pusher := to.pusher(t)
	if _, err := pusher.Push(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	to.refuses(func(r *http.Request) int {
		return refuseIf(r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/team/"+fresh[refused].Name+"/manifests/v1.2.3"))
	})
	_, err := pusher.Push(t.Context(), fresh)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), "; 2 of 10 tags were moved before that") {
		t.Errorf("error %v, want one line that says how many tags were moved", err)
	}
	to.refuses(func(*http.Request) int { return 0 })
	want := wantTags(t, old)
	for _, b := range fresh[:refused] {
		want[b.Name] = wantTags(t, fresh)[b.Name]
	}
	if diff := cmp.Diff(want, to.tags(t)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// Who reads the error learns which host does not answer, and why, in no library's words.
func TestRegistryCannotBeReached(t *testing.T) {
	t.Parallel()
	// The port of a server that was closed may be another program's at once.
	gone := &someRegistry{address: "127.0.0.1:" + strconv.Itoa(labtest.FreePort(t))}
	err := gone.pusher(t).Check(t.Context())
	want := "push " + gone.address + "/team/lockstep: " + gone.address + " cannot be reached: dial tcp " + gone.address + ": connect: connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A registry that does not answer does not keep the check from ending.
func TestCheckCanBeInterrupted(t *testing.T) {
	t.Parallel()
	to := newRegistry(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked, over := make(chan struct{}, 100), make(chan struct{})
	to.refuses(func(*http.Request) int {
		asked <- struct{}{}
		<-over
		return http.StatusServiceUnavailable
	})
	ended := make(chan error)
	go func() { ended <- to.pusher(t).Check(ctx) }()
	<-asked
	cancel()
	select {
	case err := <-ended:
		if err == nil || !strings.HasSuffix(err.Error(), ": interrupted") {
			t.Errorf("error %v, want that it was interrupted", err)
		}
		close(over)
	case <-time.After(time.Minute):
		close(over)
		t.Errorf("the check ends with the registry: %v", <-ended)
	}
}

// refuseIf answers with a status that nobody tries again.
func refuseIf(refuse bool) int {
	if refuse {
		return http.StatusInsufficientStorage
	}
	return 0
}
