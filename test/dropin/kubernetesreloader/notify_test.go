package kubernetesreloader_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

// TestNotifications: with LOCKSTEP_NOTIFY_FILE the program tells of its rollouts, the last of them
// when it ends.
func TestNotifications(t *testing.T) {
	t.Parallel()
	posts := make(chan string, 10)
	room := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		posts <- fmt.Sprint(string(body), err)
	}))
	t.Cleanup(room.Close)
	file := filepath.Join(t.TempDir(), "targets.yaml")
	targets := fmt.Sprintf("batch: 10m\ntargets: {room: {slack: %s/t0ken}}\nroutes: [{to: [room], severity: [info]}]\n", room.URL)
	if err := os.WriteFile(file, []byte(targets), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	r := following(t, inprocess.Start(t, inprocess.Command{Program: "kubernetes-reloader", Args: s.args(), Env: []string{"LOCKSTEP_NOTIFY_FILE=" + file}}))
	s.fence(t)
	cm, d := s.configMap("app", "1"), s.deployment("web", "app")
	s.create(t, cm, d)
	s.awaitState(t, map[string]string{"v1.ConfigMap_app": sum("1")})
	s.set(t, cm, "2")
	s.awaitState(t, map[string]string{"v1.ConfigMap_app": sum("2")})
	awaitLog(t, r, "reason=Reloaded")
	r.Signal(t, syscall.SIGTERM)
	r.ExitCode(t, patience)
	select {
	case post := <-posts:
		if !strings.Contains(post, "Reloaded in namespace "+s.namespace) || !strings.Contains(post, "deployment/web: rolled out configmap/app ") {
			t.Errorf("the room got %s", post)
		}
	default:
		t.Error("the room got nothing")
	}
	if strings.Contains(r.Stdout()+r.Stderr(), "t0ken") {
		t.Error("the log shows the address")
	}
}
