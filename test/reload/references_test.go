package reload_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// place is one way in which a pod names a source of its own, and what is done to
// that source.
type place struct {
	reason string
	// pod is the specification; %s stands for the source's name.
	pod string
	// annotations instead of "follow all that is referenced".
	annotations string
	secret      bool
	// patch of the source; by default the key "used" gets another value.
	patch string
	// still is true when that is no reason for a rollout.
	still bool
}

const (
	plain     = "containers: [{name: app, image: app}]"
	mounted   = "containers: [{name: app, image: app}], volumes: [{name: v, %s}]"
	variables = "containers: [{name: app, image: app, env: [{name: A, valueFrom: {%s}}]}]"
	prepared  = "containers: [{name: app, image: app}], initContainers: [{name: init, image: app, %s}]"

	unused = "{data: {unused: dHdv}}" // also valid as the data of a Secret
)

// in puts the reference into the pod.
func in(pod, reference string) string { return fmt.Sprintf(pod, reference) }

func places() map[string]place {
	return map[string]place{
		"volume-config":    {reason: "a mounted ConfigMap", pod: in(mounted, "configMap: {name: %s}")},
		"volume-secret":    {reason: "a mounted Secret", pod: in(mounted, "secret: {secretName: %s}"), secret: true},
		"projected-config": {reason: "part of a projected volume", pod: in(mounted, "projected: {sources: [{configMap: {name: %s}}]}")},
		"projected-secret": {reason: "part of a projected volume", pod: in(mounted, "projected: {sources: [{secret: {name: %s}}]}"), secret: true},
		"env-config":       {reason: "a variable", pod: in(variables, "configMapKeyRef: {name: %s, key: used}")},
		"env-secret":       {reason: "a variable", pod: in(variables, "secretKeyRef: {name: %s, key: used}"), secret: true},
		"envfrom-config":   {reason: "all variables", pod: "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: %s}}]}]"},
		"envfrom-secret":   {reason: "all variables", pod: "containers: [{name: app, image: app, envFrom: [{secretRef: {name: %s}}]}]", secret: true},
		"init-env":         {reason: "an init container's variable", pod: in(prepared, "env: [{name: A, valueFrom: {configMapKeyRef: {name: %s, key: used}}}]")},
		"init-envfrom":     {reason: "an init container's variables", pod: in(prepared, "envFrom: [{secretRef: {name: %s}}]"), secret: true},
		"optional":         {reason: "optional or not, it is there", pod: in(mounted, "configMap: {name: %s, optional: true}")},
		"binary":           {reason: "bytes count as text does", pod: in(mounted, "configMap: {name: %s}"), patch: "{binaryData: {more: AAEC}}"},
		"new-key":          {reason: "a further key is a further file", pod: in(mounted, "configMap: {name: %s}"), patch: unused},
		"removed-key":      {reason: "a file less is a change too", pod: in(mounted, "configMap: {name: %s}"), patch: "{data: {other: null}}"},
		"item":             {reason: "the key that is used", pod: in(mounted, "configMap: {name: %s, items: [{key: used, path: p}]}")},

		"item-unused":      {reason: "a key that is not mounted", pod: in(mounted, "configMap: {name: %s, items: [{key: used, path: p}]}"), patch: unused, still: true},
		"projected-unused": {reason: "a key that is not mounted", pod: in(mounted, "projected: {sources: [{secret: {name: %s, items: [{key: used, path: p}]}}]}"), secret: true, patch: unused, still: true},
		"env-unused":       {reason: "a key that no variable reads", pod: in(variables, "configMapKeyRef: {name: %s, key: used}"), patch: unused, still: true},
		"secret-unused":    {reason: "a key that no variable reads", pod: in(variables, "secretKeyRef: {name: %s, key: used}"), secret: true, patch: unused, still: true},
		"unused-removed":   {reason: "not even when it goes", pod: in(variables, "configMapKeyRef: {name: %s, key: used}"), patch: "{data: {other: null}}", still: true},
		"pull":             {reason: "a credential for images is no configuration", pod: plain + ", imagePullSecrets: [{name: %s}]", secret: true, still: true},
		"labels":           {reason: "labels are no content", pod: in(mounted, "configMap: {name: %s}"), patch: "{metadata: {labels: {a: b}, annotations: {c: d}}}", still: true},
		"unasked":          {reason: "nobody asked", pod: in(mounted, "configMap: {name: %s}"), annotations: "a: b", still: true},
		"unlisted":         {reason: "a list is all there is", pod: in(mounted, "configMap: {name: %s}"), annotations: settings.Reload + ": configmap/another", still: true},

		"listed":        {reason: "named by the annotation alone", pod: plain, annotations: settings.Reload + ": configmap/source-listed"},
		"listed-secret": {reason: "named by the annotation alone", pod: plain, annotations: settings.Reload + `: "auto, secret/source-listed-secret"`, secret: true},
		"globbed":       {reason: "meant by a pattern", pod: plain, annotations: settings.Reload + `: "configmap/source-glob*"`},
		"glob-secret":   {reason: "meant by a pattern", pod: plain, annotations: settings.Reload + `: "secret/*-glob-s*cret"`, secret: true},
	}
}

// manifest is the workload and its source.
func (p place) manifest(name string) string {
	annotations := p.annotations
	if annotations == "" {
		annotations = auto
	}
	pod := p.pod
	if pod != plain {
		pod = fmt.Sprintf(pod, "source-"+name)
	}
	source := configMap
	if p.secret {
		source = secret
	}
	return source("source-"+name, "used: one, other: one") + deployment(name, annotations, pod)
}

// disturb changes the source.
func (p place) disturb(t *testing.T, s *stage, name string) {
	t.Helper()
	kind, patch := "configmap/", p.patch
	if p.secret {
		kind = "secret/"
	}
	if patch == "" {
		patch = "{data: {used: dHdv}}"
	}
	s.change(t, kind+"source-"+name, patch)
}

// TestReferences changes the source of one workload for each way to name one, all
// under one controller, and expects exactly the right ones to be rolled out.
func TestReferences(t *testing.T) {
	t.Parallel()
	all := places()
	names := slices.Sorted(maps.Keys(all))
	manifest := ""
	for _, name := range names {
		manifest += all[name].manifest(name)
	}
	s := newStage(t, manifest)
	s.run(t)
	for _, name := range names {
		all[name].disturb(t, s, name)
	}
	for _, name := range names {
		if !all[name].still {
			s.awaitRollouts(t, "deployment/"+name, 1)
		}
	}
	s.witness.Pass(t)
	for _, name := range names {
		want := 1
		if all[name].still {
			want = 0
		}
		if got := s.rollouts(t, "deployment/"+name); got != want {
			t.Errorf("%s: %s was rolled out %d times, want %d; it shows %q", all[name].reason, name, got, want, s.shown(t, "deployment/"+name))
		}
	}
}

// TestPatternsNeverMeanOurOwnRecord: a workload beside the controller that
// follows everything would be rolled out for each rollout, for ever.
func TestPatternsNeverMeanOurOwnRecord(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one")+deployment("web", settings.Reload+`: "configmap/*"`, plain))
	s.Own = s.Namespace
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // every namespace gets it, in its own time
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
		return err == nil, fmt.Sprint(err)
	})
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	// A rollout is on record within two seconds, and would be seen as a change.
	for range 2 {
		shown := s.shown(t, "deployment/witness")
		s.witness.Pass(t)
		s.awaitKnown(t, deploy, "witness", digest(t, s.shown(t, "deployment/witness"), "configmap/witness"))
		if shown == s.shown(t, "deployment/witness") {
			t.Fatal("the witness was not rolled out")
		}
	}
	// The witness's own ConfigMap is meant by the pattern as well.
	if got := s.shown(t, web); got == "" || containsAny(got, "lockstep-state") {
		t.Errorf("the template shows %q, want the sources and not the record", got)
	}
	if got := s.rollouts(t, web); got > 3 {
		t.Errorf("%d rollouts for 3 changes: the record is followed", got)
	}
}
