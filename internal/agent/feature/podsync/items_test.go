package podsync_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

func mapped(o *podsync.Options) {
	o.Rules.Items = []filemap.Item{{Key: "a", Path: "conf.d/a"}}
}

// putKeys gives the source other keys, each with a content.
func putKeys(agent *podsync.Agent, keys map[string]string) {
	o := filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "app"}}
	for key, content := range keys {
		o.Entries = append(o.Entries, filemap.Entry{Key: key, Digest: sha256.Sum256([]byte(content))})
	}
	agent.Inventory().Replace(source, []filemap.Object{o})
}

// A mapped key that is removed takes its file along and holds nothing up, also
// over a restart of the agent.
func TestAMappedKeyIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, _ := run(t, w, mapped)
		putKeys(agent, map[string]string{"a": "1", "b": "1"})
		synctest.Wait()
		putKeys(agent, map[string]string{"b": "2"})
		synctest.Wait()
		s := w.status(t)
		if len(w.published) != 2 || s.Reason != podsync.InStep || !s.Degraded || !strings.Contains(s.Message, "item a=conf.d/a: no source contains this key") {
			t.Errorf("published %v, status %+v", w.published, s)
		}
		again, _ := run(t, w, mapped)
		putKeys(again, map[string]string{"b": "3"})
		synctest.Wait()
		if len(w.published) != 3 {
			t.Errorf("published %v after a restart", w.published)
		}
	})
}

// In the first set a mapped key that is missing is a typing mistake.
func TestAMappedKeyThatNeverWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, _ := join(t, w, mapped)
		putKeys(agent, map[string]string{"b": "1"})
		if err := agent.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no source contains this key") {
			t.Errorf("error %v", err)
		}
	})
}

// Where anybody may put objects, a file that something is in the way of is left out
// and told of; the others go on, and so does the file once nothing is in its way.
func TestAnObstacleHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.obstacles = map[string]error{"a": errors.New("a is a link")}
		agent, _ := run(t, w, func(o *podsync.Options) { o.Rules.LeaveOut = true })
		putKeys(agent, map[string]string{"a": "1", "b": "22"})
		synctest.Wait()
		wantStatus(t, w, podsync.InStep, 1, 0)
		wantDegraded(t, agent, "1")
		if s := w.status(t); s.Message != `file "a" of configmap/ns/app: a is a link` {
			t.Errorf("message %q", s.Message)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.said("some keys are left out"); n != 1 {
			t.Errorf("told %d times", n)
		}
		w.change(func() { w.obstacles = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantStatus(t, w, podsync.InStep, 2, 0)
		wantDegraded(t, agent, "0")
	})
}

// What comes into the way after the set was planned is found when it fails.
func TestAnObstacleThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.publish = func(string) error {
			if w.obstacles == nil {
				w.obstacles = map[string]error{"a": errors.New("a is a link")}
				return w.obstacles["a"]
			}
			return nil
		}
		agent, _ := run(t, w, func(o *podsync.Options) { o.Rules.LeaveOut = true })
		putKeys(agent, map[string]string{"a": "1", "b": "22"})
		synctest.Wait()
		wantStatus(t, w, podsync.InStep, 1, 0)
	})
}
