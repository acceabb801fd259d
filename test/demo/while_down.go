package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// whileDown: Lockstep finds a change that was made while no controller ran, by comparing the
// current version with the delivered one.
func whileDown(ctx context.Context, s *story) error {
	before, err := s.rolloutsSoFar(ctx)
	if err != nil {
		return err
	}
	if err := s.say(ctx, "Lockstep goes by what each workload was given, not by the events it saw. So nothing is lost\nwhile it is down:"); err != nil {
		return err
	}
	if err := s.step(ctx, "stop lockstep", func(context.Context) error { return s.stopLockstep() }); err != nil {
		return err
	}
	if err := s.step(ctx, "change configmap/web-settings: greeting good morning -> good evening", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "web-settings", `{"data":{"greeting":"good evening"}}`)
	}); err != nil {
		return err
	}
	if err := pause(ctx, s.quiet); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before, "Lockstep is down, nothing happens"); err != nil {
		return err
	}
	if err := s.step(ctx, "start lockstep", s.startLockstep); err != nil {
		return err
	}
	if err := s.decided(ctx, 0, "roll"); err != nil {
		return err
	}
	if err := pause(ctx, moment); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before+1, "the change is delivered, by one rollout"); err != nil {
		return err
	}
	return s.showRevisions(ctx)
}
