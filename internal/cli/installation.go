package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// installationOptions locate an installation's own objects, for commands that read them.
type installationOptions struct {
	namespace string
	state     string
	lease     string
}

func (o *installationOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.namespace, "own-namespace", "", "namespace of the controller's own objects (default $POD_NAMESPACE, then the pod's, then lockstep-system)")
	fs.StringVar(&o.state, "state-name", "", "start of the names of the ConfigMaps with the record (default that of the controller's Deployment, then "+defaultStateName+")")
	fs.StringVar(&o.lease, "lease-name", "", "name of the Lease for leader election (default that of the controller's Deployment, then "+defaultLeaseName+")")
}

// look finds the Deployments of the controller, active ones first. Names that no flag sets come
// from the first one. Without permission to list Deployments it finds none.
func (o *installationOptions) look(ctx context.Context, c client.Reader) ([]installation.Found, error) {
	found, err := installation.Understand(understand).Find(ctx, c, o.namespace)
	found = slices.DeleteFunc(found, func(f installation.Found) bool { return f.Problem != "" })
	if len(found) > 0 {
		o.state, o.lease = cmp.Or(o.state, found[0].State), cmp.Or(o.lease, found[0].Lease)
	}
	o.state, o.lease = cmp.Or(o.state, defaultStateName), cmp.Or(o.lease, defaultLeaseName)
	return found, unlessForbidden(err)
}

// kinds are the workload kinds that the controller's Deployments configure, as far as they can
// be read.
func (o *installationOptions) kinds(ctx context.Context, c client.Reader) []kube.Kind {
	found, err := o.look(ctx, c)
	if err != nil {
		return nil
	}
	var all []kube.Kind
	for _, f := range found {
		all = allOf(all, f.Kinds)
	}
	return all
}

// heard reads the controller's state from its own objects, and its record of a namespace, or of
// all. Missing permissions aren't errors.
func (o *installationOptions) heard(ctx context.Context, c client.Reader, env Environment, namespace string) (ask.Heard, ledger.Stored, error) {
	h := ask.Heard{Own: env.Version, Namespace: o.namespace}
	found, err := o.look(ctx, c)
	if err != nil {
		return h, ledger.Stored{}, err
	}
	h.Leader, h.Led, h.LeaseProblem = access.ReadLeader(ctx, c, client.ObjectKey{Namespace: o.namespace, Name: o.lease})
	if h.Serves, err = ask.ServedBy(ctx, c, installation.Leading(found, h.Leader, env.Now())); err != nil {
		return h, ledger.Stored{}, err
	}
	if h.Stop, h.StoppedAt, err = killswitch.Read(ctx, c, o.namespace); unlessForbidden(err) != nil {
		return h, ledger.Stored{}, err
	}
	if len(h.Serves.Shared) > 0 {
		namespace = "" // workloads elsewhere use the same changes
	}
	stored, recordErr := ledger.ReadAll(ctx, c, client.ObjectKey{Namespace: o.namespace, Name: o.state}, namespace)
	h.Recorded, h.RecordProblem, h.Version = stored.Found, recordErr, stored.Version
	for _, at := range stored.Written {
		if at.After(h.WrittenAt) {
			h.WrittenAt = at
		}
	}
	return h, stored, errors.Join(unlessForbidden(h.LeaseProblem), unlessForbidden(recordErr))
}

// controller describes the controller's state, and where to find another one.
func (o *installationOptions) controller(h ask.Heard, env Environment) ask.Controller {
	c := ask.ControllerOf(h, env.Now())
	if h.IsEmpty() {
		c.Note += "; name another one with --own-namespace"
	}
	return c
}

// unwritable returns the reported parts of the record that the controller has not written since:
// the entries of their workloads may be outdated.
func (o *installationOptions) unwritable(ctx context.Context, c client.Reader, stored ledger.Stored) ([]announce.Reported, error) {
	told, err := announce.ReportedOfRecord(ctx, c, o.namespace)
	told = slices.DeleteFunc(told, func(t announce.Reported) bool {
		return !strings.HasPrefix(t.About, o.state+"-") || stored.Written[t.About].After(t.At)
	})
	return told, unlessForbidden(err)
}

// unlessForbidden is the error, unless a permission is missing.
func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
