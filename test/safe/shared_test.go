package safe_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSharedChange: a Secret that the administrator names is one change in all namespaces: bad
// content reaches one of six workloads in two of them. The digest that joins the namespaces isn't
// published: it would show which Secrets are equal.
func TestSharedChange(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		other := labtest.Namespace(t, s.Cluster)
		s.enter(t, other)
		both := []string{s.Namespace, other}
		for _, namespace := range both {
			ca := testkit.Secret("ca", "key", "1")
			ca.Namespace = namespace
			s.Create(t, ca)
			for n := range 3 {
				d := user(name(n+1), "", "ca")
				d.Namespace = namespace
				s.create(t, d)
			}
		}
		s.fleet.catchUp(t, s.World, both...)
		s.awaitComplete(t)
		metrics := fmt.Sprint("127.0.0.1:", labtest.FreePort(t))
		s.run(t, "--settle", "100ms", "--shared", "secret/ca", "--namespaces", strings.Join(both, ","), "--metrics-addr", metrics, "--log-level", "debug")
		s.crash(everywhere)
		for _, namespace := range both {
			s.setSecret(t, namespace, "bad")
		}
		s.await(t, func() (bool, string) {
			stopped := 0
			for _, note := range s.allEvents(t, both...) {
				if containsAll(note, []string{"VersionStopped", "user-"}) {
					stopped++
				}
			}
			return stopped >= 5, fmt.Sprintf("%d workloads are stopped, want 5", stopped)
		})
		s.checkShared(t, "stopped", both)
		log := s.controller.Stderr()
		s.restart(t)
		s.checkShared(t, "stopped before the restart", both)
		s.checkUnpublished(t, log+s.controller.Stderr()+scrape(t, metrics), both)

		// The namespace in which it failed gets other content first. The others keep the stop.
		failed, rest := s.failedIn(t, both)
		s.mend(t)
		s.setSecret(t, failed, "good")
		s.await(t, func() (bool, string) {
			got := s.withSecret(t, failed)
			return got == 3, fmt.Sprintf("%d workloads got other content, want 3", got)
		})
		s.awaitComplete(t)
		s.witness.Pass(t)
		if got := s.withSecret(t, rest); got != 0 {
			t.Errorf("%d workloads got the version that failed in another namespace", got)
		}
	})
}

// failedIn returns the namespace of the workload that has the change, and the other one.
func (s *scene) failedIn(t *testing.T, both []string) (failed, rest string) {
	t.Helper()
	if s.withSecret(t, both[0]) > 0 {
		return both[0], both[1]
	}
	return both[1], both[0]
}

// withSecret counts the Deployments of a namespace that show the Secret.
func (s *scene) withSecret(t *testing.T, namespace string) (count int) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		if strings.Contains(d.Spec.Template.Annotations[settings.Inputs], "secret/ca~") {
			count++
		}
	}
	return count
}

func (s *scene) setSecret(t *testing.T, namespace, value string) {
	t.Helper()
	ca := &corev1.Secret{}
	ca.Namespace, ca.Name = namespace, "ca"
	if err := s.Client.Patch(t.Context(), ca, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"key":%q}}`, value))); err != nil {
		t.Fatal(err)
	}
}

// checkShared fails when another number than one of the users in both namespaces has the change.
func (s *scene) checkShared(t *testing.T, why string, namespaces []string) {
	t.Helper()
	s.revive(t)
	s.witness.Pass(t)
	s.fleet.catchUp(t, s.World, namespaces...)
	if got := s.fleet.names(func(s sight) bool { return strings.Contains(s.shown, "secret/ca~") }); len(got) != 1 {
		t.Errorf("%s: %d workloads have the change, want 1: %q", why, len(got), got)
	}
}

// checkUnpublished looks for the joining digests of both contents in the given text, the record,
// events and templates.
func (s *scene) checkUnpublished(t *testing.T, text string, namespaces []string) {
	t.Helper()
	key, err := access.ReadInstallationKey(t.Context(), s.Client, s.Own, "lockstep-installation-key")
	if err != nil {
		t.Fatal(err)
	}
	text += s.record(t) + strings.Join(s.allEvents(t, namespaces...), "\n") + strings.Join(s.fleet.templates(), "\n")
	for _, own := range []string{"secret/ca", "VersionStopped"} {
		if !strings.Contains(text, own) {
			t.Errorf("what was collected doesn't contain %s: nothing could be found in it", own)
		}
	}
	for _, value := range []string{"1", "bad"} {
		content := fingerprint.NewKeyedHasher(key).At(s.Namespace, "Secret", "ca").Content(nil, map[string][]byte{"key": []byte(value)})
		if digest := content.SharedDigest()[:8]; strings.Contains(text, digest) {
			t.Errorf("the digest %q that joins namespaces is published", digest)
		}
	}
}

// allEvents are the notes of Lockstep's events in namespaces, each after the object and the reason.
func (s *scene) allEvents(t *testing.T, namespaces ...string) []string {
	t.Helper()
	var notes []string
	for _, namespace := range namespaces {
		list := &eventsv1.EventList{}
		if err := s.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			notes = append(notes, strings.Join([]string{e.Regarding.Name, e.Type, e.Reason, e.Note}, " "))
		}
	}
	return notes
}
