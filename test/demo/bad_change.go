package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/kubelet"
)

const (
	// teams is how many Deployments share a ConfigMap, and team begins the name of each.
	teams = 12
	team  = "team-"

	sharedManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: shared-settings}
data:
  database: db.shop
`
	teamManifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: team-%02[1]d
  annotations: {lockstep.dev/reload: auto}
spec:
  progressDeadlineSeconds: 4           # Kubernetes gives up on a rollout after 4 s
  selector: {matchLabels: {app: team-%02[1]d}}
  template:
    metadata: {labels: {app: team-%02[1]d}}
    spec:
      schedulerName: none
      containers:
      - name: app
        image: registry.example/app:1
        envFrom:
        - configMapRef: {name: shared-settings}
`
)

// badChange: a change that breaks every workload reaches one of the twelve that use it. The next
// version reaches all.
func badChange(ctx context.Context, s *story) error {
	if s.templates != nil {
		return missingError{errors.New("without kube-controller-manager no rollout completes or fails")}
	}
	ctx, end := context.WithCancelCause(ctx)
	var pods sync.WaitGroup
	defer pods.Wait()
	defer end(nil)
	pods.Go(func() {
		if err := s.playTeams(ctx); err != nil {
			end(err)
		}
	})
	for _, part := range []func(context.Context, *story) error{deployTeams, breakTeams, fixTeams, removeTeams} {
		if err := part(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// playTeams runs the pods of the teams: those that read the bad setting crash.
func (s *story) playTeams(ctx context.Context) error {
	return kubelet.Play(ctx, s.client, s.namespace, func(pod *corev1.Pod) bool {
		if !strings.HasPrefix(pod.Labels["app"], team) {
			return true
		}
		read := &corev1.ConfigMap{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shared-settings"}, read)
		return err != nil || read.Data["database"] == "db.shpo"
	})
}

func deployTeams(ctx context.Context, s *story) error {
	if err := s.say(ctx, fmt.Sprintf("%d Deployments use one ConfigMap. From here on the demo plays the kubelet for their pods: it reports\nthem as ready, or as not ready when they read a setting that makes them crash.", teams)); err != nil {
		return err
	}
	manifests := []string{sharedManifest}
	for n := range teams {
		manifest := fmt.Sprintf(teamManifest, n+1)
		if s.gated {
			manifest += gateLine
		}
		manifests = append(manifests, manifest)
	}
	s.show(manifests[1])
	if err := s.step(ctx, fmt.Sprintf("create configmap/shared-settings and deployment/team-01 to team-%d", teams), func(ctx context.Context) error {
		return s.create(ctx, manifests...)
	}); err != nil {
		return err
	}
	if err := s.allTeams(ctx, "run", isComplete); err != nil {
		return err
	}
	return eventually(ctx, func(context.Context) (bool, string) {
		known := s.log.remembered(team)
		return known == teams, fmt.Sprintf("Lockstep knows %d of the Deployments", known)
	})
}

func breakTeams(ctx context.Context, s *story) error {
	if err := s.say(ctx, "Somebody mistypes the name of the database. Every Deployment would crash with it:"); err != nil {
		return err
	}
	if err := s.step(ctx, "change configmap/shared-settings: database db.shop -> db.shpo", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "shared-settings", `{"data":{"database":"db.shpo"}}`)
	}); err != nil {
		return err
	}
	if err := eventually(ctx, func(ctx context.Context) (bool, string) {
		text, err := s.command(ctx, "status").CombinedOutput()
		return err == nil && strings.Count(string(text), "VersionStopped") >= teams-1, "lockstep status does not show the stopped version: " + string(text)
	}); err != nil {
		return err
	}
	if err := s.lockstepSays(ctx, "status"); err != nil {
		return err
	}
	list, err := s.teams(ctx)
	if err != nil {
		return err
	}
	var have []string
	for _, d := range list {
		if d.Spec.Template.Annotations[settings.Inputs] != "" {
			have = append(have, d.Name)
		}
	}
	if len(have) != 1 {
		return fmt.Errorf("%d Deployments were rolled out with the bad change: %q, want 1", len(have), have)
	}
	s.good(fmt.Sprintf("the bad change reached one of %d Deployments: %s; the others keep the version before", teams, have[0]))
	return s.lockstepSays(ctx, "explain", "configmap/shared-settings")
}

func fixTeams(ctx context.Context, s *story) error {
	if err := s.say(ctx, "Another version ends the stop. It goes to one Deployment, then to 2, then to 4, each step when the earlier ones are healthy:"); err != nil {
		return err
	}
	list, err := s.teams(ctx)
	if err != nil {
		return err
	}
	for _, d := range list { // a busy machine may take longer than 4 s for a healthy rollout
		if err := s.patch(ctx, &appsv1.Deployment{}, d.Name, `{"spec":{"progressDeadlineSeconds":600}}`); err != nil {
			return err
		}
	}
	if err := s.step(ctx, "change configmap/shared-settings: database db.shpo -> db.shop.example", func(ctx context.Context) error {
		return s.patch(ctx, &corev1.ConfigMap{}, "shared-settings", `{"data":{"database":"db.shop.example"}}`)
	}); err != nil {
		return err
	}
	if err := s.allTeams(ctx, "have the next version", func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Annotations[settings.Inputs] != "" && isComplete(d)
	}); err != nil {
		return err
	}
	s.good(fmt.Sprintf("all %d Deployments are healthy with the next version", teams))
	return nil
}

// removeTeams leaves the cluster to the next chapters as it was.
func removeTeams(ctx context.Context, s *story) error {
	list, err := s.teams(ctx)
	if err != nil {
		return err
	}
	return s.step(ctx, fmt.Sprintf("delete the %d Deployments", teams), func(ctx context.Context) error {
		for i := range list {
			if err := s.client.Delete(ctx, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// teams are the Deployments of the teams.
func (s *story) teams(ctx context.Context) ([]appsv1.Deployment, error) {
	all := &appsv1.DeploymentList{}
	if err := s.client.List(ctx, all, client.InNamespace(s.namespace)); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	var found []appsv1.Deployment
	for _, d := range all.Items {
		if strings.HasPrefix(d.Name, team) {
			found = append(found, d)
		}
	}
	return found, nil
}

// allTeams waits until every Deployment of the teams is as a function wants it.
func (s *story) allTeams(ctx context.Context, what string, is func(*appsv1.Deployment) bool) error {
	return eventually(ctx, func(ctx context.Context) (bool, string) {
		list, err := s.teams(ctx)
		if err != nil {
			return false, err.Error()
		}
		count := 0
		for i := range list {
			if is(&list[i]) {
				count++
			}
		}
		return count == teams, fmt.Sprintf("%d of %d Deployments %s", count, teams, what)
	})
}

// isComplete reports whether the pods of the current template run, and no others.
func isComplete(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == 1 && s.Replicas == 1 && s.AvailableReplicas == 1
}
