package labtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const podManifest = "{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: app, image: app}]}}"

// workload is the manifest of two pods in the care of a Deployment or a Rollout.
func workload(apiVersion, kind, strategy string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: web}, spec: {replicas: 2, strategy: %s,
		selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app}]}}}}`, apiVersion, kind, strategy)
}

// send makes a request the way a user of a kubeconfig would, with the official
// client's reading of it.
func send(ctx context.Context, kubeconfig, method, path, body string) (status int, answer []byte, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, config.Host+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/yaml")
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// try reads an object into a value, with the patience that a busy machine needs.
func try(t *testing.T, cluster *labtest.Cluster, path string, into any) error {
	t.Helper()
	return tryFor(t, patience, cluster, path, into)
}

// tryFor reads an object into a value within a time.
func tryFor(t *testing.T, timeout time.Duration, cluster *labtest.Cluster, path string, into any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	status, answer, err := send(ctx, cluster.Kubeconfig(), http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET %s answers %d: %s", path, status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

func get(t *testing.T, cluster *labtest.Cluster, path string, into any) {
	t.Helper()
	if err := try(t, cluster, path, into); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, cluster *labtest.Cluster, path, manifest string) {
	t.Helper()
	status, answer, err := send(t.Context(), cluster.Kubeconfig(), http.MethodPost, path, manifest)
	if err != nil || status != http.StatusCreated {
		t.Fatalf("POST %s answers %d, error %v: %s", path, status, err, answer)
	}
}

func statusAs(t *testing.T, account *labtest.Account, path string) int {
	t.Helper()
	status, _, err := send(t.Context(), account.Kubeconfig, http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	return status
}
