package ask

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// told is what the controller recorded about deployment/web, and what exists now.
type told struct {
	// annotations are those of the workload, and namespace those of its namespace.
	annotations, namespace map[string]string
	// decision is on record, nil for a workload that isn't; image is the image's due version.
	decision *record.Decision
	image    string
	// forbidden is the name of an object that the user may not read.
	forbidden string
}

// explain reads an answer about a workload that follows an image and uses a ConfigMap.
func (f told) explain(t *testing.T) Explanation {
	t.Helper()
	at := func(name string, annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1", Annotations: annotations}
	}
	own := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lockstep-system", Name: name, Labels: map[string]string{settings.StateLabel: "true"}}
	}
	web := &appsv1.Deployment{ObjectMeta: at("web", map[string]string{"image.lockstep.dev/web": "registry.example/app:1.*"})}
	maps.Copy(web.Annotations, f.annotations)
	from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example/app:1.4", EnvFrom: []corev1.EnvFromSource{from}}}
	shard := &corev1.ConfigMap{ObjectMeta: own("lockstep-state-00"), Data: map[string]string{}}
	if f.decision != nil {
		const requested = "ea2c57e5" // the digest of registry.example/app:1.* for any platform
		delivered := fingerprint.Version{Basis: "sha256", Sum: strings.Repeat("0123456789abcdef", 4)}
		entry := record.Entry{ID: "Deployment.apps/shop/web", UID: "1", Decision: *f.decision, Inputs: map[input.ID]record.Delivered{input.Image("web"): {Version: delivered, Due: f.image, Memo: "request=" + requested}}}
		text, err := entry.Encode()
		if err != nil {
			t.Fatal(err)
		}
		shard.Data["Deployment.apps_shop_web"] = text
	}
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: own(DefaultLease), Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod"), RenewTime: &renewed, LeaseDurationSeconds: new(int32(30))}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: f.namespace}}
	app := &corev1.ConfigMap{ObjectMeta: at("app", nil), Data: map[string]string{"a": "1"}}
	c := fake.NewClientBuilder().WithObjects(web, shard, lease, namespace, app).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, at client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if at.Name == f.forbidden {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, at.Name, nil)
			}
			return c.Get(ctx, at, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			all := (&client.ListOptions{}).ApplyOptions(options)
			if all.FieldSelector == nil {
				return c.List(ctx, list, all)
			}
			if name, _ := all.FieldSelector.RequiresExactMatch("metadata.name"); name != "" && name == f.forbidden {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, name, nil)
			}
			return nil // there is neither a stop nor an event
		},
	}).Build()
	r := &Reader{Client: c, Own: Own{Namespace: "lockstep-system"}, Kinds: []kube.Kind{kube.Deployment()}, Now: time.Now}
	e, err := r.Workload(t.Context(), kube.Deployment(), client.ObjectKey{Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestImagesAreOnRecord: the registry isn't queried, so an image stands as it does on record.
func TestImagesAreOnRecord(t *testing.T) {
	t.Parallel()
	const due, change = "77ab01c9de", "image/web 0123456789 -> 77ab01c9de"
	hold := map[string]string{settings.Hold: "freeze"}
	decided := func(reason input.Reason, message string) *record.Decision {
		return &record.Decision{Reason: reason, Message: message}
	}
	held := decided(input.Held, `held by annotation lockstep.dev/hold ("freeze"): `+change)
	heldByNamespace := decided(input.Held, `held by annotation lockstep.dev/hold on its namespace ("freeze"): `+change)
	for name, tc := range map[string]struct {
		reason          string
		told            told
		state, estimate string
		next            string // the beginning
		config          string // the version of the ConfigMap, in words
	}{
		"Held":     {"the record is as new as the hold", told{annotations: hold, decision: held, image: due}, "Held", "", "the workload waits for the end of the hold", "not followed"},
		"Released": {"the hold is gone, and the image is due", told{decision: held, image: due}, "Held", "Reloaded: " + change, "the rollout, at the controller's next check", "not followed"},
		"HeldInTurn": {
			"it was held since",
			told{annotations: hold, decision: decided(input.AwaitsTurn, change), image: due},
			"AwaitsTurn",
			`Held: held by annotation lockstep.dev/hold ("freeze"): ` + change, "the workload waits for the end of the hold", "not followed",
		},
		"Namespace": {"its namespace holds", told{namespace: hold, decision: heldByNamespace, image: due}, "Held", "", "the workload waits for the end of the hold", "not followed"},
		"Hidden":    {"whether its namespace holds can't be read", told{namespace: hold, decision: heldByNamespace, image: due, forbidden: "shop"}, "Held", "", "the workload waits for the end of the hold", "not followed"},
		"Stops":     {"whether an operator stopped it can't be read", told{decision: decided(input.Stopped, "stopped by an operator: "+change), image: due, forbidden: "lockstep-stop"}, "Stopped", "", "the workload waits for lockstep resume", "not followed"},
		"InStep":    {"a workload that follows an image only doesn't follow what it uses", told{decision: decided(input.InStep, "")}, "InStep", "", "nothing, until an input changes", "not followed"},
		"New":       {"nothing is on record, and status says the same", told{}, NotOnRecord, "", "the workload waits for the controller's first check", "not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := tc.told.explain(t)
			estimate := ""
			if e.Estimate != nil {
				estimate = e.Estimate.Reason + ": " + e.Estimate.Message
			}
			if next := e.NextWords(time.Now()); e.State.Reason != tc.state || estimate != tc.estimate || !strings.HasPrefix(next, tc.next) {
				t.Errorf("%s: the state is %+v, the estimate %q, and next comes %s", tc.reason, e.State, estimate, next)
			}
			if i := slices.IndexFunc(e.Inputs, func(u Use) bool { return u.Input == "configmap/app" }); i < 0 || e.Inputs[i].NowWords() != tc.config {
				t.Errorf("%s: the inputs are %+v", tc.reason, e.Inputs)
			}
		})
	}
}
