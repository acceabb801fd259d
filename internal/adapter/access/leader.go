package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leader is the leading process, according to a Lease.
type Leader struct {
	// Name is the leader's identity, empty when the last one has released the Lease.
	Name string
	// Renewed is when the leader last renewed the Lease.
	Renewed time.Time
	// Expires is when another process may lead.
	Expires time.Time
	// WrittenAt is the time of that renewal by the API server's clock, up to the second, zero
	// when the managed fields don't show it.
	WrittenAt time.Time
}

// Leads reports whether a process leads at that time.
func (l Leader) Leads(now time.Time) bool {
	return l.Name != "" && now.Before(l.Expires)
}

// Host is the leader's machine: in a cluster, the name of its pod.
func (l Leader) Host() string {
	host, _, _ := strings.Cut(l.Name, "_")
	return host
}

// ReadLeader reads the Lease. It is false when no process ever led.
func ReadLeader(ctx context.Context, c client.Reader, at client.ObjectKey) (Leader, bool, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, at, lease)
	if apierrors.IsNotFound(err) {
		return Leader{}, false, nil
	}
	if err != nil {
		return Leader{}, false, fmt.Errorf("read the lease %s: %w", at, err)
	}
	l := Leader{Name: ptr.Deref(lease.Spec.HolderIdentity, "")}
	if lease.Spec.RenewTime != nil {
		l.Renewed = lease.Spec.RenewTime.Time
		l.Expires = l.Renewed.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
	}
	for _, e := range lease.ManagedFields {
		if e.Time != nil && e.Time.After(l.WrittenAt) {
			l.WrittenAt = e.Time.Time
		}
	}
	return l, true, nil
}
