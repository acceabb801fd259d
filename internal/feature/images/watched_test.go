package images

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
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
		{&registry.Error{Kind: registry.Limited, What: "digest of r/app:1", Answer: "r is left alone until 21:26:46"}, down},
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
	} {
		i.watched[kube.Key{Name: name}] = map[string]*watched{"app": q}
	}
	if err := testutil.CollectAndCompare(NewCollector(i), strings.NewReader(`
# HELP lockstep_followed_images Containers whose image an annotation asks for, by registry and result of the last check: success, or what went wrong (as in lockstep_image_resolutions_total). What was not checked yet is left out.
# TYPE lockstep_followed_images gauge
lockstep_followed_images{registry="down",result="Broken"} 1
lockstep_followed_images{registry="down",result="Limited"} 1
lockstep_followed_images{registry="down",result="Unreachable"} 1
lockstep_followed_images{registry="r",result="NoMatch"} 1
lockstep_followed_images{registry="r",result="success"} 2
`)); err != nil {
		t.Error(err)
	}
}
