package ask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

// Reader answers questions about an installation, with the permissions of its client. It may be
// used by several goroutines.
type Reader struct {
	Client client.WithWatch
	// Own are the installation's own objects. A name that is empty comes from the controller's
	// Deployment, or else is the default one.
	Own        Own
	Understand installation.Understand
	// Kinds are the default kinds of workloads, and those that a user adds.
	Kinds []kube.Kind
	// Quiet is the controller's quiet window, for estimates.
	Quiet time.Duration
	// Version is this program's.
	Version string
	Now     func() time.Time
}

// Own names an installation's own objects.
type Own struct {
	Namespace string
	// State is the name prefix of the record's ConfigMaps, Lease names the leader's, and Key the
	// Secret with the installation key.
	State, Lease, Key string
}

// The default names of an installation's own objects.
const (
	DefaultState = "lockstep-state"
	DefaultLease = "lockstep"
	DefaultKey   = "lockstep-installation-key"
)

// Scope selects workloads.
type Scope struct {
	// Namespace is empty for all of them.
	Namespace string
	// Selector is nil for any labels.
	Selector labels.Selector
	// Only are the kinds of workloads, nil for all that the controller or the reader knows.
	Only []kube.Kind
}

// Denied adds to the refusals of lists what a user can do about them.
func (s Scope) Denied(err error) error {
	if err == nil || s.Namespace != "" {
		return err
	}
	return errors.Join(err, errors.New("with -n NAMESPACE, permissions in that namespace are enough"))
}

// Installation names the installation's own objects, and finds the Deployments of its
// controller, active ones first. Without permission to list Deployments it finds none.
func (r *Reader) Installation(ctx context.Context) (Own, []installation.Found, error) {
	own := r.Own
	found, err := r.Understand.Find(ctx, r.Client, own.Namespace)
	found = slices.DeleteFunc(found, func(f installation.Found) bool { return f.Problem != "" })
	if len(found) > 0 {
		own.State, own.Lease, own.Key = cmp.Or(own.State, found[0].State), cmp.Or(own.Lease, found[0].Lease), cmp.Or(own.Key, found[0].Key)
	}
	own.State, own.Lease, own.Key = cmp.Or(own.State, DefaultState), cmp.Or(own.Lease, DefaultLease), cmp.Or(own.Key, DefaultKey)
	return own, found, access.UnlessForbidden(err)
}

// InstalledKinds are the reader's kinds of workloads, and those that the controller's Deployments
// configure, as far as they can be read.
func (r *Reader) InstalledKinds(ctx context.Context) []kube.Kind {
	all := slices.Clone(r.Kinds)
	_, found, err := r.Installation(ctx)
	if err != nil {
		return all
	}
	for _, f := range found {
		all = kube.AllKinds(all, f.Kinds)
	}
	return all
}

// Heard reads the controller's state from its own objects, and its record of a namespace, or of
// all. Missing permissions aren't errors.
func (r *Reader) Heard(ctx context.Context, namespace string) (Heard, ledger.Stored, error) {
	h := Heard{Program: r.Version}
	own, found, err := r.Installation(ctx)
	if h.Own = own; err != nil {
		return h, ledger.Stored{}, err
	}
	h.Leader, h.Led, h.LeaseProblem = access.ReadLeader(ctx, r.Client, client.ObjectKey{Namespace: own.Namespace, Name: own.Lease})
	if h.Serves, err = ServedBy(ctx, r.Client, installation.Leading(found, h.Leader, r.Now())); err != nil {
		return h, ledger.Stored{}, err
	}
	h.Stop, h.StoppedAt, h.StopProblem = killswitch.Read(ctx, r.Client, own.Namespace)
	if err = access.UnlessForbidden(h.StopProblem); err != nil {
		return h, ledger.Stored{}, err
	}
	if len(h.Serves.Shared) > 0 {
		namespace = "" // workloads elsewhere use the same changes
	}
	stored, recordErr := ledger.ReadAll(ctx, r.Client, client.ObjectKey{Namespace: own.Namespace, Name: own.State}, namespace)
	h.Recorded, h.RecordProblem, h.Version = stored.Found, recordErr, stored.Version
	for _, at := range stored.Written {
		if at.After(h.WrittenAt) {
			h.WrittenAt = at
		}
	}
	return h, stored, errors.Join(access.UnlessForbidden(h.LeaseProblem), access.UnlessForbidden(recordErr))
}

// unwritable returns the reported parts of the record that the controller has not written since:
// the entries of their workloads may be outdated.
func (r *Reader) unwritable(ctx context.Context, own Own, stored ledger.Stored) ([]announce.Reported, error) {
	told, err := announce.ReportedOfRecord(ctx, r.Client, own.Namespace)
	var still []announce.Reported
	for _, t := range told {
		if strings.HasPrefix(t.About, own.State+"-") && !stored.Written[t.About].After(t.At) {
			still = append(still, t)
		}
	}
	return still, access.UnlessForbidden(err)
}

// headers lists the workloads of all kinds. A kind that may not be listed is noted; if none may
// be, that is an error.
func (r *Reader) headers(ctx context.Context, within Scope, kinds []kube.Kind) (all []cluster.Header, notes []string, err error) {
	var (
		denied error
		listed bool
	)
	selector := within.Selector
	if selector == nil {
		selector = labels.Everything()
	}
	for _, kind := range kinds {
		found, err := cluster.Headers(ctx, r.Client, kind, within.Namespace, selector)
		switch {
		case apierrors.IsForbidden(err):
			denied = errors.Join(denied, err)
			notes = append(notes, err.Error())
		case err != nil:
			return nil, notes, err
		}
		listed = listed || found != nil
		all = append(all, found...)
	}
	if !listed && denied != nil {
		return nil, notes, within.Denied(denied)
	}
	return all, notes, nil
}
