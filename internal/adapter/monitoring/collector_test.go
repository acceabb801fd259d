package monitoring

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// empty is a cache that has listed nothing yet.
type empty struct{}

func (empty) Sizes() (sources, workloads int) { return 0, 0 }

func (empty) Status() []mirror.Sync { return []mirror.Sync{{Resource: "namespaces"}} }

// TestOthersAreShown: what is followed beside the cache has its series as well, and a resource
// that two follow has one, which is 1 when it works for both.
func TestOthersAreShown(t *testing.T) {
	t.Parallel()
	works := func(resource string) mirror.Sync { return mirror.Sync{Resource: resource, Synced: true} }
	fails := func(resource string) mirror.Sync {
		return mirror.Sync{Resource: resource, Err: errors.New("forbidden")}
	}
	collector := NewCollector(empty{}, nil,
		func() []mirror.Sync { return []mirror.Sync{works("replicasets"), fails("jobs"), works("pods")} },
		func() []mirror.Sync {
			return []mirror.Sync{fails("replicasets"), works("jobs"), works("pods"), fails("revisioned configmaps")}
		})
	if err := testutil.CollectAndCompare(collector, strings.NewReader(`
# HELP lockstep_resource_followed 1 if Lockstep can list and watch the resource, 0 if not (missing permission, outage, not installed).
# TYPE lockstep_resource_followed gauge
lockstep_resource_followed{resource="jobs"} 0
lockstep_resource_followed{resource="namespaces"} 0
lockstep_resource_followed{resource="pods"} 1
lockstep_resource_followed{resource="replicasets"} 0
lockstep_resource_followed{resource="revisioned configmaps"} 0
`), "lockstep_resource_followed"); err != nil {
		t.Error(err)
	}
}
