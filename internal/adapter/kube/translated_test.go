package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// TestTranslatedWorkload: another tool's annotations are kept in our words, and only when the
// vocabulary reads them.
func TestTranslatedWorkload(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	reads := settings.Native{Reads: []settings.ReloadWords{stakater.Translator{Words: stakater.Words{Keys: keys}}}}
	for name, tc := range map[string]struct {
		reason        string
		words         settings.Native
		own, template map[string]string
		want          map[string]string
		lost          []string
	}{
		"Off":      {reason: "nothing is read unless it is asked for", own: map[string]string{keys.Auto: "true"}, template: map[string]string{keys.Auto: "true"}},
		"Own":      {reason: "the usual case", words: reads, own: map[string]string{keys.Auto: "true", settings.Quiet: "1m"}, want: map[string]string{settings.Reload: "auto", settings.Quiet: "1m"}},
		"Template": {reason: "also on the pod template", words: reads, template: map[string]string{keys.Auto: "true"}, want: map[string]string{settings.Reload: "auto"}},
		"OursWins": {reason: "our own annotation wins, and nothing of the other is reported", words: reads, own: map[string]string{keys.Auto: "true", keys.PausePeriod: "5m", settings.Reload: "never"}, want: map[string]string{settings.Reload: "never"}},
		"Lost":     {reason: "what has no counterpart is reported", words: reads, own: map[string]string{keys.ClassAuto: "true"}, want: map[string]string{keys.ClassAuto: "Lockstep doesn't follow SecretProviderClasses"}, lost: []string{"annotation " + keys.ClassAuto + ": Lockstep doesn't follow SecretProviderClasses"}},
		"Nothing":  {reason: "most workloads say nothing", words: reads},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: tc.own}}
			d.Spec.Template.Annotations = tc.template
			w, err := SlimWorkload(Deployment(), d, tc.words)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.lost, tc.words.Intent(w.Annotations, nil).Mistakes.Lost); diff != "" {
				t.Errorf("%s: reported (-want +got):\n%s", tc.reason, diff)
			}
			if tc.own != nil && d.Annotations[keys.Auto] != tc.own[keys.Auto] {
				t.Error("the object itself was changed")
			}
		})
	}
}

func TestTranslatedSource(t *testing.T) {
	t.Parallel()
	keys := stakater.DefaultKeys()
	reads := settings.Native{Reads: []settings.ReloadWords{stakater.Translator{Words: stakater.Words{Keys: keys}}}}
	for name, tc := range map[string]struct {
		words settings.Native
		own   map[string]string
		want  settings.Source
	}{
		"Off":      {settings.Native{}, map[string]string{keys.Ignore: "true"}, settings.Source{}},
		"Ignore":   {reads, map[string]string{keys.Ignore: "true"}, settings.Source{Mode: settings.Never}},
		"Match":    {reads, map[string]string{keys.Match: "true"}, settings.Source{Match: true}},
		"OursWins": {reads, map[string]string{keys.Ignore: "true", settings.Reload: "auto"}, settings.Source{Mode: settings.Follow}},
	} {
		s, err := Hashers{}.Slim(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: tc.own}}, tc.words)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, settings.ForSource(s.Annotations)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
