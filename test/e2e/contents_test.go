package e2e

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestContentsAreNeverShown plants texts in ConfigMaps and Secrets and looks for
// them wherever the controller writes, at the level that says most.
func TestContentsAreNeverShown(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			planted := []string{"planted-config-one", "planted-config-two", "planted-secret-one", "planted-secret-two"}
			w := testkit.NewWorld(t)
			w.Create(t, testkit.ConfigMap("app", "key", planted[0]), testkit.Secret("db", "key", planted[2]), testkit.Deployment(testkit.Web, "app", "db"))
			c := w.StartReady(t, "--log-level", "debug", "--log-format", format)
			w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
			w.SetConfig(t, "app", "key", planted[1])
			w.SetSecret(t, "db", "key", planted[3])
			w.AwaitRollout(t, testkit.Web, "")
			w.AwaitEvent(t, testkit.Web, "Reloaded")
			if code := c.Stop(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			places := map[string]string{
				"log": c.Stderr(), "output": c.Stdout(), "events": strings.Join(w.Events(t, testkit.Web), "\n"),
				"template": w.Shown(t, testkit.Web), "record": ownObjects(t, w),
			}
			for place, text := range places {
				checkNotIn(t, place, text, planted)
			}
			if format == "json" {
				checkJSON(t, c.Stderr())
			}
		})
	}
}

func checkNotIn(t *testing.T, place, text string, planted []string) {
	t.Helper()
	for _, p := range planted {
		if strings.Contains(text, p) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(p))) {
			t.Errorf("the %s shows the content %q", place, p)
		}
	}
}

// checkJSON: each line of a JSON log is an object with a level and a message.
func checkJSON(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "" || entry.Msg == "" {
			t.Errorf("not a JSON log line (%v): %s", err, line)
		}
	}
}

// ownObjects is all that the controller keeps, as text.
func ownObjects(t *testing.T, w *testkit.World) string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Own)); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
