package images

import (
	"errors"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

// said is a question with its last answer.
type said struct {
	Watch

	err error
}

func (s *said) View() registry.View { return registry.View{Err: s.err} }

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
