package reload_test

import (
	"strings"
	"testing"
)

// TestRecordOfANewerProgram: after a downgrade, an entry that this program cannot read
// stays untouched and its workload is not moved, which readiness says; an entry with
// parts that it does not understand is used, and keeps them.
func TestRecordOfANewerProgram(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+configMap("other", "key: one")+deployment("other", auto, uses("configmap/other")))
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.awaitKnown(t, deploy, "other", "configmap/other")
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	const newer = `{"v":3,"id":"Deployment.apps/shop/web","shape":["unknown"]}`
	stored := deploy + "_" + s.Namespace + "_web"
	s.patchShard(t, s.shardOf(t, "web"), stored, newer)
	const input, field = `"volume/data":{ "at" : "<1>" }`, `"stops":[1,  "&"]`
	entry := strings.Replace(s.remembered(t, deploy, "other"), `"in":{`, `"in":{`+input+",", 1)
	s.patchShard(t, s.shardOf(t, "other"), deploy+"_"+s.Namespace+"_other", strings.TrimSuffix(entry, "}")+","+field+"}")

	c = s.run(t)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, "configmap/other", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Warning RecordTooNew", "newer version of Lockstep")
	c.AwaitVerbose(t, "RecordTooNew", stored)
	s.awaitRollouts(t, "deployment/other", 1)
	s.awaitKnown(t, deploy, "other", versionOf("two"), input, field)
	s.checkRollouts(t, "what it was given is not known", 0, web)
	if got := s.stored(t, stored); got != newer {
		t.Errorf("the newer entry is %q, want it untouched", got)
	}
}

// TestRecordOfAnEarlierProgram: entries in an earlier format are dropped. The log says so once, each
// workload gets a new baseline, and its next change is delivered.
func TestRecordOfAnEarlierProgram(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+configMap("other", "key: one")+deployment("other", auto, uses("configmap/other")))
	c := s.run(t)
	names := []string{"web", "other"}
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "configmap/")
	}
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, name := range names {
		const now, earlier = `{"v":2,`, `{"v":1,`
		text := s.remembered(t, deploy, name)
		if !strings.HasPrefix(text, now) {
			t.Fatalf("the record of %s is %s", name, text)
		}
		s.patchShard(t, s.shardOf(t, name), deploy+"_"+s.Namespace+"_"+name, earlier+strings.TrimPrefix(text, now))
	}

	c = s.run(t)
	for _, name := range names {
		s.awaitKnown(t, deploy, name, `{"v":2,`, "configmap/")
	}
	s.checkRollouts(t, "a new baseline", 0, web, "deployment/other")
	if n := strings.Count(c.Stderr(), "an earlier version wrote the record"); n != 1 {
		t.Errorf("the log says %d times that the record is dropped, want once:\n%s", n, c.Stderr())
	}
	s.change(t, "configmap/other", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/other", 1)
}
