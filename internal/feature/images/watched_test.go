package images

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// said is a question with its last answer.
type said struct {
	Watch

	err    error
	digest string
}

func (s *said) View() imagewatch.View {
	return imagewatch.View{Err: s.err, Resolution: imagewatch.Resolution{Digest: s.digest}}
}

// TestAProblemKeepsItsWords: a registry that is down is told once. That it is left alone
// for a while, until a time, follows from it.
func TestAProblemKeepsItsWords(t *testing.T) {
	t.Parallel()
	view := &said{}
	q := &watched{watch: view}
	const down = "digest of r/app:1: r does not answer"
	for _, step := range []struct {
		err  error
		want string
	}{
		{&registry.Error{Kind: registry.Unreachable, What: "digest of r/app:1", Answer: "r does not answer"}, down},
		{&registry.Error{Kind: registry.Limited, What: "digest of r/app:1", Answer: "r is not queried until 21:26:46"}, down},
		{&registry.Error{Kind: registry.Unreachable, What: "digest of r/app:1", Answer: "r does not answer, once more"}, down},
		{&registry.Error{Kind: registry.Denied, What: "r", Answer: "401"}, "r: 401"},
		{&registry.Error{Kind: registry.Limited, What: "r", Answer: "wait for an hour"}, "r: wait for an hour"},
		{nil, ""},
	} {
		view.err = step.err
		if got := q.read(time.Time{}).problem; got != step.want {
			t.Errorf("after %v it says %q, want %q", step.err, got, step.want)
		}
	}
	view.err = errors.New("another")
	if got := q.read(time.Time{}).problem; got != "another" {
		t.Errorf("it says %q", got)
	}
}

// TestImagesByTheirLastCheck: what is shown is the state of each image, however long ago it was
// checked. That a registry is left alone for a while is no other state.
func TestImagesByTheirLastCheck(t *testing.T) {
	t.Parallel()
	failed := func(kind registry.FailureKind) error { return &registry.Error{Kind: kind, What: "app"} }
	i := New(Options{})
	for name, q := range map[string]*watched{
		"good":       {host: "r", watch: &said{digest: "sha256:1"}},
		"good-too":   {host: "r", watch: &said{digest: "sha256:2"}},
		"stale":      {host: "r", watch: &said{digest: "sha256:1", err: failed(registry.NoMatch)}},
		"left-alone": {host: "down", kind: registry.Unreachable, watch: &said{err: failed(registry.Limited)}},
		"limited":    {host: "down", watch: &said{err: failed(registry.Limited)}},
		"odd":        {host: "down", watch: &said{err: errors.New("odd")}},
		"unasked":    {host: "new", watch: &said{}},
		"no-nodes":   {},
		"refused":    {refused: true},
		"one-more":   {host: "unasked", watch: &said{err: &registry.Error{Kind: registry.TooLarge, Bound: registry.Hosts}}},
	} {
		i.watched[kube.Key{Name: name}] = map[string]*watched{"app": q}
	}
	if err := testutil.CollectAndCompare(NewCollector(i), strings.NewReader(`
# HELP lockstep_followed_images Containers with an image annotation, by registry and result of the last check: success, or an error (as in lockstep_image_resolutions_total). Containers that haven't been checked yet are left out.
# TYPE lockstep_followed_images gauge
lockstep_followed_images{registry="down",result="Broken"} 1
lockstep_followed_images{registry="down",result="Limited"} 1
lockstep_followed_images{registry="down",result="Unreachable"} 1
lockstep_followed_images{registry="other",result="TooLarge"} 2
lockstep_followed_images{registry="r",result="NoMatch"} 1
lockstep_followed_images{registry="r",result="success"} 2
`)); err != nil {
		t.Error(err)
	}
}

// TestBoundsOfANamespace: one namespace can't take all registries that the controller queries, nor
// its memory. The workload that hits a bound hears of it, is looked at again, and is followed when
// there is room. One that is followed already stays, even when it asks another question.
func TestBoundsOfANamespace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most  int
		image string
		says  string
		bound registry.Bound
	}{
		"registries": {mostHosts, "r%d.example/app:1", "r32.example is not queried: namespace shop has reached the limit of 32 registries", registry.NamespaceHosts},
		"images":     {mostImages, "r.example/app-%d:1", "r.example is not queried: namespace shop has reached the limit of 2000 images", registry.NamespaceImages},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bounds []registry.Bound
			i := New(Options{
				Watch:       func(imagewatch.Question, func()) Watch { return &said{Watch: stopped{}, digest: digest("1")} },
				Credentials: func(*kube.Workload) (keychain.Source, string) { return nil, "" },
				Platforms:   func(*kube.Workload) ([]v1.Platform, bool) { return nil, true },
				Exceeded:    func(b registry.Bound) { bounds = append(bounds, b) },
				Now:         func() time.Time { return now },
			})
			assess := func(namespace string, n int, image string) input.Assessment {
				t.Helper()
				wanted, err := tagspec.ParseImage(image)
				if err != nil {
					t.Fatal(err)
				}
				w := &kube.Workload{
					Identity:    kube.Identity{Key: kube.Key{Namespace: namespace, Name: fmt.Sprint("web-", n)}},
					PodTemplate: kube.PodTemplate{Images: []kube.ContainerImage{{Name: "web", Image: "app:1"}}},
				}
				intent := settings.Intent{Images: []settings.ImageRequest{{Container: "web", Image: wanted}}}
				got, err := i.Assess(t.Context(), w, intent, record.Entry{}, nil)
				if err != nil || len(got.Findings) != 1 {
					t.Fatalf("%+v, error %v", got, err)
				}
				return got
			}
			for n := range c.most {
				if got := assess("shop", n, fmt.Sprintf(c.image, n)); len(got.Warnings) > 0 {
					t.Fatalf("image %d: %v", n, got.Warnings)
				}
			}
			more := fmt.Sprintf(c.image, c.most)
			got := assess("shop", c.most, more)
			if len(got.Warnings) != 1 || got.Warnings[0].Reason != input.Unresolved || !strings.Contains(got.Warnings[0].Text, c.says) || got.Recheck == 0 {
				t.Errorf("one more: %+v", got)
			}
			if refused := slices.DeleteFunc(i.NextChecks(), func(n NextCheck) bool { return n.Refused == "" }); len(refused) != 1 || !strings.Contains(refused[0].Refused, c.says) {
				t.Errorf("not checked are %+v", refused)
			}
			if !slices.Equal(bounds, []registry.Bound{c.bound}) {
				t.Errorf("bounds %v", bounds)
			}
			for _, image := range []string{fmt.Sprintf(c.image, 0), more} {
				if got := assess("shop", 0, image); len(got.Warnings) > 0 {
					t.Errorf("one that is followed, with the image %s: %v", image, got.Warnings)
				}
			}
			if got := assess("blog", c.most, more); len(got.Warnings) > 0 {
				t.Errorf("another namespace: %v", got.Warnings)
			}
			i.Drop(kube.Key{Namespace: "shop", Name: "web-0"})
			if got := assess("shop", c.most, more); len(got.Warnings) > 0 || got.Recheck != 0 {
				t.Errorf("when there is room: %+v", got)
			}
			for n := range c.most + 1 {
				i.Drop(kube.Key{Namespace: "shop", Name: fmt.Sprint("web-", n)})
			}
			if len(i.queries) != 1 {
				t.Errorf("%d namespaces are counted", len(i.queries))
			}
		})
	}
}

// stopped is a question that may be ended.
type stopped struct{ Watch }

func (stopped) Stop() {}

// TestForgottenRegistries: a registry that isn't asked any more leaves no metric behind.
func TestForgottenRegistries(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r, time.Now)
	m.Checked("gone", nil)
	m.Checked("stays", nil)
	m.Checked("one-more", &registry.Error{Kind: registry.TooLarge, Bound: registry.Hosts})
	m.Observe(registry.Request{Host: "gone", Kind: registry.HeadRequest, Status: 200})
	m.Forgotten("gone")
	if got := testutil.CollectAndCount(r, "lockstep_registry_requests_total", "lockstep_registry_last_success_timestamp_seconds"); got != 1 {
		t.Errorf("%d series, want that of the other registry", got)
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP lockstep_image_resolutions_total Checks for the digest that an annotation resolves to, by registry and result: success, or an error (Unreachable, Denied, Missing, Limited, Broken, Untrue, TooLarge, NoMatch, NoPlatform, Shrunk). Registries beyond the limit, which Lockstep doesn't query, are called other.
# TYPE lockstep_image_resolutions_total counter
lockstep_image_resolutions_total{registry="other",result="TooLarge"} 1
lockstep_image_resolutions_total{registry="stays",result="success"} 1
`), "lockstep_image_resolutions_total"); err != nil {
		t.Error(err)
	}
}

// TestQuestion: the default platform is for workloads whose pods may run there.
func TestQuestion(t *testing.T) {
	t.Parallel()
	none := func(*kube.Workload) (keychain.Source, string) { return nil, "" }
	for name, c := range map[string]struct {
		platform  string
		byDefault bool
		selects   kube.PullSettings
		child     bool
	}{
		"Index":     {},
		"Named":     {platform: "linux/amd64", child: true},
		"Insisted":  {platform: "linux/amd64", selects: kube.PullSettings{Architecture: "arm64"}, child: true},
		"Default":   {platform: "linux/amd64", byDefault: true, child: true},
		"Same":      {platform: "linux/amd64", byDefault: true, selects: kube.PullSettings{OS: "linux", Architecture: "amd64"}, child: true},
		"Elsewhere": {platform: "linux/amd64", byDefault: true, selects: kube.PullSettings{Architecture: "arm64"}},
		"OtherOS":   {platform: "linux/amd64", byDefault: true, selects: kube.PullSettings{OS: "windows"}},
	} {
		w := &kube.Workload{PodTemplate: kube.PodTemplate{Pull: c.selects}}
		got := Question(w, settings.ImageRequest{Platform: c.platform, ByDefault: c.byDefault}, tagspec.Reference{}, none)
		if got.Child != c.child || len(got.Platforms) > 0 != c.child {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
