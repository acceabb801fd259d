package doctor_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestReplacedKey: another key in the place of the installation's is found, and the advice
// helps: when the Secret is deleted, the leader makes it again with its own key.
func TestReplacedKey(t *testing.T) {
	t.Parallel()
	const name = "lockstep-installation-key"
	i := install(t)
	i.examine(t).expect(t, "key", "ok", "(1 workload) were made with the key in secret/"+name)

	remove := func() {
		t.Helper()
		old := &corev1.Secret{}
		old.Namespace, old.Name = i.Own, name
		if err := client.IgnoreNotFound(i.Client.Delete(t.Context(), old)); err != nil {
			t.Fatal(err)
		}
	}
	other := bytes.Repeat([]byte("k"), 32)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		remove()
		replacement := testkit.Secret(name, "key", string(other))
		replacement.Namespace = i.Own
		err := i.Client.Create(t.Context(), replacement) // the leader may have been faster
		return err == nil, fmt.Sprintf("replace the key: %v", err)
	})
	a := i.examine(t)
	a.expect(t, "key", "problem", "was replaced", "deployment/"+testkit.Web+" in namespace "+i.Namespace, "delete the Secret")
	for _, form := range []string{string(other), hex.EncodeToString(other), base64.StdEncoding.EncodeToString(other)} {
		if a.code != 1 || strings.Contains(a.stdout, form) {
			t.Errorf("exit code %d, and\n%s", a.code, a.stdout)
		}
	}

	remove()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		c := i.examine(t).checks["key"]
		return c.Result == "ok", c.text()
	})
}
