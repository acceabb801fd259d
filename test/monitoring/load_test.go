package monitoring_test

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// How much there is to do: each ConfigMap is used by some of the workloads, and changed in
// every round.
const (
	workloads  = 30
	configMaps = 6
	rounds     = 4
)

// load is a controller that has something of everything to do.
type load struct {
	*testkit.World
	registry *testkit.Registry
	metrics  string // where the controller serves them
	webhook  string
}

// newLoad starts a registry and a controller in a world with workloads, settings that cannot be
// understood, and a part of the record that belongs to another program.
func newLoad(t testing.TB) *load {
	t.Helper()
	l := &load{World: testkit.NewWorld(t), metrics: freeAddress(t), webhook: freeAddress(t)}
	l.registry = testkit.StartRegistry(t)
	for i := range configMaps {
		l.Create(t, testkit.ConfigMap(fmt.Sprint("app-", i), "key", "0"))
	}
	for i := range workloads {
		l.Create(t, testkit.Deployment(fmt.Sprint("web-", i), fmt.Sprint("app-", i%configMaps), ""))
	}
	invalid := testkit.Deployment("invalid", "app-0", "")
	invalid.Annotations[settings.Quiet] = "soon"
	held := testkit.Deployment("held", "app-0", "")
	held.Annotations[settings.Hold] = "release freeze"
	kept := testkit.ConfigMap("kept-1", "key", "1")
	kept.Labels = map[string]string{settings.Revisioned: "true"}
	l.Create(t, invalid, held, kept, testkit.Deployment("revisioned", "kept-1", ""))
	l.spoilRecord(t, "unwritable")
	l.Create(t, testkit.Deployment("unwritable", "app-0", ""))
	l.StartReady(t, append(l.registry.Flags(), "--leader-elect", "--metrics-addr", l.metrics,
		"--image-webhook-addr", l.webhook, "--image-webhook-secret-file", secretFile(t))...)
	return l
}

func secretFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("a-secret-of-the-registry\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// spoilRecord makes the ConfigMap, into which a Deployment's entry belongs, one of another
// program.
func (l *load) spoilRecord(t testing.TB, deployment string) {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte("Deployment.apps_" + l.Namespace + "_" + deployment))
	foreign := testkit.ConfigMap(fmt.Sprintf("lockstep-state-%02d", h.Sum32()%64), "theirs", "1")
	foreign.Namespace = l.Own
	l.Create(t, foreign)
}

// play changes every ConfigMap in rounds, while images are followed, fought over and not found.
func (l *load) play(t testing.TB) {
	t.Helper()
	l.AwaitRecord(t, "web-5", "configmap/app-5")
	l.AwaitRecord(t, "held", "configmap/app-0")
	l.CreateImageUser(t, "moved", l.registry, "app", "1.*")
	l.CreateImageUser(t, "unresolved", l.registry, "app", "9.*")
	for round := range rounds {
		for i := range configMaps {
			l.SetConfig(t, fmt.Sprint("app-", i), "key", fmt.Sprint(round+1))
		}
		before := l.Shown(t, "web-5")
		l.registry.Push(t, "app", fmt.Sprint("1.", round))
		l.AwaitRollout(t, "web-5", before)
	}
	l.AwaitEvent(t, "held", "Warning Held")
	l.fight(t)
	l.notify(t)
}

// fight puts an image back as often as Lockstep pins it, until Lockstep gives up.
func (l *load) fight(t testing.TB) {
	t.Helper()
	l.registry.Push(t, "fought", "latest")
	l.CreateImageUser(t, "contested", l.registry, "fought", "latest")
	plain := l.registry.Address + "/fought"
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := l.Deployment(t, "contested")
		if d.Status.ObservedGeneration == d.Generation && d.Spec.Template.Spec.Containers[0].Image != plain {
			l.Patch(t, &appsv1.Deployment{}, "contested", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, plain))
		}
		for _, note := range l.Events(t, "contested") {
			if strings.HasPrefix(note, "Warning Contested") {
				return true, ""
			}
		}
		return false, fmt.Sprintf("Lockstep goes on: %q", l.Events(t, "contested"))
	})
}

// notify tells of a push without knowing the secret.
func (l *load) notify(t testing.TB) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.webhook+"/generic", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a notification without a secret gets %s", response.Status)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(labtest.FreePort(t))
}
