package labtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
)

func TestSharedClusterSaysItsVersion(t *testing.T) {
	cluster := labtest.Shared(t)
	var version struct{ GitVersion, Major, Minor string }
	get(t, cluster, "/version", &version)
	if version.GitVersion != "v"+cluster.Version() || version.Major != "1" || version.Minor == "" {
		t.Errorf("the API server calls itself %+v, want v%s", version, cluster.Version())
	}
}

func TestNamespaceIsReadyForPodsAndGoesWithTheTest(t *testing.T) {
	cluster := labtest.Shared(t)
	var name string
	t.Run("Inner/With some $Name", func(t *testing.T) {
		name = labtest.Namespace(t, cluster)
		create(t, cluster, "/api/v1/namespaces/"+name+"/pods", podManifest)
	})
	if !strings.HasPrefix(name, "namespaceisreadyforpodsandgoeswiththetest"[:20]) {
		t.Errorf("namespace %s does not show the test's name", name)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		var namespace struct {
			Metadata struct{ DeletionTimestamp string }
		}
		err := try(t, cluster, "/api/v1/namespaces/"+name, &namespace)
		return err != nil || namespace.Metadata.DeletionTimestamp != "", "namespace " + name + " isn't being deleted"
	})
}

func TestDeploymentBecomesReadyOnTheFakeNode(t *testing.T) {
	cluster := labtest.Shared(t, labtest.KWOK)
	deployments := "/apis/apps/v1/namespaces/" + labtest.Namespace(t, cluster) + "/deployments"
	create(t, cluster, deployments, workload("apps/v1", "Deployment", "{}"))
	awaitReady(t, cluster, deployments+"/web")
}

func TestRolloutBecomesReadyOnTheFakeNode(t *testing.T) {
	cluster := labtest.Shared(t, labtest.KWOK, labtest.ArgoRollouts)
	rollouts := "/apis/argoproj.io/v1alpha1/namespaces/" + labtest.Namespace(t, cluster) + "/rollouts"
	create(t, cluster, rollouts, workload("argoproj.io/v1alpha1", "Rollout", "{canary: {}}"))
	awaitReady(t, cluster, rollouts+"/web")
}

func awaitReady(t *testing.T, cluster *labtest.Cluster, path string) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		var workload struct{ Status struct{ ReadyReplicas int } }
		get(t, cluster, path, &workload)
		ready := workload.Status.ReadyReplicas
		return ready == 2, fmt.Sprintf("%d pods are ready, want 2", ready)
	})
}

func TestAccountMayDoWhatItIsAllowedTo(t *testing.T) {
	cluster := labtest.Shared(t)
	account := labtest.NewAccount(t, cluster, labtest.Namespace(t, cluster))
	const elsewhere = "default"
	configMaps := labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}
	secrets := labtest.Rule{Groups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}

	awaitAccess(t, account, account.Namespace, "configmaps", false)
	account.Allow(t, configMaps)
	awaitAccess(t, account, account.Namespace, "configmaps", true)
	awaitAccess(t, account, elsewhere, "configmaps", false)
	account.Allow(t, secrets)
	awaitAccess(t, account, account.Namespace, "configmaps", false)
	awaitAccess(t, account, account.Namespace, "secrets", true)
	account.AllowEverywhere(t, configMaps)
	awaitAccess(t, account, elsewhere, "configmaps", true)
}

// awaitAccess waits because the API server's authorizer follows the roles with a
// small delay.
func awaitAccess(t *testing.T, account *labtest.Account, namespace, resource string, want bool) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		status := statusAs(t, account, "/api/v1/namespaces/"+namespace+"/"+resource)
		allowed := map[int]bool{200: true, 403: false}
		got, known := allowed[status]
		return known && got == want, fmt.Sprintf("list %s in %s answers %d, want allowed=%t", resource, namespace, status, want)
	})
}

// TestPrivate does to one control plane what tests may do to a private one, and stops it last.
func TestPrivate(t *testing.T) {
	runs := ownRuns(t)
	cluster := labtest.Private(t, labtest.Options{With: []labtest.Component{labtest.Registry}})
	t.Run("APIServerGoesAwayAndComesBack", func(t *testing.T) { apiServerGoesAwayAndComesBack(t, cluster) })
	t.Run("RegistryServesWhatIsPushed", func(t *testing.T) { registryServesWhatIsPushed(t, cluster) })
	t.Run("StopLeavesNothing", func(t *testing.T) { stopLeavesNothing(t, cluster, runs) })
}

func apiServerGoesAwayAndComesBack(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	namespace := labtest.Namespace(t, cluster)
	path := "/api/v1/namespaces/" + namespace

	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := try(t, cluster, path, nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a stopped API server answers %v, want a refused connection", err)
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, cluster, path, nil)

	if err := cluster.FreezeAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := tryFor(t, 3*time.Second, cluster, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen API server answers %v, want none until the deadline", err)
	}
	if err := cluster.ThawAPIServer(); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		err := try(t, cluster, path, nil)
		return err == nil, fmt.Sprintf("the thawed API server answers %v", err)
	})
}

func registryServesWhatIsPushed(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	app := image.Image{Name: labtest.RegistryName + "/team/app:1", Files: map[string]string{"/file": file}}
	if err := cluster.PushImage(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + cluster.Registry() + "/v2/team/app/tags/list")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	tags, err := io.ReadAll(response.Body)
	if want := `{"name":"team/app","tags":["1"]}`; err != nil || strings.TrimSpace(string(tags)) != want {
		t.Errorf("the registry has %s, error %v, want %s", tags, err, want)
	}

	app.Name = "docker.io/team/app:1"
	if err := cluster.PushImage(t.Context(), app); err == nil || !strings.Contains(err.Error(), "does not begin with registry.lab/") {
		t.Errorf("an image of another registry: error is %v", err)
	}
}

func stopLeavesNothing(t *testing.T, cluster *labtest.Cluster, runs string) {
	t.Helper()
	record := oneRun(t)
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range record.Processes {
		if p.Alive() {
			t.Errorf("%s runs after the stop", p.Name)
		}
	}
	if entries, err := os.ReadDir(runs); err != nil || len(entries) != 0 {
		t.Errorf("directories after the stop: %v, error %v", entries, err)
	}
}

func TestStartShowsWhyAProgramEnded(t *testing.T) {
	ownRuns(t)
	_, err := labtest.Start(t.Context(), labtest.Options{APIServerFlags: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error is %v, want the program and the end of its log", err)
	}
	if runs, err := labtest.Runs(); err != nil || len(runs) != 0 {
		t.Errorf("%d control planes run after a failed start, error %v", len(runs), err)
	}
}

func TestOpenRefusesAClusterThatIsGone(t *testing.T) {
	if _, err := labtest.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that there is no record", err)
	}
}

func TestAnotherProcessCannotEndASharedCluster(t *testing.T) {
	shared, err := labtest.Open(labtest.Shared(t).Dir())
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{"Stop": shared.Stop, "StopAPIServer": shared.StopAPIServer, "FreezeAPIServer": shared.FreezeAPIServer} {
		if err := end(); err == nil || !strings.Contains(err.Error(), "use a private one") {
			t.Errorf("%s: error is %v, want advice", name, err)
		}
	}
	get(t, shared, "/readyz", nil)
}
