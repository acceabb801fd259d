package reload_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const webhookSecret = "a-secret-of-the-registry"

// rarely is an interval at which no test would notice a push.
const rarely = "24h"

// webhookFlags have the controller listen for notifications at an address.
func webhookFlags(t testing.TB, address string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(webhookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--image-interval", rarely, "--image-webhook-addr", address, "--image-webhook-secret-file", file}
}

// notify sends a notification and returns the code of the answer. Headers are names and
// values in turn.
func notify(t testing.TB, url, body string, headers ...string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// awaitListener waits until a process accepts connections at the address.
func awaitListener(t testing.TB, address string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err == nil, fmt.Sprintf("connect to %s: %v", address, err)
	})
}

// TestPushIsNotified: a registry that tells of a push has the image moved, although it is
// asked once a day. What is forged or too large does not reach the registry.
func TestPushIsNotified(t *testing.T) {
	t.Parallel()
	address, metrics := freeAddress(t), freeAddress(t)
	g := newGalleryWith(t, registrylab.Options{Notify: "http://" + address + "/distribution", NotifyToken: webhookSecret})
	side := g.push(t, "side:1.0", "side")
	first := g.push(t, "app:1.0", "one")
	g.make(t, deployment("web", g.wants("app", "app:1.*"), g.runs("app:1.0")))
	c := g.open(t, append(webhookFlags(t, address), "--metrics-addr", metrics)...)
	g.awaitImage(t, web, "app", first)
	second := g.push(t, "app:1.1", "two")
	g.awaitImage(t, web, "app", second)
	// The registry sends its notifications in order: that of side came before anything followed it.
	g.make(t, deployment("other", g.wants("app", "side:1.*"), g.runs("side:1.0")))
	g.awaitImage(t, "deployment/other", "app", side)

	if !strings.Contains(scrape(t, metrics), `lockstep_image_notifications_total{format="distribution",result="Checked"}`) {
		t.Error("the metrics do not show the notification")
	}
	g.checkForged(t, address)
	g.checkRollouts(t, "the first pin and one push", 2, web)
	if log := c.Stderr(); strings.Contains(log, webhookSecret) || strings.Contains(log, "guess") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// checkForged sends notifications that must do nothing, and then a real one.
func (g *gallery) checkForged(t testing.TB, address string) {
	t.Helper()
	g.pass(t)
	var asked atomic.Int64
	g.registry.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/side/") {
			asked.Add(1)
		}
		return false
	})
	body := fmt.Sprintf(`{"image":%q}`, g.at("side:1.0"))
	for name, c := range map[string]struct {
		path, body, bearer string
		want               int
	}{
		"no secret":       {"/generic", body, "", http.StatusUnauthorized},
		"another secret":  {"/generic", body, "a-guess-that-is-long", http.StatusUnauthorized},
		"in the path":     {"/generic/a-guess-that-is-long", body, "", http.StatusUnauthorized},
		"too large":       {"/generic", body + strings.Repeat(" ", 2<<20), webhookSecret, http.StatusRequestEntityTooLarge},
		"no notification": {"/ghcr", "payload=1", webhookSecret, http.StatusBadRequest},
	} {
		if code := notify(t, "http://"+address+c.path, c.body, "Authorization", "Bearer "+c.bearer); code != c.want {
			t.Errorf("%s: %d, want %d", name, code, c.want)
		}
	}
	g.pass(t)
	if n := asked.Load(); n > 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write([]byte(body))
	if code := notify(t, "http://"+address+"/generic", body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil))); code != http.StatusAccepted {
		t.Errorf("signed: %d", code)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return asked.Load() > 0, "the signed notification doesn't make Lockstep query the registry"
	})
}

// TestNotificationAtAReplica: a replica that waits to lead sends senders on, and takes
// notifications when it leads.
func TestNotificationAtAReplica(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.0", "one")
	g.make(t, deployment("web", g.wants("app", "app:1.*"), g.runs("app:1.0")))
	addresses := []string{freeAddress(t), freeAddress(t)}
	election := []string{"--leader-elect=true", "--lease-duration", "1m"}
	leader := g.open(t, append(webhookFlags(t, addresses[0]), election...)...)
	g.awaitImage(t, web, "app", first)
	inprocess.StartController(t, g.World, append(append(g.flags, webhookFlags(t, addresses[1])...), election...)...)
	awaitListener(t, addresses[1])
	send := func(address string) int {
		return notify(t, "http://"+address+"/generic/"+webhookSecret, fmt.Sprintf(`{"image":%q}`, g.at("app")))
	}
	if code := send(addresses[1]); code != http.StatusServiceUnavailable {
		t.Errorf("the replica answers %d", code)
	}
	second := g.push(t, "app:1.1", "two")
	if code := send(addresses[0]); code != http.StatusAccepted {
		t.Errorf("the leader answers %d", code)
	}
	g.awaitImage(t, web, "app", second)
	stop(t, leader)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		code := send(addresses[1])
		return code == http.StatusAccepted, fmt.Sprintf("the new leader answers %d", code)
	})
}
