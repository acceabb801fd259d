package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const (
	pushes = 20
	secret = "the-secret-of-the-bench"
)

// measureNotification uses its own registry, which notifies the controller of pushes. The
// controller itself polls once a day. The time starts before the push.
func measureNotification(ctx context.Context, _ *registrylab.Server, result *Result) (err error) {
	dir, err := os.MkdirTemp("", "lockstep-bench-notification-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	server, err := registrylab.Start(ctx, registrylab.Options{
		Dir: dir, Progress: os.Stderr, Notify: "http://" + address + "/distribution", NotifyToken: secret,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if _, err := server.PushIndex(ctx, "app-0", "1", "first"); err != nil {
		return err
	}
	c, err := openCluster(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	file := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		return err
	}
	if err := c.deploy(ctx, 0, 1); err != nil {
		return err
	}
	if err := c.start(ctx, "--image-interval", "24h", "--image-webhook-addr", address, "--image-webhook-secret-file", file); err != nil {
		return err
	}
	if err := c.awaitPinned(ctx, 1); err != nil {
		return err
	}
	var times []int
	for i := range pushes {
		took, err := c.push(ctx, fmt.Sprint("push ", i))
		if err != nil {
			return err
		}
		times = append(times, int((took - quiet).Milliseconds()))
	}
	slices.Sort(times)
	result.NotifiedMedianMs, result.NotifiedMostMs = times[len(times)/2], times[len(times)-1]
	return nil
}

// push measures the time from before a push until the Deployment has its digest.
func (c *cluster) push(ctx context.Context, label string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	changes, err := c.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(namespace))
	if err != nil {
		return 0, err
	}
	defer changes.Stop()
	began := time.Now()
	digest, err := c.registry.PushIndex(ctx, "app-0", "1", label)
	if err != nil {
		return 0, err
	}
	for change := range changes.ResultChan() {
		d, ok := change.Object.(*appsv1.Deployment)
		if ok && d.Spec.Template.Spec.Containers[0].Image == c.registry.Address+"/app-0:1@"+digest {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("%s: the Deployment does not get %s", label, digest)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
