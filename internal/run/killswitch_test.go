package run

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

type heard []string

func (h *heard) Announce(e announce.Event) { *h = append(*h, e.About.Name+": "+e.Note) }

// TestReportStop: people hear when a stop begins and when it ends, also by a deletion. A controller
// that starts without a stop has nothing to report.
func TestReportStop(t *testing.T) {
	t.Parallel()
	object := metav1.ObjectMeta{Namespace: "lockstep-system", Name: settings.StopName, UID: "4711"}
	reason := "incident 42"
	var got heard
	p := &parts{log: logr.Discard(), announcer: &got}
	p.reportStop(killswitch.State{}, metav1.ObjectMeta{})
	p.reportStop(killswitch.State{Object: object, Stop: settings.Stop{All: &reason}}, metav1.ObjectMeta{})
	p.reportStop(killswitch.State{}, object)
	want := heard{"lockstep-stop: every automatic change is stopped: incident 42", "lockstep-stop: nothing is stopped"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
