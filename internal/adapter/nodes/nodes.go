// Package nodes knows for which platforms images are needed: those of the cluster's nodes.
package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval is how often the nodes are listed: a node of a new platform is a rare event.
const interval = 5 * time.Minute

// retryInterval is how soon they are listed again after a failure.
const retryInterval = 10 * time.Second

// Platform is what a node runs: "linux", "arm64".
type Platform struct {
	OS, Architecture string
}

// String is how people spell it.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// Nodes knows for which platforms images are needed.
type Nodes struct {
	client client.Reader
	// report is told of a list that failed, once per message.
	report func(error)

	mu        sync.Mutex
	platforms []Platform
	known     bool
	changed   func()
}

// New makes a Nodes that lists them while Run runs.
func New(c client.Reader, report func(error)) *Nodes {
	return &Nodes{client: c, report: report, changed: func() {}}
}

// Changed sets the function that is called when the platforms are known, or others.
func (n *Nodes) Changed(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = f
}

// Run lists the nodes now and then until the context ends. Without the permission to list
// them no platform is needed.
func (n *Nodes) Run(ctx context.Context) error {
	said := ""
	for {
		pause := interval
		platforms, err := n.list(ctx)
		if err == nil {
			said = ""
			n.set(platforms)
		} else if ctx.Err() == nil {
			pause = retryInterval
			if err.Error() != said {
				said = err.Error()
				n.report(err)
			}
			n.set(n.last())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Read lists the nodes once, for a command that runs for a moment.
func (n *Nodes) Read(ctx context.Context) error {
	platforms, err := n.list(ctx)
	n.set(platforms)
	return err
}

func (n *Nodes) list(ctx context.Context) ([]Platform, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := n.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the platforms of the nodes: %w", err)
	}
	var all []Platform
	for _, node := range list.Items {
		p := Platform{node.Labels[corev1.LabelOSStable], node.Labels[corev1.LabelArchStable]}
		if p.OS != "" && p.Architecture != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Platform) int { return cmp.Compare(a.String(), b.String()) })
	return all, nil
}

func (n *Nodes) last() []Platform {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.platforms
}

func (n *Nodes) set(platforms []Platform) {
	n.mu.Lock()
	same := n.known && slices.Equal(n.platforms, platforms)
	n.platforms, n.known = platforms, true
	changed := n.changed
	n.mu.Unlock()
	if !same {
		changed()
	}
}

// Platforms lists those of the nodes, sorted; false while nothing is known.
func (n *Nodes) Platforms() ([]Platform, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.platforms, n.known
}
