package kubeimagedeployer_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRegistryTrouble: a registry that hangs delays no other, and the end of the process
// does not wait for it. When it answers again, its images are followed again.
func TestRegistryTrouble(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	bad := testkit.ServeRegistry(t, registrylab.Options{})
	s.trust(t, s.registry, bad)
	if _, err := bad.PushIndex(t.Context(), "app", "latest", "late"); err != nil {
		t.Fatal(err)
	}
	late, err := registrylab.ChildDigest("late", registrylab.Platforms()[0])
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan struct{}, 100)
	bad.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		hung <- struct{}{}
		bad.Hang(r)
		return true
	})
	first := s.push(t, "app:latest", "one")
	hanging := s.deployment("hanging", "app:latest")
	hanging.Annotations[s.key+"/app"] = bad.Address + "/app:latest"
	s.Create(t, hanging)
	r := s.start(t)
	<-hung
	s.Create(t, s.deployment("web", "app:latest"))
	s.awaitImages(t, "web", "app="+first)
	stop(t, r)
	bad.Spoil(nil)
	s.start(t)
	s.awaitImages(t, "hanging", "app="+bad.Address+"/app@"+late)
}

// TestTroubleIsLogged: the role of the original has no permission to write events, so the log says
// that a registry cannot be reached, once, and what is wrong with an image.
func TestTroubleIsLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	gone := fmt.Sprint("127.0.0.1:", labtest.FreePort(t))
	for _, name := range []string{"one", "two"} {
		d := s.deployment(name, "app:latest")
		d.Annotations[s.key+"/app"] = gone + "/app:latest"
		s.Create(t, d)
	}
	s.Create(t, s.deployment("missing", "none:1"))
	r := s.start(t)
	unreachable := regexp.MustCompile(`level=ERROR msg="a registry is unavailable; .* registry=` + regexp.QuoteMeta(gone) + ` reason=Unresolved result=Unreachable`)
	missing := regexp.MustCompile(`msg=warns workload=\S*/missing\S* reason=Unresolved message=".*none:1.* 404`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		log := r.Stdout() + r.Stderr()
		return unreachable.MatchString(log) && missing.MatchString(log), "the log says nothing of the registry or of the image:\n" + log
	})
	stop(t, r)
	if all := unreachable.FindAllString(r.Stdout()+r.Stderr(), -1); len(all) != 1 {
		t.Errorf("an outage is logged %d times: %q", len(all), all)
	}
}

// TestAnswersOfRegistries: a registry that refuses, limits or fails leaves every image as it
// is, and is asked again.
func TestAnswersOfRegistries(t *testing.T) {
	t.Parallel()
	s, hook := newSite(t), newWebhook(t)
	first := s.push(t, "app:latest", "one")
	s.Create(t, s.deployment("web", "app:latest"))
	s.start(t, "SLACK_WEBHOOK="+hook.URL+secretPath)
	s.awaitImages(t, "web", "app="+first)
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		s.registry.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
			if registrylab.KindOf(r) != "head" {
				return false
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return true
		})
		hook.await(t, fmt.Sprintf("answered %d", status))
		if got := images(s.Deployment(t, "web").Spec.Template); got != "app="+first {
			t.Errorf("after %d it runs %s", status, got)
		}
		s.registry.Spoil(nil)
		s.awaitImages(t, "web", "app="+s.push(t, "app:latest", fmt.Sprint("after ", status)))
		first = strings.TrimPrefix(images(s.Deployment(t, "web").Spec.Template), "app=")
	}
}

// TestReadiness: a permission that is missing is named, and the process is not ready without it.
func TestReadiness(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	w := testkit.NewWorld(t)
	account := labtest.NewAccount(t, w.Cluster, w.Own)
	r := labtest.StartCommand(t, labtest.Command{
		Path: program(t, "kube-image-deployer"), Dir: t.TempDir(),
		Env: []string{"KUBECONFIG_PATH=" + account.Kubeconfig, "METRICS_ADDR=0", "PROBE_ADDR=127.0.0.1:0", "CONTROLLER_WATCH_KEY=" + w.Namespace},
	})
	probes := testkit.Started(t, r)
	probes.AwaitVerbose(t, "not ready", "[-] deployments: permission is missing: deployments.apps is forbidden")
	awaitLog(t, r, "deployments.apps is forbidden")
	account.AllowEverywhere(t, role()...)
	probes.AwaitReady(t, true)
	probes.AwaitVerbose(t, "[+] cronjobs: followed", "[+] record (off): followed")
}

// TestFlapping: a hundred workloads whose images and labels change while they are moved end
// in step. It runs in the test process: with the race detector it also shows that nothing is
// shared without a lock.
func TestFlapping(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, registrylab.Options{Plain: true, Public: true})
	s.push(t, "one:latest", "one")
	two := s.push(t, "two:1.0", "two")
	const workloads, workers = 100, 4
	inprocess.Start(t, inprocess.Command{Program: "kube-image-deployer", Env: s.environment()})
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < workloads; i += workers {
				s.flap(t, fmt.Sprint("web-", i))
			}
		})
	}
	all.Wait()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &appsv1.DeploymentList{}
		if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace)); err != nil {
			return false, err.Error()
		}
		for _, d := range list.Items {
			if got := images(d.Spec.Template); got != "app="+two {
				return false, d.Name + " runs " + got
			}
		}
		return len(list.Items) == workloads, fmt.Sprint(len(list.Items), " workloads")
	})
}

// flap makes a workload, and changes its label, its image and what it follows.
func (s *site) flap(t *testing.T, name string) {
	t.Helper()
	d := s.deployment(name, "one:latest")
	if err := s.Client.Create(t.Context(), d); err != nil {
		t.Errorf("create %s: %v", name, err)
	}
	for _, patch := range []string{
		fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, s.key),
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"by-hand"}]}}}}`,
		fmt.Sprintf(`{"metadata":{"labels":{%q:"true"},"annotations":{"%s/app":%q}}}`, s.key, s.key, s.at("two:1.*")),
	} {
		if err := s.Client.Patch(t.Context(), d, client.RawPatch("application/strategic-merge-patch+json", []byte(patch))); err != nil {
			t.Errorf("patch %s: %v", name, err)
		}
	}
}
