package revisions_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

func TestTimeoutSaysWhatWasMissing(t *testing.T) {
	t.Parallel()
	cm := input.ConfigMap("cm")
	cases := map[string]struct {
		reason string
		play   func(*slowRollout)
		want   string
	}{
		"generation": {
			reason: "the controller does not run",
			play:   func(*slowRollout) {},
			want:   "has not acted on its newest version",
		},
		"revision": {
			reason: "the hash is published before the ReplicaSet exists",
			play:   func(r *slowRollout) { r.publish("1") },
			want:   "does not have a revision yet",
		},
		"validity": {
			reason: "the status is that of the version before, whatever generation it says",
			play: func(r *slowRollout) {
				r.act("1", cm)
				now := time.Now().UTC().Format(time.RFC3339)
				r.publish("1", map[string]any{
					"type": "InvalidSpec", "status": "True", "reason": "InvalidSpec", "message": "quotes the specification",
					"lastTransitionTime": now, "lastUpdateTime": now,
				})
			},
			want: "the controller of rollout/web in namespace NS has not acted on its newest version (it is invalid: see its condition InvalidSpec)",
		},
		"another's revision": {
			reason: "a ReplicaSet of that name which somebody else made is none of ours",
			play: func(r *slowRollout) {
				r.publish("1")
				none, labels := int32(0), map[string]string{"app": "web", "rollouts-pod-template-hash": "1"}
				t := template(cm)
				t.Labels = labels
				somebody := *metav1.NewControllerRef(r.get(cm), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
				r.create(&appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: labels, OwnerReferences: []metav1.OwnerReference{somebody}},
					Spec:       appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: t},
				})
			},
			want: "does not have a revision yet",
		},
		"reference": {
			reason: "the name in the Job is not the one in the template",
			play: func(r *slowRollout) {
				r.act("1", input.ConfigMap("other"))
				r.publish("1")
			},
			want: "the pod template of ReplicaSet/web-1, the newest revision of rollout/web in namespace NS, does not reference configmap/cm",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.source(cm)
			c.play(l.slowRollout(cm))
			request := l.rolloutRequest(cm)
			request.Timeout = 20 * time.Second
			_, err := l.attach(request)
			want := strings.ReplaceAll(c.want, " NS", " "+l.namespace)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gave up after "+request.Timeout.String()) {
				t.Errorf("%s: error is %v, want %q", c.reason, err, want)
			}
			if got := l.owners(cm); got != "" {
				t.Errorf("%s: attached to %s", c.reason, got)
			}
		})
	}
}

// TestAMissingWorkload: it is waited for only when that is asked for, and the time
// limit says what was missing.
func TestAMissingWorkload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	request := l.rolloutRequest(cm)
	if _, err := l.attach(request); err == nil || !strings.Contains(err.Error(), ": it does not exist") {
		t.Errorf("not waited for: error %v", err)
	}
	request.WaitForWorkload, request.Timeout = true, 10*time.Second
	if _, err := l.attach(request); err == nil || !strings.Contains(err.Error(), "rollout/web in namespace "+l.namespace+" does not exist yet") || !strings.Contains(err.Error(), "gave up after "+request.Timeout.String()) {
		t.Errorf("waited for: error %v", err)
	}
}

// TestAWorkloadThatHasJustAppeared: a workload that is created between two reads isn't an error.
func TestAWorkloadThatHasJustAppeared(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	var requests atomic.Int32
	l.wire.before = func(string) {
		if requests.Add(1) == 2 { // The first one found no workload.
			l.deployment(cm)
		}
	}
	request := l.request(kube.Deployment(), cm)
	request.WaitForWorkload = true
	if outcomes, err := l.attach(request); err != nil || len(outcomes) != 1 {
		t.Errorf("outcomes %+v, error %v", outcomes, err)
	}
}

// TestTimeoutAlsoSaysWhatWentWrong: when the revision was missing and watching for
// it failed, both are said.
func TestTimeoutAlsoSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cm := input.ConfigMap("cm")
	l.source(cm)
	l.slowRollout(cm)
	l.wire.deaf = http.StatusServiceUnavailable
	request := l.rolloutRequest(cm)
	request.Timeout = 20 * time.Second
	_, err := l.attach(request)
	for _, want := range []string{"gave up after " + request.Timeout.String(), "has not acted on its newest version", "watch "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
