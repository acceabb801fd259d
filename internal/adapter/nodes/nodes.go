// Package nodes knows which platforms images need: those of the cluster's nodes.
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

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// interval is how often the nodes are listed: a node of a new platform is a rare event.
const interval = 5 * time.Minute

// retryInterval is the pause after a failed list.
const retryInterval = 10 * time.Second

// Platform is a node's platform: "linux", "arm64".
type Platform struct {
	OS, Architecture string
}

// String is the form for users.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// Nodes knows which platforms images need.
type Nodes struct {
	client client.Reader
	// report is called when a list fails, once per message.
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

// Changed sets the function that is called when the platforms become known or change.
func (n *Nodes) Changed(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = f
}

// Run lists the nodes regularly until the context ends. Without permission to list them, images
// don't need any platform.
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

// Read lists the nodes once, for a one-shot command.
func (n *Nodes) Read(ctx context.Context) error {
	platforms, err := n.list(ctx)
	n.set(platforms)
	return err
}

func (n *Nodes) list(ctx context.Context) ([]Platform, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	var all []Platform
	for node, err := range pages.Items(ctx, n.client, list) {
		if err != nil {
			return nil, fmt.Errorf("list the platforms of the nodes: %w", err)
		}
		p := Platform{node.GetLabels()[corev1.LabelOSStable], node.GetLabels()[corev1.LabelArchStable]}
		if p.OS != "" && p.Architecture != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	sorting.By(all, func(a, b Platform) int { return cmp.Compare(a.String(), b.String()) })
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

// Platforms returns the nodes' platforms, sorted; false while unknown.
func (n *Nodes) Platforms() ([]Platform, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.platforms, n.known
}
