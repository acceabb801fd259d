package kubernetesreloader_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestOutages: the process lives through whatever happens to its connections,
// and delivers what changed meanwhile.
func TestOutages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.close()
	program := s.start(t) // With nobody to talk to.
	awaitLog(t, program, "cannot follow")
	s.gate.open(t)
	cm, d, lost := s.configMap("web", "0"), s.deployment("web", "web"), s.deployment("lost", "web")
	s.create(t, cm, d, lost)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})

	expired := s.gate.answer(watches("configmaps"), 3, gone)
	for i, during := range []func(change func()){
		func(change func()) {
			s.gate.cut(t)
			change()
		},
		func(change func()) { // A watch that begins and is told that it comes too late.
			s.gate.cut(t)
			labtest.Eventually(t, patience, func() (bool, string) { return s.gate.took(expired) == 3, "no watch was begun again" })
			change()
		},
		func(change func()) { // An API server that is gone, and a workload that goes meanwhile.
			s.gate.close()
			s.remove(t, lost)
			change()
			s.gate.open(t)
		},
		func(change func()) { // Answers that are no watch at all.
			s.gate.answer(watches("configmaps"), 1, status(http.StatusForbidden, "Forbidden"))
			s.gate.answer(watches("configmaps"), 1, status(http.StatusTooManyRequests, "TooManyRequests"))
			s.gate.answer(watches("configmaps"), 1, status(http.StatusGone, "Expired"))
			s.gate.cut(t)
			change()
		},
	} {
		value := strconv.Itoa(i + 1)
		during(func() {
			cm.Data["key"] = value
			s.update(t, cm)
		})
		s.awaitRolled(t, d, i+1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum(value)})
	}
	select {
	case <-program.Done():
		t.Fatal("the program has ended")
	default:
	}
	dead := s.gate.seen(func(c call) bool { return c.status == http.StatusNotFound && strings.HasSuffix(c.path, "/lost") })
	if len(dead) > 0 {
		t.Errorf("a workload that is gone was patched: %v", dead)
	}
}

// TestBrokenDiscovery: an aggregated API that does not answer is no concern.
func TestBrokenDiscovery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.answer(func(r *http.Request) bool { return !strings.Contains(r.URL.Path, "/namespaces/") }, always,
		status(http.StatusServiceUnavailable, "ServiceUnavailable"))
	s.run(t)
	s.fence(t)
}

// TestContinuousChanges: changes that never pause are delivered all the same.
func TestContinuousChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "0"), s.deployment("web", "web")
	s.create(t, cm, d)
	s.run(t, "--coalesce-period=1000")
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})
	begun := time.Now()
	for i := 1; len(variables(s.podSpec(t, d))) == 0; i++ {
		if time.Since(begun) > patience {
			t.Fatalf("%d changes in %s were not delivered", i, time.Since(begun))
		}
		cm.Data["key"] = strconv.Itoa(i)
		s.update(t, cm)
	}
}
