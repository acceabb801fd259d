package lineage_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
)

// TestFailureThatIsOver: a watch that ended and was begun again is not why time ran
// out.
func TestFailureThatIsOver(t *testing.T) {
	t.Parallel()
	template := podTemplate("one")
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	tooLate := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	watches := 0
	world := fake.NewClientBuilder().WithObjects(ds).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFake()
			switch watches++; watches {
			case 1: // of two
				w.Stop()
			case 4:
				cancel(tooLate)
			}
			return w, nil
		},
	}).Build()
	err := lineage.FollowHistory(ctx, world, kube.DaemonSet(), types.NamespacedName{Namespace: "shop", Name: "web"}, func(lineage.History) bool { return false })
	if !errors.Is(err, tooLate) {
		t.Errorf("error %v, want only that it was too late", err)
	}
}
