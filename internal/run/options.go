package run

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// Options configure the controller.
type Options struct {
	Own   Own
	Scope Scope
	Words settings.Native
	// Reload follows ConfigMaps and Secrets.
	Reload bool
	// Shared are the sources whose change is one change in all namespaces.
	Shared    []input.ID
	Follow    rollouts.Options
	Rollout   Rollout
	Revisions Revisions
	Images    Images
	// NotifyFile has the notification targets; empty for none.
	NotifyFile string
	Server     server.Options
	Version    string
	Now        func() time.Time
}

// Own are the controller's own objects: their namespace, the name prefix of the ConfigMaps with
// the record, and the Secret with the installation key.
type Own struct {
	Namespace, Record, Key string
}

// Scope is what the controller watches.
type Scope struct {
	// Namespaces are the only ones that are watched; empty means all.
	Namespaces []string
	// Selector selects namespaces by label, nil for all.
	Selector labels.Selector
	Kinds    []kube.Kind
}

// Rollout configures how workloads are rolled out.
type Rollout struct {
	Form patcher.Form
	// Pods allows the strategies that work on pods.
	Pods bool
}

// Revisions configure objects whose names include their content.
type Revisions struct {
	revisions.Options

	Enabled bool
	// Secrets are the namespaces whose Secrets are attached too; nil means all.
	Secrets []string
}

// Images configure images that annotations request.
type Images struct {
	Enabled bool
	// Interval is how often a registry is queried, TTL the maximum age of a shared response.
	Interval, TTL time.Duration
	// Platforms are those that an image must support; empty means those of the nodes.
	Platforms []v1.Platform
	// PullSecrets are the only ones that are read; empty means all that pods and accounts name.
	PullSecrets []string
	Registries  Registries
	Webhook     Webhook
}

// Webhook receives push notifications of registries. An empty address disables it.
type Webhook struct {
	Addr, SecretFile string
}

// rollsOut reports whether workloads are rolled out at all: without a family of inputs Lockstep
// doesn't follow or record anything.
func (o *Options) rollsOut() bool { return o.Reload || o.Images.Enabled }

// IsIdle reports whether everything is disabled.
func (o *Options) IsIdle() bool { return !o.rollsOut() && !o.Revisions.Enabled }

// observes reports whether Lockstep doesn't write to workloads.
func (o *Options) observes() bool { return o.Words.Defaults.Observe }
