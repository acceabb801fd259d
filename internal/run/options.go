package run

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/rollout"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// Options are what the controller is told to do.
type Options struct {
	Own   Own
	Scope Scope
	Words settings.Native
	// Reload follows ConfigMaps and Secrets.
	Reload    bool
	Follow    follow.Options
	Rollout   Rollout
	Revisions Revisions
	Images    Images
	Server    server.Options
	Version   string
	Now       func() time.Time
}

// Own are the controller's own objects: the namespace that they are in, the start of the names of
// the ConfigMaps with the record, and the Secret with the installation key.
type Own struct {
	Namespace, Record, Key string
}

// Scope is where the controller looks.
type Scope struct {
	// Namespaces are the only ones that are watched; none means all.
	Namespaces []string
	// Selector chooses namespaces by their labels, nil for all.
	Selector labels.Selector
	Kinds    []kube.Kind
}

// Rollout is how workloads are rolled out.
type Rollout struct {
	Form rollout.Form
	// Pods allows the strategies that work on pods.
	Pods bool
}

// Revisions are objects whose names carry their content.
type Revisions struct {
	revisions.Options

	Enabled bool
	// Secrets are the namespaces whose Secrets are attached too; nil means all.
	Secrets []string
}

// Images are images that annotations ask for.
type Images struct {
	Enabled bool
	// Interval is how often a registry is asked, TTL how old an answer for another workload may be.
	Interval, TTL time.Duration
	// Platforms are those that an image must have; without any, those of the nodes.
	Platforms []v1.Platform
	// PullSecrets are the only ones that are read; none means all that pods and accounts name.
	PullSecrets []string
	Registries  Registries
	Webhook     Webhook
}

// Webhook is where registries tell of pushes. Without an address there is none.
type Webhook struct {
	Addr, SecretFile string
}

// rollsOut reports whether workloads are moved at all: without a family of inputs nothing
// is followed, and nothing is put on record.
func (o *Options) rollsOut() bool { return o.Reload || o.Images.Enabled }

// IsIdle reports whether everything is switched off.
func (o *Options) IsIdle() bool { return !o.rollsOut() && !o.Revisions.Enabled }

// observes reports whether no workload is written to.
func (o *Options) observes() bool { return o.Words.Defaults.Observe }
