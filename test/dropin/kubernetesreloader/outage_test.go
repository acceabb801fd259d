package kubernetesreloader_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestConnectionIsCut: watches are begun again, also when the first answer is
// that they come too late.
func TestConnectionIsCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "0"), s.deployment("web", "web")
	s.create(t, cm, d)
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})
	s.gate.cut()
	s.set(t, cm, "1")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("1")})
	// The state follows the answer to the patch. A cut between the two is another story:
	// see TestAnswerIsLost.
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	expired := s.gate.answer(watches("configmaps"), 2, gone)
	s.gate.cut()
	labtest.Eventually(t, patience, func() (bool, string) {
		n := s.gate.took(expired)
		return n == 2, fmt.Sprintf("%d watches were begun again, want 2", n)
	})
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 2, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
}

// TestAnswerIsLost: a write that was carried out, although its answer never came,
// is not repeated, and the next change is delivered.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "0"), s.deployment("web", "web")
	s.create(t, cm, d)
	s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})
	s.gate.answer(patches("web"), 1, s.gate.loseAnswer)
	s.set(t, cm, "1")
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("1")})
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("1")})
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 2, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
}

// TestServerIsGone: the process lives without an API server, from its start on,
// and delivers what changed meanwhile. What was deleted meanwhile is forgotten.
func TestServerIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.close()
	program := s.start(t)
	awaitLog(t, program, "cannot follow")
	s.gate.open()
	cm, d, lost := s.configMap("web", "0"), s.deployment("web", "web"), s.deployment("lost", "web")
	s.create(t, cm, d, lost)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})
	s.gate.close()
	s.remove(t, lost)
	s.set(t, cm, "1")
	s.gate.open()
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("1")})
	select {
	case <-program.Done():
		t.Fatal("the program has ended")
	default:
	}
	// The kinds come back one by one, so the change may have been tried once on what
	// was known before. A new workload on record shows that they were listed anew, and the
	// fence, which must be seen before its change, that everything was dealt with.
	s.create(t, s.configMap("anew", "1"), s.deployment("anew", "anew"))
	s.awaitState(t, map[string]string{"v1.ConfigMap_anew": sum("1")})
	s.fence(t)
	gone := func() int {
		return len(s.gate.seen(func(c call) bool { return strings.HasSuffix(c.path, "/lost") }))
	}
	before := gone()
	s.set(t, cm, "2")
	s.awaitRolled(t, d, 2, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("2")})
	if after := gone(); after != before {
		t.Errorf("a workload that is gone was patched %d times more", after-before)
	}
}

// TestWatchIsRefused: the program watches again, however often and why the API server refuses it.
func TestWatchIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cm, d := s.configMap("web", "0"), s.deployment("web", "web")
	s.create(t, cm, d)
	program := s.run(t)
	s.awaitState(t, map[string]string{"v1.ConfigMap_web": sum("0")})
	refusals := map[string]*rule{}
	for code, reason := range map[int]string{
		http.StatusForbidden: "Forbidden", http.StatusTooManyRequests: "TooManyRequests", http.StatusGone: "Expired",
	} {
		refusals[reason] = s.gate.answer(watches("configmaps"), 1, status(code, reason))
	}
	s.gate.cut()
	labtest.Eventually(t, patience, func() (bool, string) {
		for reason, refusal := range refusals {
			if s.gate.took(refusal) != 1 {
				return false, "the program didn't get the answer " + reason
			}
		}
		return true, ""
	})
	s.set(t, cm, "1")
	s.awaitRolled(t, d, 1, map[string]string{"main/_RELOADER_CONFIGMAP_WEB": sum("1")})
	awaitLog(t, program, "the gate says")
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
		s.set(t, cm, strconv.Itoa(i))
	}
}
