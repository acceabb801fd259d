package revisions_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// leaving is a cluster whose one object is no longer to be decided on from the moment at
// which its users are asked for. It has a user before that.
type leaving struct {
	revisions.Cluster

	users []*lineage.Holder
	left  bool
}

func (l *leaving) Object(key ownership.ObjectKey) (*ownership.Owned, bool) {
	return &ownership.Owned{Key: key}, !l.left
}

func (l *leaving) Users(ownership.ObjectKey) []*lineage.Holder {
	l.left = true
	return l.users
}

func (*leaving) TooLarge(string) []*lineage.Holder { return nil }

func (*leaving) UnreadableKinds(string) []string { return nil }

// notes counts events.
type notes struct{ events []announce.Event }

func (n *notes) Announce(e announce.Event) { n.events = append(n.events, e) }

// TestNamespaceThatIsLeftMeanwhile: an object is neither written to nor reported when
// its namespace was left after the loop had found it.
func TestNamespaceThatIsLeftMeanwhile(t *testing.T) {
	t.Parallel()
	for name, users := range map[string][]*lineage.Holder{
		"before its users were forgotten": {{Namespace: "shop", Name: "web-1", UID: "web-1", ControllerUID: "web"}},
		"after that":                      nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, writes := &notes{}, 0
			r := revisions.New(revisions.DefaultOptions(), revisions.Dependencies{
				Cluster: &leaving{users: users},
				Owners: func(context.Context, ownership.ObjectKey, string, []metav1.OwnerReference) error {
					writes++
					return nil
				},
				Observes:  func(string) bool { return false },
				Stopped:   func(string) (string, bool) { return "", false },
				Announcer: told, Metrics: prometheus.NewRegistry(), Log: logr.Discard(), Now: time.Now,
			})
			again, err := r.Reconcile(t.Context(), ownership.ObjectKey{Namespace: "shop", Source: input.ConfigMap("app")})
			if err != nil || again.RequeueAfter != 0 || writes > 0 || len(told.events) > 0 {
				t.Errorf("%d writes, events %+v, again after %s, error %v; want nothing", writes, told.events, again.RequeueAfter, err)
			}
		})
	}
}
