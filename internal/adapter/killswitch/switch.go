// Package killswitch knows whether an operator has stopped automatic changes: it follows the
// ConfigMap lockstep-stop in the controller's namespace.
package killswitch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Options configure the switch.
type Options struct {
	// Namespace of the ConfigMap.
	Namespace string
	// Workloads visits every workload, to wake those that are stopped or resumed.
	Workloads func(visit func(*kube.Workload))
	// Report is called when watching the ConfigMap starts or stops working.
	Report func(mirror.Sync)
	Now    func() time.Time
}

// Switch is the ConfigMap as the watch last reported it. Reads never wait.
type Switch struct {
	options Options
	mirror  *mirror.Mirror[*State]
	changes chan struct{}

	mu   sync.Mutex
	wake func(kube.Key)
}

// State is the content of the ConfigMap, and the object that has it. The object is zero when it
// doesn't exist.
type State struct {
	settings.Stop
	Object metav1.ObjectMeta
}

// New makes a switch that doesn't stop anything until Watch.
func New(o Options) *Switch {
	s := &Switch{options: o, changes: make(chan struct{}, 1), wake: func(kube.Key) {}}
	s.mirror = mirror.New(mirror.Options[*State]{
		Name: "configmap " + settings.StopName + " in " + o.Namespace, Role: mirror.RoleSettings,
		Slim: slim, Changed: s.changed, Report: o.Report, Now: o.Now,
	})
	return s
}

// Watch follows the ConfigMap until the context ends.
func (s *Switch) Watch(ctx context.Context, c client.WithWatch) {
	s.mirror.Run(ctx, c, mirror.Scope{List: &corev1.ConfigMapList{}, Namespace: s.options.Namespace, Name: settings.StopName})
}

// Status reports how well the ConfigMap can be watched.
func (s *Switch) Status() mirror.Sync { return s.mirror.Status() }

// State is what the ConfigMap says now.
func (s *Switch) State() State {
	state, ok := s.mirror.Get(s.options.Namespace, settings.StopName)
	if !ok {
		return State{}
	}
	return *state
}

// For reports whether an operator has stopped the changes of a namespace, and why.
func (s *Switch) For(namespace string) (reason string, stopped bool) {
	return s.State().For(namespace)
}

// Wake implements cluster.Waker: a workload whose changes are stopped or resumed needs a
// decision.
func (s *Switch) Wake(f func(kube.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = f
}

// Changes receives after the content changed, once for changes in quick succession.
func (s *Switch) Changes() <-chan struct{} { return s.changes }

func (s *Switch) changed(old, now *State) {
	var before, after settings.Stop
	if old != nil {
		before = old.Stop
	}
	if now != nil {
		after = now.Stop
	}
	select {
	case s.changes <- struct{}{}:
	default: // The reader hasn't looked since the last change.
	}
	s.mu.Lock()
	wake := s.wake
	s.mu.Unlock()
	s.options.Workloads(func(w *kube.Workload) {
		reason, stopped := after.For(w.Key.Namespace)
		if earlier, was := before.For(w.Key.Namespace); was != stopped || earlier != reason {
			wake(w.Key)
		}
	})
}

// GetObjectMeta implements mirror.Slim.
func (s *State) GetObjectMeta() metav1.Object { return &s.Object }

// SameAs implements mirror.Slim.
func (s *State) SameAs(old *State) bool {
	return s.Object.UID == old.Object.UID && maps.Equal(s.Namespaces, old.Namespaces) &&
		(s.All == nil) == (old.All == nil) && (s.All == nil || *s.All == *old.All)
}

func slim(object any) (*State, error) {
	o, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &State{
		Stop:   settings.ParseStop(o.Data, o.DeletionTimestamp == nil),
		Object: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp},
	}, nil
}

// allNamespaces is the label of a stop for the whole cluster. Prometheus drops an empty label, and
// the namespace would be that of the controller's pod.
const allNamespaces = "*"

// stoppedMetric is described as its own function, because a package has no variables.
func stoppedMetric() *prometheus.Desc {
	return prometheus.NewDesc("lockstep_stopped", "1 while automatic changes in the namespace are stopped (lockstep stop). The namespace is * if all namespaces are stopped.", []string{"namespace"}, nil)
}

// Describe implements prometheus.Collector.
func (s *Switch) Describe(to chan<- *prometheus.Desc) { to <- stoppedMetric() }

// Collect implements prometheus.Collector.
func (s *Switch) Collect(to chan<- prometheus.Metric) {
	state := s.State()
	if state.All != nil {
		to <- prometheus.MustNewConstMetric(stoppedMetric(), prometheus.GaugeValue, 1, allNamespaces)
	}
	for namespace := range state.Namespaces {
		to <- prometheus.MustNewConstMetric(stoppedMetric(), prometheus.GaugeValue, 1, namespace)
	}
}
