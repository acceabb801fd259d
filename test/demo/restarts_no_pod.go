package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// restartsNoPod: a restarted Lockstep knows which versions it has delivered, and a changed
// label isn't changed content.
func restartsNoPod(ctx context.Context, s *story) error {
	if err := s.say(ctx, "Lockstep is stopped and started again, as in an upgrade:"); err != nil {
		return err
	}
	if err := s.step(ctx, "stop lockstep, and start it", func(context.Context) error { return s.stopLockstep() }); err != nil {
		return err
	}
	s.quiet = quietWindow
	if err := s.startLockstep(ctx); err != nil {
		return err
	}
	if err := s.decided(ctx, 0, "leave"); err != nil {
		return err
	}
	if err := s.nothingFollows(ctx); err != nil {
		return err
	}
	if err := s.say(ctx, "A label or an annotation of a ConfigMap is not its content. No pod can tell the difference:"); err != nil {
		return err
	}
	if err := s.step(ctx, "label configmap/web-settings: team=checkout", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "web-settings", `{"metadata":{"labels":{"team":"checkout"}}}`)
	}); err != nil {
		return err
	}
	return s.nothingFollows(ctx)
}

// nothingFollows waits for longer than the delivery of a change would take, and counts.
func (s *story) nothingFollows(ctx context.Context) error {
	before, err := s.rolloutsSoFar(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, s.quiet+moment); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	return s.rollouts(ctx, before, "no further rollout")
}
