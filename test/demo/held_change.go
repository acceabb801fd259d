package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// heldChange: a change that a user holds is not rolled out, and the tool explains why.
func heldChange(ctx context.Context, s *story) error {
	before, err := s.rolloutsSoFar(ctx)
	if err != nil {
		return err
	}
	if err := s.say(ctx, "\"Why did my pods restart?\", or \"why did they not?\" The controller has what it decided on record,\nand lockstep explain reads it:"); err != nil {
		return err
	}
	if err := s.lockstepSays(ctx, "hold", "deployment/"+deployment, "release freeze"); err != nil {
		return err
	}
	mark := s.log.mark()
	if err := s.step(ctx, "change configmap/web-settings: greeting good evening -> good night", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "web-settings", `{"data":{"greeting":"good night"}}`)
	}); err != nil {
		return err
	}
	if err := s.decided(ctx, mark, "hold"); err != nil {
		return err
	}
	const why = "State:       Held"
	if err := eventually(ctx, func(ctx context.Context) (bool, string) {
		text, err := s.command(ctx, "explain", "deployment/"+deployment).CombinedOutput()
		return err == nil && strings.Contains(string(text), why), "lockstep explain does not say " + why + ": " + string(text)
	}); err != nil {
		return err
	}
	if err := s.lockstepSays(ctx, "explain", "deployment/"+deployment); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before, "the change waits, and the tool says why"); err != nil {
		return err
	}
	mark = s.log.mark()
	if err := s.lockstepSays(ctx, "release", "deployment/"+deployment); err != nil {
		return err
	}
	if err := s.decided(ctx, mark, "roll"); err != nil {
		return err
	}
	if err := pause(ctx, moment); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	if err := s.rollouts(ctx, before+1, "the release delivers it, by one rollout"); err != nil {
		return err
	}
	return s.lockstepSays(ctx, "history", "deployment/"+deployment)
}

// command is a command of the product about the application.
func (st *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cluster := []string{"-n", st.namespace}
	if args[0] == "explain" || args[0] == "status" {
		cluster = append(cluster, "--controller-namespace", st.ownNamespace)
	}
	cmd := exec.CommandContext(ctx, st.binary, slices.Concat(args, cluster)...)
	cmd.Env = st.environment()
	return cmd
}

// lockstepSays runs a command of the product as the reader would, and shows its output.
func (s *story) lockstepSays(ctx context.Context, args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = arg
		if strings.Contains(arg, " ") {
			shown[i] = "'" + arg + "'"
		}
	}
	return s.step(ctx, "lockstep "+strings.Join(shown, " ")+" -n "+s.namespace, func(ctx context.Context) error {
		answer, err := s.command(ctx, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}
		s.show(string(answer))
		return nil
	})
}
