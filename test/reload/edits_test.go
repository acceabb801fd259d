package reload_test

import (
	"fmt"
	"testing"
)

// TestEditsWhileAway: while the controller is down, a rollout makes a workload use another key, one
// more source, or another one instead. If the content changes after that rollout, its pods run the old
// one. If it changed before, or the controller can't tell and there are no pods, nothing is due.
func TestEditsWhileAway(t *testing.T) {
	t.Parallel()
	env := func(name, source, key string) string {
		return fmt.Sprintf("{name: %s, valueFrom: {configMapKeyRef: {name: %s, key: %s}}}", name, source, key)
	}
	pod := func(env string) string { return "containers: [{name: app, image: app, env: [" + env + "]}]" }
	one := env("ONE", "app", "key")
	edits := map[string]struct{ env, source string }{
		"key":    {one + ", " + env("TWO", "app", "more"), "configmap/app"},
		"source": {one + ", " + env("TWO", "extra", "key"), "configmap/extra"},
		"swap":   {env("ONE", "extra", "key"), "configmap/extra"},
	}
	content := func(name string) string { return configMap(name, "key: one, more: one") }
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, content("app")+content("extra")+deployment("web", auto, pod(one))+deployment("early", auto, pod(one)))
			c := s.runProcess(t)
			for _, name := range []string{"web", "early"} {
				s.awaitKnown(t, deploy, name, "configmap/app")
			}
			kill(t, c)
			s.change(t, web, "{spec: {replicas: 1, template: {spec: {"+pod(edit.env)+"}}}}") // the only pod is one of this template
			s.awaitObserved(t, web)
			s.StartPods(t, "web")
			s.awaitLaterSecond(t)
			s.change(t, edit.source, "{data: {key: two, more: two}}")
			s.awaitLaterSecond(t)
			s.change(t, "deployment/early", "{spec: {template: {spec: {"+pod(edit.env)+"}}}}")
			s.awaitObserved(t, "deployment/early")

			s.run(t)
			s.awaitRollouts(t, web, 2)
			s.checkRollouts(t, "its own rollout, and ours for the content that came after", 2, web)
			s.checkRollouts(t, "its own rollout came after the content", 1, "deployment/early")
		})
	}
}

// TestWritesThatLeaveNoTime: while the controller is down, pods load a content that times alone can't tell from the
// present one: it went back, a key was removed from it, or it was made while pods waited for it. A later write of the
// workload that leaves its template as it is doesn't change that.
func TestWritesThatLeaveNoTime(t *testing.T) {
	t.Parallel()
	const (
		one = "env: [{name: ONE, valueFrom: {configMapKeyRef: {name: app, key: key}}}]"
		all = "envFrom: [{configMapRef: {name: app}}]"
	)
	pod := func(reads string) string { return "containers: [{name: app, image: app, " + reads + "}]" }
	content := configMap("app", "key: one, more: one")
	for name, c := range map[string]struct {
		objects string
		away    func(t *testing.T, s *stage)
		want    int
	}{
		"Back": {content + deployment("web", auto, pod(one)), func(t *testing.T, s *stage) {
			t.Helper()
			s.change(t, "configmap/app", "{data: {key: two}}")
			s.change(t, web, "{spec: {template: {metadata: {annotations: {edited: by hand}}}}}")
			s.awaitObserved(t, web)
			s.StartPods(t, "web")
			s.awaitLaterSecond(t)
			s.change(t, "configmap/app", "{data: {key: one}}")
		}, 2},
		"Cut": {content + deployment("web", auto, pod(one)), func(t *testing.T, s *stage) {
			t.Helper()
			s.change(t, web, "{spec: {template: {spec: {"+pod(all)+"}}}}")
			s.awaitObserved(t, web)
			s.StartPods(t, "web")
			s.awaitLaterSecond(t)
			s.change(t, "configmap/app", "{data: {more: null}}")
		}, 2},
		"Arrived": {deployment("web", auto, pod(all)), func(t *testing.T, s *stage) {
			t.Helper()
			s.make(t, content)
			s.awaitLaterSecond(t)
			s.StartPods(t, "web")
			s.awaitLaterSecond(t)
			s.change(t, "configmap/app", "{data: {more: null}}")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.objects)
			s.change(t, web, "{spec: {replicas: 1}}")
			s.awaitObserved(t, web)
			process := s.runProcess(t)
			s.awaitKnown(t, deploy, "web", "configmap/app")
			kill(t, process)
			c.away(t, s)
			s.awaitLaterSecond(t)
			s.change(t, web, "{metadata: {labels: {touched: later}}}")
			s.run(t)
			s.awaitRollouts(t, web, c.want)
			s.checkRollouts(t, "pods have loaded another content", c.want, web)
		})
	}
}
