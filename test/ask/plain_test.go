package ask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const (
	auto   = settings.Reload + ": auto"
	hourly = auto + ", " + settings.Quiet + ": 1h"
)

// configMap is a ConfigMap with one key.
func configMap(name string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: one}}\n", name)
}

// deployment has no pods: a rollout shows as a new ReplicaSet.
func deployment(name, annotations, pod string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, annotations: {%s}}
spec: {replicas: 0, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {%s}}}
`, name, annotations, name, name, pod)
}

// reads is a pod that reads ConfigMaps into its environment.
func reads(configMaps ...string) string {
	var from strings.Builder
	for _, name := range configMaps {
		fmt.Fprintf(&from, "{configMapRef: {name: %s}}, ", name)
	}
	return fmt.Sprintf("containers: [{name: app, image: app, envFrom: [%s]}]", from.String())
}

// app makes a Deployment with annotations and the ConfigMap of its name.
func app(annotations string) func(testing.TB, *stage, string) {
	return func(t testing.TB, s *stage, name string) {
		t.Helper()
		s.make(t, configMap(name)+deployment(name, annotations, reads(name)))
	}
}

// touched changes the ConfigMap of the Deployment's name.
func touched(t testing.TB, s *stage, name string) {
	t.Helper()
	s.touch(t, name)
}

// swollen gives the ConfigMap of the Deployment's name more keys than Lockstep keeps.
func swollen(t testing.TB, s *stage, name string) {
	t.Helper()
	var keys strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&keys, "key-%04d: x, ", i)
	}
	s.change(t, "configmap/"+name, "{data: {"+keys.String()+"}}")
}

// undone lets a change be rolled out and takes it back.
func undone(t testing.TB, s *stage, name string) {
	t.Helper()
	ref := "deployment/" + name
	s.awaitObserved(t, ref)
	s.touch(t, name)
	shown := s.AwaitRollout(t, name, "")
	s.awaitObserved(t, ref)
	s.awaitOnRecord(t, ref, strings.TrimPrefix(shown, "configmap/"+name+"~"))
	s.undo(t, name, "")
	s.awaitDecided(t, ref, string(input.Undone))
}

// plainScenes need nothing but a controller.
func plainScenes() group {
	const further = "v1/ReplicationController=spec.pod"
	return group{
		open: func(_ testing.TB, s *stage) { s.flags = []string{"--kind", further} },
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t, "--kind", further)
		},
		scenes: append(inputScenes(), []scene{
			{reason: input.Undone, where: inState, make: app(auto), bring: undone},
			{reason: input.Released, where: inEvents, make: app(auto), bring: released, also: isInStep},
			{reason: input.Following, where: inEvents, make: app(auto), also: isInStep},
			{reason: input.NotFollowed, where: inState, make: app(settings.Reload + ": 'configmap/none-*'")},
			{reason: input.InvalidAnnotation, where: inState, make: app(auto + ", " + settings.Quiet + ": soon")},
			{reason: input.QuietWindow, where: inState, make: app(hourly), bring: touched, also: looksAgain},
			{reason: input.Held, where: inState, make: app(auto + ", " + settings.Hold + `: 'release freeze'`), bring: touched},
			{reason: input.Paused, where: inState, make: app(auto), bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.change(t, "deployment/"+name, "{spec: {paused: true}}")
				s.awaitObserved(t, "deployment/"+name)
				s.touch(t, name)
			}},
			{reason: input.ImmutableReplaced, where: inState, make: app(auto), bring: replaced},
			{reason: input.NextJob, where: inStep, ref: "cronjob/nightly", make: nightly, bring: touched},
			{reason: input.StrategyOff, where: inState, make: app(auto + ", " + settings.Strategy + ": evict"), bring: touched},
			{reason: input.TooManySources, where: inState, make: app(settings.Reload + ": '" + strings.Repeat("configmap/a-*,", 64) + "configmap/b-*'")},
			{reason: input.NoTemplate, where: inState, ref: "replicationcontroller/bare", make: bare},
			{reason: input.TooManyKeys, where: inWarnings, bring: swollen, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+deployment(name, auto, fmt.Sprintf("containers: [{name: app, image: app, env: [{name: KEY, valueFrom: {configMapKeyRef: {name: %s, key: key}}}]}]", name)))
			}},
			{reason: input.SourceUnknown, where: inWarnings, make: app(settings.Reload + ": 'configmap/sourceunknown,configmap/nowhere'"), also: isInStep},
			{reason: input.Reloaded, where: inEvents, make: app(auto), bring: touched, also: isInStep},
			{reason: input.WouldReload, where: inEvents, make: app(auto + ", " + settings.Observe + ": 'true'"), bring: touched, also: isInStep},
			{reason: input.ImagesOff, where: inWarnings, make: app(auto + ", " + settings.ImagePrefix + "app: 'registry.example/app:1.*'"), also: isInStep},
		}...),
	}
}

// inputScenes are about what is known of an input.
func inputScenes() []scene {
	return []scene{
		{reason: input.InStep, where: inStep, make: app(auto), bring: func(t testing.TB, s *stage, name string) {
			t.Helper()
			s.annotate(t, "deployment/"+name, settings.Hold, "nothing is due")
		}},
		{reason: input.Changed, where: inInputs, make: app(hourly), bring: touched, also: saysFromAndTo},
		{reason: input.Baseline, where: inStep, make: app(auto)},
		{reason: input.NewBasis, where: inStep, make: app(auto), bring: func(t testing.TB, s *stage, name string) {
			t.Helper()
			s.change(t, "deployment/"+name, fmt.Sprintf("{spec: {template: {spec: {containers: [{name: app, image: app, env: [{name: KEY, valueFrom: {configMapKeyRef: {name: %s, key: key}}}]}]}}}}", name))
		}},
		{
			reason: input.Arrived, where: inStep,
			make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, deployment(name, auto, reads(name)))
			},
			bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name))
			},
		},
		{
			reason: input.Missing, where: inState,
			make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+configMap("other")+deployment(name, auto, reads(name, "other")))
			},
			bring: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.delete(t, "configmap/"+name)
				s.touch(t, "other")
			},
		},
		{reason: input.DeliveredByRollout, where: inStep, make: app(hourly), bring: func(t testing.TB, s *stage, name string) {
			t.Helper()
			s.awaitObserved(t, "deployment/"+name)
			s.touch(t, name)
			s.awaitDecided(t, "deployment/"+name, string(input.QuietWindow))
			s.change(t, "deployment/"+name, "{spec: {template: {metadata: {annotations: {restarted: now}}}}}")
		}},
	}
}

// released takes a change back and accepts that.
func released(t testing.TB, s *stage, name string) {
	t.Helper()
	undone(t, s, name)
	s.AwaitEvent(t, name, "Warning Undone")
	if _, stderr, code := s.release(t, "deployment/"+name); code != 0 {
		t.Fatalf("release ended with %d: %s", code, stderr)
	}
	s.awaitDecided(t, "deployment/"+name, string(input.Released))
}

// replaced deletes an immutable ConfigMap and makes it again with other content.
func replaced(t testing.TB, s *stage, name string) {
	t.Helper()
	s.change(t, "configmap/"+name, "{immutable: true}")
	s.awaitOnRecord(t, "deployment/"+name, "sealed")
	s.delete(t, "configmap/"+name)
	s.Create(t, testkit.ConfigMap(name, "key", "two"))
}

func nightly(t testing.TB, s *stage, name string) {
	t.Helper()
	s.make(t, configMap(name)+fmt.Sprintf(`
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: %s, annotations: {%s}}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}
`, name, auto, reads(name)))
}

// bare is an object that has no pod template where its kind was said to have one.
func bare(t testing.TB, s *stage, name string) {
	t.Helper()
	s.make(t, fmt.Sprintf(`
apiVersion: v1
kind: ReplicationController
metadata: {name: %s, annotations: {%s}}
spec: {replicas: 0, selector: {app: %s}, template: {metadata: {labels: {app: %s}}, spec: {containers: [{name: app, image: app}]}}}
`, name, auto, name, name))
}

func isInStep(_ testing.TB, _ *stage, e explanation) string { return notInStep(e) }

// looksAgain: what ends by itself says when.
func looksAgain(_ testing.TB, _ *stage, e explanation) string {
	if e.State.Next == nil || !e.State.Next.After(*e.State.Since) {
		return "it does not say when the controller looks again"
	}
	return ""
}

// saysFromAndTo: the versions are those that the controller wants to move from and to.
func saysFromAndTo(t testing.TB, s *stage, e explanation) string {
	t.Helper()
	const ref, id = "deployment/changed", "configmap/changed"
	want := s.awaitDecided(t, ref, string(input.QuietWindow)).Message
	got := e.input(id)
	if text := fmt.Sprintf("%s %s -> %s", id, got.Delivered, got.Current); text != want || got.Delivered == got.Current || e.State.Message != want {
		return "the controller wants " + want
	}
	return ""
}
