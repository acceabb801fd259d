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
	const newer = `{"v":2,"id":"Deployment.apps/shop/web","shape":["unknown"]}`
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
