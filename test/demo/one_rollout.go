package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	settingsManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web-settings}
data:
  greeting: hello
`
	mountedManifest = `
apiVersion: v1
kind: Secret
metadata: {name: web-password}
stringData:
  password: first
`
	deploymentManifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    lockstep.dev/reload: auto          # the one line for Lockstep
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example/web:1
        envFrom:
        - configMapRef: {name: web-settings}
        volumeMounts:
        - {name: password, mountPath: /etc/web}
      volumes:
      - name: password
        secret: {secretName: web-password}
`
	// gateLine is for a cluster with nodes: the application doesn't have an image to run.
	gateLine = `      schedulingGates: [{name: lockstep.dev/demo}]   # the pods stay pending
`
)

// oneRollout: a ConfigMap and a Secret change, and the Deployment that uses both is rolled
// out once.
func oneRollout(ctx context.Context, s *story) error {
	if err := s.deploy(ctx); err != nil {
		return err
	}
	if err := s.say(ctx, "Lockstep is started here for the first time. That must restart no pod:"); err != nil {
		return err
	}
	s.quiet = s.gather
	if err := s.startLockstep(ctx); err != nil {
		return err
	}
	if err := s.decided(ctx, 0, "remember"); err != nil {
		return err
	}
	if err := s.rollouts(ctx, 0, "no rollout"); err != nil {
		return err
	}
	if err := s.changeBoth(ctx); err != nil {
		return err
	}
	if err := s.rollouts(ctx, 1, "two changes, one rollout"); err != nil {
		return err
	}
	if err := s.showEvent(ctx); err != nil {
		return err
	}
	if err := s.say(ctx, s.carrier()+" shows what it was given. Of a Secret that is a keyed digest, never a value:"); err != nil {
		return err
	}
	return s.showRevisions(ctx)
}

// deploy creates the application, before Lockstep runs.
func (s *story) deploy(ctx context.Context) error {
	if err := s.say(ctx, "A Deployment uses a ConfigMap and a Secret, and asks Lockstep to follow them:"); err != nil {
		return err
	}
	manifest := deploymentManifest
	if s.gated {
		manifest += gateLine
	}
	s.show(manifest)
	if err := pause(ctx, moment); err != nil {
		return err
	}
	s.line("")
	err := s.step(ctx, "create in namespace "+s.namespace+": configmap/web-settings, secret/web-password, deployment/web", func(ctx context.Context) error {
		return s.create(ctx, settingsManifest, mountedManifest, manifest)
	})
	if err != nil {
		return err
	}
	return s.settled(ctx)
}

func (s *story) changeBoth(ctx context.Context) error {
	if err := s.say(ctx, fmt.Sprintf("Now both change, a second apart. Kubernetes itself would restart no pod. Lockstep waits until\nboth have been quiet for %s, and then rolls the Deployment once:", s.quiet)); err != nil {
		return err
	}
	mark := s.log.mark()
	if err := s.step(ctx, "change configmap/web-settings: greeting hello -> good morning", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "web-settings", `{"data":{"greeting":"good morning"}}`)
	}); err != nil {
		return err
	}
	if err := pause(ctx, moment); err != nil {
		return err
	}
	if err := s.step(ctx, "change secret/web-password: a new password", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.Secret{}, "web-password", `{"stringData":{"password":"second"}}`)
	}); err != nil {
		return err
	}
	return s.rolledOnce(ctx, mark, "configmap/web-settings", "secret/web-password")
}

// rolledOnce waits for a rollout that delivers all of these changes, and a little longer for
// a second one, which must not follow.
func (s *story) rolledOnce(ctx context.Context, mark int, changes ...string) error {
	if err := s.decided(ctx, mark, "roll"); err != nil {
		return err
	}
	delivered := s.log.decision(mark, "roll").Detail
	for _, change := range changes {
		if !strings.Contains(delivered, change) {
			return fmt.Errorf("the rollout delivers %s, and not %s", delivered, change)
		}
	}
	if err := pause(ctx, quietWindow+moment); err != nil {
		return err
	}
	return s.settled(ctx)
}

// showEvent prints what "kubectl describe deployment web" shows.
func (s *story) showEvent(ctx context.Context) error {
	if err := s.say(ctx, "The Deployment carries an event that says the same:"); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		list := &eventsv1.EventList{}
		if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			if e.Reason == "Reloaded" && e.Regarding.Name == deployment {
				s.show(fmt.Sprintf("%s  %s  %s", e.Type, e.Reason, e.Note))
				return true, ""
			}
		}
		return false, "the Deployment has no event Reloaded"
	})
}
