package revisions_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// TestTimeoutReportsTheMissingAnswer: a dial that takes too long is tried again until
// the run's own time is over, and then it is the reason.
func TestTimeoutReportsTheMissingAnswer(t *testing.T) {
	t.Parallel()
	_, dialled := (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).DialContext(t.Context(), "tcp", "192.0.2.1:443")
	synctest.Test(t, func(t *testing.T) {
		nobody := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return dialled
			},
		}).Build()
		request := revisions.DefaultRequest()
		request.Kind, request.Workload = kube.Deployment(), types.NamespacedName{Namespace: "shop", Name: "web"}
		request.Objects = []input.ID{input.ConfigMap("cm")}
		began := time.Now()
		err := (&revisions.Attacher{Client: nobody}).Attach(t.Context(), request)
		if err == nil || !strings.Contains(err.Error(), "gave up after 4m0s") || !strings.Contains(err.Error(), "i/o timeout") {
			t.Errorf("error %v, want that it gave up and why", err)
		}
		if took := time.Since(began); took != request.Timeout {
			t.Errorf("gave up after %s, want %s", took, request.Timeout)
		}
	})
}
