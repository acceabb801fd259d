package reload_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// fewSeats is a priority level that rejects what it has no seat for, and a FlowSchema that puts
// one service account into it.
const fewSeats = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: %[1]s}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 1, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: %[1]s}
spec:
  priorityLevelConfiguration: {name: %[1]s}
  matchingPrecedence: 100
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: %[2]s, name: %[3]s}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
    nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
`

// TestTooManyRequests: the API server rejects every request of the controller with 429, because
// other requests have all the seats of its priority level. The controller says so, tries again
// without haste, and delivers the change once.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	account := labtest.NewAccount(t, s.Cluster, s.Own)
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules())...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	s.AwaitRecordPermission(t, account, true)
	s.limit(t, account)
	jam := newJam(t, account)

	c := inprocess.StartControllerAs(t, s.World, account.Kubeconfig, "--quiet", testkit.Quiet)
	s.witness.AwaitKnown(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")

	free := jam.fill(t)
	began, before := time.Now(), s.rejected(t, account)
	s.change(t, "configmap/app", "{data: {key: two}}")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		said := slices.ContainsFunc(strings.Split(c.Stderr(), "\n"), func(line string) bool {
			return strings.Contains(line, "roll deployment/web") && strings.Contains(line, "too many requests")
		})
		return said, "the log doesn't say that the API server rejects the rollout:\n" + c.Stderr()
	})
	rejected, took := s.rejected(t, account)-before, time.Since(began).Seconds()
	if rejected == 0 || rejected > 20+10*took {
		t.Errorf("%v requests were rejected in %.0f s, want some, and ten a second at most", rejected, took)
	}
	if got := s.rollouts(t, web); got != 0 {
		t.Fatalf("%d rollouts although every request was rejected", got)
	}
	free()
	s.awaitRollouts(t, web, 1)
	s.AwaitEvent(t, "web", "Normal Reloaded", "configmap/app")
	s.AwaitEvent(t, "web", "Warning ReloadFailed", "too many requests") // it wasn't dropped
	s.checkRollouts(t, "one change", 1, web)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
}

// limit gives an account few seats.
func (s *stage) limit(t *testing.T, account *labtest.Account) {
	t.Helper()
	s.make(t, fmt.Sprintf(fewSeats, account.Name, account.Namespace, account.Name))
	for _, kind := range []string{"FlowSchema", "PriorityLevelConfiguration"} {
		o := blank(t, "configmap/"+account.Name)
		o.SetAPIVersion("flowcontrol.apiserver.k8s.io/v1")
		o.SetKind(kind)
		t.Cleanup(func() {
			if err := s.Client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Log(err)
			}
		})
	}
}

// rejected is how many requests of an account the API server has rejected.
func (s *stage) rejected(t *testing.T, account *labtest.Account) float64 {
	t.Helper()
	text := string(s.raw(t, "/metrics"))
	return sum(t, text, `apiserver_flowcontrol_rejected_requests_total{flow_schema="`+account.Name+`"`)
}

// raw is the API server's response to a request for a path.
func (s *stage) raw(t *testing.T, path string) []byte {
	t.Helper()
	c := httpClient(t, s.Cluster.Kubeconfig())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Cluster.Server()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
	return text
}

func httpClient(t *testing.T, kubeconfig string) *http.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// jam occupies the seats of an account: a request has its seat until its body ends.
type jam struct {
	client *http.Client
	url    string
}

func newJam(t *testing.T, account *labtest.Account) *jam {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", account.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return &jam{client: httpClient(t, account.Kubeconfig), url: config.Host}
}

// fill occupies every seat until the function that it returns is called, or for a minute: the API
// server waits no longer for a body. It returns when a request is rejected.
func (j *jam) fill(t *testing.T) (free func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	free = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(free)
	for range 10 {
		group.Go(func() {
			for ctx.Err() == nil && j.sit(ctx) {
				continue
			}
		})
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url+"/version", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := j.client.Do(request)
		if err != nil {
			return false, err.Error()
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusTooManyRequests, "a request gets " + response.Status
	})
	return free
}

// sit sends a request whose body doesn't end. It is false when there was no seat.
func (j *jam) sit(ctx context.Context) bool {
	body, end := io.Pipe()
	defer end.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, j.url+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := j.client.Do(request)
	if err != nil {
		return true // the API server's patience has ended
	}
	_ = response.Body.Close()
	return response.StatusCode != http.StatusTooManyRequests
}
