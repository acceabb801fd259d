package server

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// identify makes the manager hold the lease under the identity of the options, if there is one.
// The library can only make one up.
func (o Options) identify(m *ctrl.Options) error {
	if !o.LeaderElection || o.Identity == "" {
		return nil
	}
	config := rest.AddUserAgent(rest.CopyConfig(o.Config), "leader-election")
	// One request that hangs must not lose the lease.
	config.Timeout = max(*m.RenewDeadline/2, time.Second)
	c, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the client for leases: %w", err)
	}
	m.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.LeaseName},
		Client:     c,
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	return nil
}
