package notify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// marker is part of every secret of the targets.
const marker = "5ecre7"

// receiver answers requests to one host.
type receiver func(attempt int, r *http.Request) (*http.Response, error)

func answers(status int, header ...string) receiver {
	return func(int, *http.Request) (*http.Response, error) {
		response := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", marker), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(marker))}
		if len(header) == 2 {
			response.Header.Set(header[0], header[1])
		}
		return response, nil
	}
}

// failsFirst behaves in one way for a number of attempts, and then accepts everything.
func failsFirst(times int, as receiver) receiver {
	return func(attempt int, r *http.Request) (*http.Response, error) {
		if attempt > times {
			as = answers(http.StatusOK)
		}
		return as(attempt, r)
	}
}

// after answers late.
func after(pause time.Duration, then receiver) receiver {
	return func(attempt int, r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(pause):
			return then(attempt, r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// post is a request that a receiver got.
type post struct {
	after time.Duration
	host  string
	body  string
}

// network is an HTTP client's network: a receiver for each host.
type network struct {
	hosts map[string]receiver
	began time.Time

	mu    sync.Mutex
	posts []post
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.posts = append(n.posts, post{time.Since(n.began), r.URL.Host, string(body)})
	attempt := 0
	for _, p := range n.posts {
		if p.host == r.URL.Host {
			attempt++
		}
	}
	n.mu.Unlock()
	answer := n.hosts[r.URL.Host]
	if answer == nil {
		return nil, errors.New("no such host")
	}
	return answer(attempt, r)
}

// to are the posts to a host.
func (n *network) to(host string) (all []post) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.posts {
		if p.host == host {
			all = append(all, p)
		}
	}
	return all
}

// site is a Notifier with its file, its network and its metrics.
type site struct {
	*notify.Notifier
	*network
	problems
	file     string
	registry *prometheus.Registry
}

// newSite makes a Notifier with targets for the hosts, each with warnings and errors.
func newSite(t *testing.T, hosts map[string]receiver) *site {
	t.Helper()
	targets := "batch: 1s\ntargets:\n"
	for host := range hosts {
		targets += fmt.Sprintf("  %s: {webhook: 'https://%s/%s', hmac: %s-0123456789, token: %s, headers: {X-A: %s}}\n", host, host, marker, marker, marker, marker)
	}
	s := &site{network: &network{hosts: hosts, began: time.Now()}, file: filepath.Join(t.TempDir(), "targets.yaml"), registry: prometheus.NewRegistry()}
	s.write(t, targets)
	s.Notifier = notify.New(notify.Options{
		File: s.file, Metrics: s.registry, Now: time.Now, Report: s.report, Transport: s.network,
		Namespace: func(namespace string) map[string]string {
			return map[string]string{"lockstep.dev/notify": "team-" + namespace}
		},
	})
	return s
}

func (s *site) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *site) start(t *testing.T) {
	t.Helper()
	testkit.RunInBackground(t, s.Run)
}

// metric is the value of a metric with that target and result, -1 without.
func (s *site) metric(t *testing.T, name, target, result string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["target"] == target && labels["result"] == result {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// showsNothing checks that no secret is in what was reported and counted.
func (s *site) showsNothing(t *testing.T) {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := s.all() + fmt.Sprint(families)
	for host := range s.hosts {
		if strings.Contains(all, marker) || strings.Contains(all, "//"+host) {
			t.Errorf("a secret is shown: %s", all)
		}
	}
}

// warning is about a change such as "configmap/app 77ab01c9de".
func warning(namespace, name, change string) announce.Event {
	text, version, _ := strings.Cut(change, " ")
	id, _ := input.ParseID(text)
	return announce.Event{
		About:  &corev1.ObjectReference{Kind: "Deployment", Namespace: namespace, Name: name},
		Reason: string(input.VersionStopped), Warning: true, Note: "stopped", Change: input.Change{Namespace: namespace, ID: id, Version: version},
	}
}

// TestReceivers: whatever a receiver does, another one gets its messages at once, and no rollout
// waits.
func TestReceivers(t *testing.T) {
	t.Parallel()
	never := after(time.Hour, answers(http.StatusOK))
	for name, tc := range map[string]struct {
		reason   string
		receiver receiver
		attempts []time.Duration // when
		sent     float64
		said     string
	}{
		"Good":        {"one message for all", answers(http.StatusOK), []time.Duration{time.Second}, 1, ""},
		"Accepted":    {"PagerDuty and Teams answer 202, Discord 204", answers(http.StatusAccepted), []time.Duration{time.Second}, 1, ""},
		"Slow":        {"it is waited for", after(9*time.Second, answers(http.StatusOK)), []time.Duration{time.Second}, 1, ""},
		"RateLimited": {"when it says", failsFirst(2, answers(http.StatusTooManyRequests, "Retry-After", "30")), []time.Duration{1 * time.Second, 31 * time.Second, 61 * time.Second}, 1, "notify bad: it answered 429 Too Many Requests; Lockstep sends the messages again"},
		"Date":        {"a date is advice too", failsFirst(1, answers(http.StatusServiceUnavailable, "Retry-After", "Sat, 01 Jan 2000 00:05:00 GMT")), []time.Duration{1 * time.Second, 300 * time.Second}, 1, "503"},
		"TooLong":     {"it doesn't say for how long", failsFirst(1, answers(http.StatusTooManyRequests, "Retry-After", "60000")), []time.Duration{1 * time.Second, 601 * time.Second}, 1, "429"},
		"Broken":      {"with growing pauses", failsFirst(3, answers(http.StatusInternalServerError)), []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, 1, "notify bad: it answered 500 Internal Server Error; Lockstep sends the messages again"},
		"Refuses":     {"it would refuse it again", answers(http.StatusBadRequest), []time.Duration{time.Second}, 0, "notify bad: it answered 400 Bad Request; the messages are dropped; check the webhook"},
		"Redirects":   {"elsewhere isn't a target", answers(http.StatusTemporaryRedirect, "Location", "https://other/"), []time.Duration{time.Second}, 0, "307"},
		"Never":       {"each attempt ends", failsFirst(2, never), []time.Duration{1 * time.Second, 12 * time.Second, 24 * time.Second}, 1, "notify bad: it didn't answer in time"},
		"Gone":        {"there is nobody", failsFirst(1, func(int, *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }), []time.Duration{1 * time.Second, 2 * time.Second}, 1, "notify bad: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, map[string]receiver{"bad": tc.receiver, "good": answers(http.StatusOK)})
				s.start(t)
				begun := time.Now()
				for i := range 40 {
					s.Announce(warning("shop", fmt.Sprint("web-", i), "configmap/app 2"))
				}
				if waited := time.Since(begun); waited != 0 {
					t.Errorf("a rollout waits for %s", waited)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				var attempts []time.Duration
				for _, p := range s.to("bad") {
					attempts = append(attempts, p.after.Truncate(time.Second))
				}
				if fmt.Sprint(attempts) != fmt.Sprint(tc.attempts) {
					t.Errorf("%s: attempts after %s, want %s", tc.reason, attempts, tc.attempts)
				}
				if posts := s.to("good"); len(posts) != 1 || posts[0].after != time.Second || !strings.Contains(posts[0].body, `"count":40`) || len(s.to("other")) > 0 {
					t.Errorf("the other receiver got %v", posts)
				}
				if got := s.metric(t, "lockstep_notifications_total", "bad", "Sent"); got != tc.sent {
					t.Errorf("%v are counted as sent", got)
				}
				if waiting := s.metric(t, "lockstep_notifications_waiting", "bad", ""); waiting != 0 {
					t.Errorf("%v wait", waiting)
				}
				if said := s.all(); !strings.Contains(said, tc.said) || strings.Count(said, "\n") > 0 || said == "" != (tc.said == "") {
					t.Errorf("%q is reported, want once %q", said, tc.said)
				}
				s.showsNothing(t)
			})
		})
	}
}

// TestReceiverThatNeverAnswers: the queue is bounded, a loud namespace doesn't push out others,
// and the receiver learns how many messages it missed.
func TestReceiverThatNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := make(chan struct{})
		s := newSite(t, map[string]receiver{"bad": func(_ int, r *http.Request) (*http.Response, error) {
			select {
			case <-down:
				return answers(http.StatusOK)(0, r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}})
		s.start(t)
		s.Announce(warning("quiet", "web", "configmap/quiet 1"))
		for i := range 5000 {
			s.Announce(warning("loud", fmt.Sprint(i), fmt.Sprint("configmap/app ", i)))
		}
		s.Announce(warning("calm", "web", "configmap/calm 1"))
		time.Sleep(time.Hour)
		if waiting := s.metric(t, "lockstep_notifications_waiting", "bad", ""); waiting != 500 {
			t.Errorf("%v wait", waiting)
		}
		dropped := s.metric(t, "lockstep_notifications_total", "bad", "Dropped")
		if dropped != 4502 || s.metric(t, "lockstep_notifications_total", "bad", "Retried") < 50 {
			t.Errorf("%v are dropped", dropped)
		}
		close(down)
		time.Sleep(time.Hour)
		synctest.Wait()
		var accepted []string
		missed := 0
		for _, p := range s.to("bad") {
			accepted = append(accepted, p.body)
			if strings.Contains(p.body, `"dropped":4502`) {
				missed++
			}
		}
		all := strings.Join(accepted, "\n")
		for _, want := range []string{`"namespace":"quiet"`, `"namespace":"calm"`, `"change":"configmap/app 4999"`} {
			if !strings.Contains(all, want) {
				t.Errorf("%s was not sent", want)
			}
		}
		if sent := s.metric(t, "lockstep_notifications_total", "bad", "Sent"); sent != 500 || missed == 0 || strings.Contains(accepted[len(accepted)-1], `"dropped":4502`) {
			t.Errorf("%v were sent; %d say how many were dropped", sent, missed)
		}
		s.showsNothing(t)
	})
}

// TestFlush: what waits is sent at the end, within the time that is left. A receiver that never
// answers doesn't take the time of another.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]receiver{"bad": after(time.Hour, answers(http.StatusOK)), "good": answers(http.StatusOK)})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		s.Announce(warning("shop", "web", "configmap/app 1"))
		s.Announce(warning("shop", "web", "configmap/app 2"))
		end()
		<-ended
		if len(s.to("good")) != 0 {
			t.Fatal("it was sent before it was due")
		}
		began := time.Now()
		s.Flush(ctx)
		if took := time.Since(began); took > 5*time.Second || len(s.to("good")) != 2 {
			t.Errorf("%v were sent in %s", s.to("good"), took)
		}
		s.showsNothing(t)
	})
}

// TestTargetsFile: the file is read again. One that is wrong changes nothing, and says so once.
func TestTargetsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, map[string]receiver{"first": answers(http.StatusOK)})
		s.start(t)
		valid := func() float64 { return s.metric(t, "lockstep_notify_config_valid", "", "") }
		if valid() != 1 {
			t.Error("the file isn't valid")
		}
		s.hosts["second"], s.hosts["tenant"] = answers(http.StatusOK), answers(http.StatusOK)
		s.write(t, "targets: {first: {slack: "+marker+"}}")
		time.Sleep(time.Minute)
		s.Announce(warning("shop", "web", "1"))
		time.Sleep(time.Minute)
		if said := s.all(); len(s.to("first")) != 1 || valid() != 0 || said != "read the notification targets: target first: slack: want a URL that begins with https:// or http://; the previous targets stay in use" {
			t.Errorf("%v were sent; valid %v; %q", s.to("first"), valid(), said)
		}
		s.write(t, "batch: 1s\ntargets: {second: {slack: 'https://second/"+marker+"'}, team-shop: {slack: 'https://tenant/"+marker+"', namespaces: [shop]}}")
		time.Sleep(time.Minute)
		s.Announce(warning("shop", "web", "2"))
		s.Announce(warning("blog", "web", "3"))
		time.Sleep(time.Minute)
		if len(s.to("first")) != 1 || len(s.to("second")) != 1 || valid() != 1 {
			t.Errorf("%v and %v were sent; valid %v", s.to("first"), s.to("second"), valid())
		}
		if tenant := s.to("tenant"); len(tenant) != 1 || !strings.Contains(tenant[0].body, "namespace shop") || strings.Contains(tenant[0].body, "blog") {
			t.Errorf("the tenant got %v", tenant)
		}
		if gone := s.metric(t, "lockstep_notifications_total", "first", "Sent"); gone != -1 {
			t.Errorf("the first target is still counted: %v", gone)
		}
		if problem := s.Problem("shop", "team-shop") + s.Problem("blog", "team-shop"); problem != "this namespace isn't allowed to choose a notification target" {
			t.Errorf("%q", problem)
		}
		if err := os.Remove(s.file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if said := s.all(); strings.Count(said, "no such file") != 1 || valid() != 0 {
			t.Errorf("%q; valid %v", said, valid())
		}
		s.showsNothing(t)
	})
}

// TestWithoutFile: a controller whose Secret isn't there yet works, and warns nobody's workloads.
func TestWithoutFile(t *testing.T) {
	t.Parallel()
	p := &problems{}
	n := notify.New(notify.Options{File: filepath.Join(t.TempDir(), "none"), Now: time.Now, Report: p.report})
	n.Announce(warning("shop", "web", "1"))
	n.Flush(t.Context())
	if n.Problem("shop", "ops") != "" || !strings.Contains(p.all(), "no such file") {
		t.Errorf("%q; %q", n.Problem("shop", "ops"), p.all())
	}
}
