package ask

// This file stands in for the Reader until it is written: remove it then.

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Own are the names of an installation's own objects.
type Own struct{ Namespace, State, Lease, Key string }

// Reader answers questions about an installation, with its user's permissions.
type Reader struct {
	Client     client.WithWatch
	Own        Own
	Understand installation.Understand
	Kinds      []kube.Kind
	Quiet      time.Duration
	Version    string
	Now        func() time.Time
}

// Scope is a part of the cluster.
type Scope struct {
	Namespace string
	Selector  labels.Selector
}

// Status is the answer about many workloads.
type Status struct {
	Controller Controller `json:"controller"`
	Stops      []Stop     `json:"stops,omitempty"`
	Workloads  []Summary  `json:"workloads"`
	Notes      []string   `json:"notes,omitempty"`
}

// ImageExplanation is the answer about an image.
type ImageExplanation struct{}

var errStandIn = errors.New("not written yet")

// StatusOf stands in.
func (r *Reader) StatusOf(context.Context, Scope, []cluster.Header) (Status, error) {
	return Status{}, errStandIn
}

// Workload stands in.
func (r *Reader) Workload(context.Context, kube.Kind, client.ObjectKey) (Explanation, error) {
	return Explanation{}, errStandIn
}

// History stands in.
func (r *Reader) History(context.Context, kube.Kind, client.ObjectKey) (History, error) {
	return History{}, errStandIn
}

// Source stands in.
func (r *Reader) Source(context.Context, string, input.ID) (SourceExplanation, error) {
	return SourceExplanation{}, errStandIn
}

// Image stands in.
func (r *Reader) Image(context.Context, string, string) (ImageExplanation, error) {
	return ImageExplanation{}, errStandIn
}

// InstalledKinds stands in.
func (r *Reader) InstalledKinds(context.Context) []kube.Kind { return r.Kinds }

// Group is how a workload is doing.
type Group string

// The groups.
const (
	Failed  Group = "failed"
	Undone  Group = "undone"
	Held    Group = "held"
	Waiting Group = "waiting"
	Behind  Group = "behind"
	InStep  Group = "in step"
)

// Groups are all, trouble first.
func Groups() []Group { return []Group{Failed, Undone, Held, Waiting, Behind, InStep} }

// Group stands in.
func (s Report) Group() Group {
	if s.IsSettled() {
		return InStep
	}
	return Behind
}

// Reference stands in.
func Reference(string) string { return "" }

// Words stands in.
func (c Controller) Words(time.Time) string { return "controller: " + c.State }

// Words stands in.
func (s Stop) Words(time.Time) string { return s.Reason }

// Age is how long ago it was.
func Age(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*t)))
}
