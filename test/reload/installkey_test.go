package reload_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const keyName = "lockstep-installation-key"

// deleteKey deletes the Secret with the installation key, and returns the key.
func (s *stage) deleteKey(t testing.TB) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Own, Name: keyName}, secret); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data["key"]
}

// keyIs reports whether the Secret has the key.
func (s *stage) keyIs(t testing.TB, want []byte) bool {
	t.Helper()
	key, err := access.ReadInstallationKey(t.Context(), s.Client, s.Own, keyName)
	return err == nil && bytes.Equal(key, want)
}

// TestInstallationKeyIsDeleted under a running controller: it makes it again, so that the
// next start knows what of the Secrets has changed. Without a controller that has it, it is
// gone for good: a new baseline.
func TestInstallationKeyIsDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t, secret("db", "key: one")+deployment("web", auto, uses("secret/db")))
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "secret/db")
	key := s.deleteKey(t)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Contains(c.Stderr(), "the installation key was deleted"), "the log does not tell of the key:\n" + c.Stderr()
	})
	if !s.keyIs(t, key) {
		t.Error("what was made again is not the same key")
	}
	c.Stop(t)
	for _, form := range []string{string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key)} {
		if strings.Contains(c.Stderr(), form) {
			t.Error("the log has the key")
		}
	}
	s.change(t, "secret/db", "{stringData: {key: two}}")
	c = s.run(t)
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", digest(t, s.shown(t, web), "secret/db"))

	c.Stop(t)
	s.deleteKey(t)
	s.change(t, "secret/db", "{stringData: {key: three}}")
	s.run(t)
	s.pass(t)
	s.checkRollouts(t, "with a new key it is not known what has changed", 1, web)
	s.change(t, "secret/db", "{stringData: {key: four}}")
	s.awaitRollouts(t, web, 2)
}

// TestInstallationKeyIsReplaced under a running controller: it says so, and writes neither
// over the Secret nor to a workload, then and at the next start.
func TestInstallationKeyIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t, secret("db", "key: one")+deployment("web", auto, uses("secret/db")))
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "secret/db")
	other := bytes.Repeat([]byte("k"), 32)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		s.deleteKey(t)
		replacement := testkit.Secret(keyName, "key", string(other))
		replacement.Namespace = s.Own
		err := s.Client.Create(t.Context(), replacement) // the controller may have been faster
		return err == nil, fmt.Sprintf("replace the key: %v", err)
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return strings.Contains(c.Stderr(), "contains another key than this process uses"), "the log does not tell of the other key:\n" + c.Stderr()
	})
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.awaitRollouts(t, web, 1)
	c.Stop(t)
	if !s.keyIs(t, other) {
		t.Error("the replaced key was written over")
	}
	s.run(t)
	s.pass(t)
	s.checkRollouts(t, "another key is no change of a Secret", 1, web)
}
