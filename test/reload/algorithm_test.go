package reload_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// firstAlgorithm is the digest that the first algorithm made of a Secret with the one
// key "key": it did not depend on where the Secret was. It is written out here, because
// the program that made it is no more.
func firstAlgorithm(installation []byte, value string) string {
	field := func(text []byte) []byte {
		return append(binary.BigEndian.AppendUint64(nil, uint64(len(text))), text...)
	}
	keyed := hmac.New(sha256.New, installation)
	keyed.Write(field([]byte("key")))
	keyed.Write(field([]byte(value)))
	plain := sha256.New()
	plain.Write(field([]byte("key")))
	plain.Write(keyed.Sum(nil)[:16])
	return hex.EncodeToString(plain.Sum(nil)[:16])
}

// takeBackInTime makes of a workload's entry what the program before the second
// algorithm wrote of it, when the Secret had the value.
func (s *stage) takeBackInTime(t testing.TB, name, value string) {
	t.Helper()
	key := &corev1.Secret{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Own, Name: "lockstep-installation-key"}, key); err != nil {
		t.Fatal(err)
	}
	sum, text := firstAlgorithm(key.Data["key"], value), s.remembered(t, deploy, name)
	version := regexp.MustCompile(`"2(k[0-9a-f]{6}:\*:)[0-9a-f]{32}( [0-9a-f]{10})?`)
	old := version.ReplaceAllStringFunc(text, func(found string) string {
		parts := version.FindStringSubmatch(found)
		if parts[2] != "" {
			parts[2] = " " + sum[:10]
		}
		return `"1` + parts[1] + sum + parts[2]
	})
	if old == text {
		t.Fatalf("the record of %s has no digest of the second algorithm: %s", name, text)
	}
	s.patchShard(t, s.shardOf(t, name), deploy+"_"+s.Namespace+"_"+name, old)
}

// TestUpgradeOfTheDigests: an installation whose record an earlier program wrote. What
// is unchanged is written down anew and restarts no pod; what changed while no program
// ran is delivered once; what is held waits; what a person reverted stays back.
func TestUpgradeOfTheDigests(t *testing.T) {
	t.Parallel()
	names := []string{"same", "changed", "held", "undone"}
	manifest := ""
	for _, name := range names {
		manifest += secret(name, "key: one") + deployment(name, auto, uses("secret/"+name))
	}
	s := newStage(t, manifest)
	c := s.run(t)
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "secret/"+name)
		s.awaitObserved(t, "deployment/"+name)
	}
	s.Revisions(t, "undone") // it is to have its ReplicaSet, for the undo
	s.change(t, "secret/undone", "{stringData: {key: two}}")
	s.awaitRollouts(t, "deployment/undone", 1)
	s.awaitKnown(t, deploy, "undone", digest(t, s.shown(t, "deployment/undone"), "secret/undone"), "from:")
	s.undo(t, "undone", "")
	s.awaitKnown(t, deploy, "undone", "back:")
	s.annotate(t, "deployment/held", settings.Hold, "freeze")
	s.pass(t)
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, name := range names[:3] {
		s.takeBackInTime(t, name, "one")
	}
	s.takeBackInTime(t, "undone", "two")
	s.change(t, "secret/changed", "{stringData: {key: two}}")
	s.change(t, "secret/held", "{stringData: {key: two}}")

	s.run(t)
	s.awaitRollouts(t, "deployment/changed", 1)
	s.AwaitEvent(t, "held", "Held", "freeze")
	s.awaitKnown(t, deploy, "same", `"secret/same":"2k`)
	s.awaitKnown(t, deploy, "changed", `"secret/changed":"2k`)
	s.awaitKnown(t, deploy, "undone", `"secret/undone":"2k`, "from:", "back:")
	s.checkRollouts(t, "the content is the same", 0, "deployment/same")
	s.checkRollouts(t, "a change while no program ran", 1, "deployment/changed")
	s.checkRollouts(t, "a person holds it", 0, "deployment/held")
	s.checkRollouts(t, "the rollout and its undo", 2, "deployment/undone")
	if text := s.remembered(t, deploy, "held"); !strings.Contains(text, `"secret/held":"1k`) {
		t.Errorf("the record of what is held is %s, want what was given as it was written", text)
	}

	s.annotate(t, "deployment/held", settings.Hold)
	s.awaitRollouts(t, "deployment/held", 1)
	s.change(t, "secret/same", "{stringData: {key: two}}")
	s.awaitRollouts(t, "deployment/same", 1)
	s.change(t, "secret/undone", "{stringData: {key: three}}")
	s.awaitRollouts(t, "deployment/undone", 3)
	shown := map[string]bool{}
	for _, name := range names[:3] {
		shown[digest(t, s.shown(t, "deployment/"+name), "secret/"+name)] = true
	}
	if len(shown) != 3 {
		t.Errorf("three Secrets of one content show the digests %v, want three", fmt.Sprint(shown))
	}
}
