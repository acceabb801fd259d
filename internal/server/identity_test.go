package server

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestIdentity: a process whose replicas are known by their pods holds the lease under that name.
func TestIdentity(t *testing.T) {
	t.Parallel()
	o := Options{Config: &rest.Config{Host: "https://api"}, LeaderElection: true, Namespace: "ops", LeaseName: "lock", LeaseDuration: 15 * time.Second}
	made := o.managerOptions()
	if err := o.identify(&made); err != nil || made.LeaderElectionResourceLockInterface != nil {
		t.Errorf("without an identity there is a lock %v, error %v", made.LeaderElectionResourceLockInterface, err)
	}
	o.Identity = "pod-7"
	if err := o.identify(&made); err != nil {
		t.Fatal(err)
	}
	lock, ok := made.LeaderElectionResourceLockInterface.(*resourcelock.LeaseLock)
	if !ok || lock.Identity() != "pod-7" || lock.Describe() != "ops/lock" || !made.LeaderElectionReleaseOnCancel {
		t.Errorf("the lock is %#v", made.LeaderElectionResourceLockInterface)
	}
	if o.Config.Timeout != 0 {
		t.Error("other clients time out too")
	}
}
