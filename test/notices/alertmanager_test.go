package notices_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// alert is an alert that an Alertmanager has.
type alert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	Status              struct{ State string }
}

// alertmanager starts a real one and returns its address.
func alertmanager(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(labtest.FreePort(t))
	r := labtest.StartCommand(t, labtest.Command{
		Path: labtest.Need(t, "prometheus-alertmanager"),
		Args: []string{"--config.file=" + config, "--storage.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--cluster.listen-address="},
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, err := alerts(t, address)
		return err == nil, fmt.Sprintf("it doesn't answer: %v\n%s", err, r.Stderr())
	})
	return address
}

func alerts(t *testing.T, address string) (all []alert, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/v2/alerts", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	return all, json.NewDecoder(response.Body).Decode(&all)
}

// TestAlertmanager: a real one takes the alerts of a test and of a controller, and they fire.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "prometheus-alertmanager") // before anything is started
	address := alertmanager(t)
	w := testkit.NewWorld(t)
	w.Create(t, testkit.ConfigMap("app", "key", "1"), testkit.Deployment("web", "app", ""))
	w.Annotate(t, "web", settings.Quiet, "soon")
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, []byte("batch: 0s\ntargets: {am: {alertmanager: 'http://"+address+"'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := inprocess.Run(t, "notify", "test", "am", "-f", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	inprocess.StartReady(t, w, "--notify-file", file)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		all, err := alerts(t, address)
		found := map[string]alert{}
		for _, a := range all {
			found[a.Labels["alertname"]] = a
		}
		mistake, test := found["LockstepInvalidAnnotation"], found["LockstepTest"]
		ok := mistake.Labels["namespace"] == w.Namespace && mistake.Labels["object"] == "deployment/web" && mistake.Labels["severity"] == "warning" &&
			mistake.Annotations["description"] != "" && mistake.Status.State == "active" && mistake.EndsAt.Sub(mistake.StartsAt) == 45*time.Minute &&
			test.Status.State == "active" && test.Labels["severity"] == "info"
		return ok, fmt.Sprintf("it has %v, error %v", all, err)
	})
}
