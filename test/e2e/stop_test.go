package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestStopBeforeTheAPIServerAnswered: SIGTERM ends the controller at once and with exit
// code 0, also when no API server was ever reached: nothing listens there, or what
// listens does not answer.
func TestStopBeforeTheAPIServerAnswered(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, server := range map[string]string{"Refused": fmt.Sprintf("127.0.0.1:%d", labtest.FreePort(t)), "Silent": silent.Addr().String()} {
		for _, elect := range []string{"true", "false"} {
			t.Run(name+"/leader-elect="+elect, func(t *testing.T) {
				t.Parallel()
				kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
				text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://%s"}}], users: [{name: u, user: {token: t}}]}`, server)
				if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				c := (&testkit.World{Own: "own", Namespace: "shop"}).StartControllerAs(t, kubeconfig, "--leader-elect="+elect)
				c.AwaitReady(t, false)
				if code := c.Stop(t); code != 0 {
					t.Errorf("exit code %d after SIGTERM, want 0:\n%s", code, c.Stderr())
				}
			})
		}
	}
}
