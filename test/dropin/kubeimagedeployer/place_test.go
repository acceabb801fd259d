package kubeimagedeployer_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestTakenPorts: the original opened no port, so that another program on one doesn't end the
// process. The log says what to do, and images are followed.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var taken []string
	for range 2 {
		other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		taken = append(taken, other.Addr().String())
	}
	want := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"))
	r := s.start(t, "METRICS_ADDR="+taken[0], "PROBE_ADDR="+taken[1])
	s.awaitImages(t, "web", "app="+want)
	stop(t, r)
	for what, place := range map[string][2]string{"metrics": {taken[0], "METRICS_ADDR"}, "probes": {taken[1], "PROBE_ADDR"}} {
		line := regexp.MustCompile(`level=ERROR .*0 listens nowhere" .*listen for ` + what + ` on ` + regexp.QuoteMeta(place[0]) + `: .*address already in use; change ` + place[1])
		if n := len(line.FindAllString(r.Stderr(), -1)); n != 1 {
			t.Errorf("%d lines for %s, want one:\n%s", n, what, r.Stderr())
		}
	}
}

// TestSettingsWithoutEffect: the original kept running with a webhook that isn't a URL, and with
// every kind switched off. A line break after the namespace is dropped.
func TestSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	want := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"))
	r := s.start(t, "OFF_DEPLOYMENTS=true", "OFF_STATEFULSETS=true", "OFF_DAEMONSETS=true", "OFF_CRONJOBS=true", "PROBE_ADDR=127.0.0.1:0")
	testkit.Started(t, r).AwaitReady(t, true)
	awaitLog(t, r, "every kind of workload is off")
	stop(t, r)
	r = s.start(t, "SLACK_WEBHOOK=hooks.example/T/B/secret", "CONTROLLER_WATCH_NAMESPACE="+s.Namespace+"\n")
	s.awaitImages(t, "web", "app="+want)
	stop(t, r)
	if log := r.Stderr(); !strings.Contains(log, "slack-webhook has no effect") || strings.Contains(log, "B/secret") {
		t.Errorf("the log doesn't warn of the webhook, or contains it:\n%s", log)
	}
}

// TestTwoReplicas: both follow every workload, because there is no lease. Each image is rolled out
// once, and the second replica goes on alone when the first has ended.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"))
	replicas := []*labtest.Running{s.start(t), s.start(t)}
	for _, r := range replicas {
		awaitLog(t, r, "msg=following resource=deployments")
	}
	s.awaitImages(t, "web", "app="+first)
	s.awaitImages(t, "web", "app="+s.push(t, "app:latest", "two"))
	stop(t, replicas[0])
	s.awaitImages(t, "web", "app="+s.push(t, "app:latest", "three"))
	s.fence(t)
	if got := s.Deployment(t, "web").Generation; got != 4 {
		t.Errorf("generation %d after three images, want 4", got)
	}
}

// TestRegistriesWithoutTLS: a local registry that closes a connection with TLS, or answers with
// something else, is asked in plain HTTP, by the controller and by the command.
func TestRegistriesWithoutTLS(t *testing.T) {
	t.Parallel()
	s, plain := newSite(t), testkit.StartRegistry(t)
	plain.Push(t, "app", "latest")
	digest, err := registrylab.ChildDigest("latest", registrylab.Platforms()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for name, answer := range map[string]string{"closes": "", "words": "220 lab ESMTP\r\n", "http": "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		door := testkit.NewDoor(t, testkit.Way{Answer: answer}, testkit.Way{To: plain.Address})
		d := s.deployment(name, "app:latest")
		d.Annotations[s.key+"/app"] = door.Address + "/app:latest"
		s.Create(t, d)
		want[name] = door.Address + "/app@" + digest
	}
	s.start(t)
	for name, image := range want {
		s.awaitImages(t, name, "app="+image)
		repository, _, _ := strings.Cut(image, "@")
		stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: program(t, "kube-image-deployer-cli"), Args: []string{"--image", repository, "--tag", "latest"}, Dir: s.dir})
		if stdout != image+"\n" || code != 0 {
			t.Errorf("%s: the command prints %q and %q, exit %d", name, stdout, stderr, code)
		}
	}
}

// TestEvents: with the original's role there are none, and the log has what they would say. When a role
// allows them they are written, those that waited too.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"), s.deployment("broken", "missing:1"))
	r := s.start(t)
	s.awaitImages(t, "web", "app="+first)
	awaitLog(t, r, "cannot write events, because the role does not allow it; this log contains their text")
	rolled, warned := s.inLog("web", "decided"), s.inLog("broken", "warns")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return rolled.MatchString(r.Stderr()) && warned.MatchString(r.Stderr()), "the log has not both texts:\n" + r.Stderr()
	})
	if events := append(s.Events(t, "web"), s.Events(t, "broken")...); len(events) > 0 {
		t.Errorf("without the permission there are the events %q", events)
	}
	unresolved := warned.FindStringSubmatch(r.Stderr())[1]

	s.account.AllowEverywhere(t, append(role(), labtest.Rule{Groups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "list"}})...)
	testkit.AwaitListing(t, s.account, true, &eventsv1.EventList{}) // the grant reaches the API server's authorizer a moment later
	s.AwaitEvent(t, "broken", "Warning Unresolved "+unresolved)
	s.AwaitEvent(t, "web", "Normal Reloaded rolled out "+rolled.FindStringSubmatch(r.Stderr())[1])
	s.awaitImages(t, "web", "app="+s.push(t, "app:latest", "two"))
	s.AwaitEvent(t, "web", "Normal Reloaded rolled out image/app "+short(first)+" -> ")
	stop(t, r)
	if !warned.MatchString(r.Stderr()) || !rolled.MatchString(r.Stderr()) {
		t.Errorf("with events the log says less:\n%s", r.Stderr())
	}
}

// inLog finds a line about a Deployment, and the text of the event that belongs to it.
func (s *site) inLog(name, line string) *regexp.Regexp {
	reason := map[string]string{"decided": "Reloaded", "warns": "Unresolved"}[line]
	return regexp.MustCompile(fmt.Sprintf(`msg=%s workload=Deployment/%s/%s (?:verb=roll )?reason=%s message="([^"]*)"`, line, s.Namespace, name, reason))
}

// short is the beginning of an image's digest, as texts show it.
func short(image string) string {
	_, digest, _ := strings.Cut(image, "@sha256:")
	return digest[:10]
}
