package safe_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// twice plays a story with a controller in the test process, and with a built one that is killed
// at the given rollouts and started again. The outcome has to be the same.
func twice(t *testing.T, kills []int, play func(s *scene)) {
	t.Helper()
	t.Run("Running", func(t *testing.T) {
		t.Parallel()
		play(newScene(t))
	})
	t.Run("Restarted", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.process, s.kills = true, kills
		play(s)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.kills) > 0 {
			t.Errorf("the controller was not killed at the rollouts %v: there were fewer", s.kills)
		}
	})
}

// scene is a namespace with workloads whose pods run or crash as the story says.
type scene struct {
	*testkit.World
	t       *testing.T // of the play
	fleet   *fleet
	witness *testkit.Witness
	flags   []string
	// process is true for the built controller, which can be killed.
	process bool
	// outages is true if the API server may be down.
	outages bool

	mu         sync.Mutex
	kills      []int                  // the rollouts at which the controller is killed
	crashes    func(*corev1.Pod) bool // these never run, and the Deployment controller notices
	waits      func(*corev1.Pod) bool // these take their time
	falls      func(*corev1.Pod) bool // these run for a moment and crash
	controller *testkit.Controller
}

func newScene(t *testing.T) *scene {
	t.Helper()
	labtest.In(t, labtest.TierAll) // "make test" has a story of it in test/e2e
	return newSceneOn(t, labtest.Shared(t))
}

func newSceneOn(t *testing.T, cluster *labtest.Cluster) *scene {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	s := &scene{World: w, t: t, fleet: newFleet()}
	s.fleet.began = s.killAt
	s.enter(t, w.Namespace)
	return s
}

// enter watches Deployments of a namespace and plays the kubelet in it.
func (s *scene) enter(t *testing.T, namespace string) {
	t.Helper()
	c := testkit.NewClient(t, s.Cluster.Kubeconfig())
	s.fleet.watch(t, c, namespace)
	testkit.RunInBackground(t, func(ctx context.Context) {
		var falling sync.WaitGroup
		defer falling.Wait()
		refuses := func(pod *corev1.Pod) bool {
			if s.selects(&s.falls, pod) {
				falling.Go(func() { s.fall(ctx, c, pod.DeepCopy()) })
			}
			return s.refuses(ctx, c, pod)
		}
		for untilDone(ctx) {
			if err := kubelet.Play(ctx, c, namespace, refuses); err != nil && !s.outages {
				t.Error(err)
				return
			}
		}
	})
}

// selects reports whether a rule selects a pod.
func (s *scene) selects(rule *func(*corev1.Pod) bool, pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *rule != nil && (*rule)(pod)
}

// fall lets a pod crash as soon as it is ready.
func (s *scene) fall(ctx context.Context, c client.Client, pod *corev1.Pod) {
	for ctx.Err() == nil && c.Get(ctx, client.ObjectKeyFromObject(pod), pod) == nil {
		if pod.Status.Phase == corev1.PodRunning {
			_ = c.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)))
			return
		}
	}
}

// refuses reports whether a pod crashes. The Deployment's deadline ends at once then: with a short
// deadline from the begin, a slow machine would make healthy rollouts fail.
func (s *scene) refuses(ctx context.Context, c client.Client, pod *corev1.Pod) bool {
	crashes := s.selects(&s.crashes, pod)
	if crashes || s.selects(&s.falls, pod) {
		// The API server refuses a patch when too many others write at the same time.
		for ctx.Err() == nil && client.IgnoreNotFound(setDeadline(ctx, c, pod.Namespace, pod.Labels["app"], 1)) != nil {
		}
	}
	return crashes || s.selects(&s.waits, pod)
}

func setDeadline(ctx context.Context, c client.Client, namespace, deployment string, seconds int) error {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = namespace, deployment
	return c.Patch(ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"progressDeadlineSeconds":%d}}`, seconds)))
}

// crash selects the pods that crash from now on. Pods that exist stay as they are.
func (s *scene) crash(selects func(*corev1.Pod) bool) { s.rule(&s.crashes, selects) }

// slow selects the pods that don't become ready from now on, without a deadline that ends.
func (s *scene) slow(selects func(*corev1.Pod) bool) { s.rule(&s.waits, selects) }

func (s *scene) rule(rule *func(*corev1.Pod) bool, selects func(*corev1.Pod) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*rule = selects
}

// mend lets all further pods run, however long they take.
func (s *scene) mend(t *testing.T) {
	t.Helper()
	s.rule(&s.crashes, nil)
	s.rule(&s.waits, nil)
	s.rule(&s.falls, nil)
	for _, id := range s.fleet.ids(func(sight) bool { return true }) {
		namespace, name, _ := strings.Cut(id, "/")
		if err := setDeadline(t.Context(), s.Client, namespace, name, 600); err != nil {
			t.Fatal(err)
		}
	}
}

// shows is a rule for crash: pods whose template shows the version.
func shows(version string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return sight{shown: pod.Annotations[settings.Inputs]}.has(version) }
}

// everywhere is a rule for all pods.
func everywhere(*corev1.Pod) bool { return true }

// user is a Deployment with one pod that only this package runs.
func user(name, configMap, secret string) *appsv1.Deployment {
	one := int32(1)
	d := testkit.Deployment(name, configMap, secret)
	d.Spec.Replicas, d.Spec.Template.Spec.SchedulerName = &one, kubelet.Scheduler
	return d
}

// name of the nth user.
func name(n int) string { return fmt.Sprintf("user-%02d", n) }

// users creates the ConfigMap "app" with the value "1" and Deployments that use it, and waits until
// all pods run.
func (s *scene) users(t *testing.T, count int) {
	t.Helper()
	s.Create(t, testkit.ConfigMap("app", "key", "1"))
	for n := range count {
		s.create(t, user(name(n+1), "app", ""))
	}
	s.awaitComplete(t)
}

// create creates Deployments without waiting for each.
func (s *scene) create(t *testing.T, all ...*appsv1.Deployment) {
	t.Helper()
	for _, d := range all {
		if d.Namespace == "" {
			d.Namespace = s.Namespace
		}
		if err := s.Client.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	s.fleet.catchUp(t, s.World, s.Namespace)
}

// awaitComplete waits until no rollout is under way.
func (s *scene) awaitComplete(t *testing.T) {
	t.Helper()
	s.await(t, func() (bool, string) {
		open := s.fleet.names(func(s sight) bool { return !s.complete })
		return len(open) == 0, fmt.Sprintf("the rollouts of %q aren't complete", open)
	})
}

// version is the element that templates show for a ConfigMap with this value under "key".
func version(configMap, value string) string {
	digest := fingerprint.Hasher{}.Content(map[string]string{"key": value}, nil).Version(fingerprint.AllKeys()).Short()
	return "configmap/" + configMap + "~" + digest
}

// run starts the controller with a witness, and waits until both and all Deployments are on record.
func (s *scene) run(t *testing.T, flags ...string) {
	t.Helper()
	s.flags = append([]string{"--quiet", testkit.Quiet}, flags...)
	if s.witness == nil {
		s.witness = s.NewWitness(t)
	}
	s.start(t)
	s.awaitKnown(t)
}

func (s *scene) start(t *testing.T) {
	t.Helper()
	var c *testkit.Controller
	if !s.process {
		c = inprocess.StartReady(t, s.World, s.flags...)
	} else {
		c = s.StartReady(t, s.flags...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controller = c
}

// stop ends the controller, which stays down until start.
func (s *scene) stop(t *testing.T) {
	t.Helper()
	s.controller.Stop(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controller = nil
}

// killAt kills the controller at the rollouts of the plan, right after the write: at most of them
// the record isn't written yet.
func (s *scene) killAt(rollout int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controller != nil && len(s.kills) > 0 && rollout >= s.kills[0] {
		s.kills = s.kills[1:]
		_ = syscall.Kill(s.controller.PID(), syscall.SIGKILL)
	}
}

// restart kills the controller of the second play and starts it again.
func (s *scene) restart(t *testing.T) {
	t.Helper()
	if s.process {
		s.kill(t)
		s.start(t)
	}
}

// kill kills the built controller.
func (s *scene) kill(t *testing.T) {
	t.Helper()
	s.controller.Signal(t, syscall.SIGKILL)
	s.controller.ExitCode(t, testkit.Patience)
}

// await waits for a condition, and starts a controller again that was killed.
func (s *scene) await(t *testing.T, check func() (bool, string)) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		s.revive(t)
		return check()
	})
}

func (s *scene) revive(t *testing.T) {
	t.Helper()
	if s.controller == nil {
		return
	}
	select {
	case <-s.controller.Done():
	default:
		return
	}
	if code := s.controller.ExitCode(t, testkit.Patience); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("the controller ended with exit code %d", code)
	}
	s.start(t)
}

// awaitKnown waits until every Deployment is on record.
func (s *scene) awaitKnown(t *testing.T) {
	t.Helper()
	names := s.fleet.names(func(sight) bool { return true })
	s.await(t, func() (bool, string) {
		entries := s.entries(t)
		for _, name := range names {
			if len(entries[name].Inputs) == 0 {
				return false, name + " is not on record"
			}
		}
		return true, ""
	})
}

// shards are the ConfigMaps of the record.
func (s *scene) shards(t *testing.T) []corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Own), client.MatchingLabels{settings.StateLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// record is everything on record, a line for each entry.
func (s *scene) record(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, shard := range s.shards(t) {
		for key, entry := range shard.Data {
			fmt.Fprintf(&text, "%s %s\n", key, entry)
		}
	}
	return text.String()
}

// awaitState waits until it is on record for all of the Deployments that the version is due, and for
// which reason it isn't delivered.
func (s *scene) awaitState(t *testing.T, reason input.Reason, version string, deployments ...string) {
	t.Helper()
	source, digest, _ := strings.Cut(version, "~")
	id, err := input.ParseID(source)
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, func() (bool, string) {
		entries := s.entries(t)
		for _, name := range deployments {
			e := entries[name]
			if e.Decision.Reason != reason || e.Inputs[id].Due != digest {
				return false, fmt.Sprintf("%s is on record as %q with %q due, want %s and %s: %s", name, e.Decision.Reason, e.Inputs[id].Due, reason, digest, e.Decision.Message)
			}
		}
		return true, ""
	})
}

// entries is the record of the namespace's Deployments by name.
func (s *scene) entries(t *testing.T) map[string]record.Entry {
	t.Helper()
	entries := map[string]record.Entry{}
	for _, shard := range s.shards(t) {
		for key, text := range shard.Data {
			name, ours := strings.CutPrefix(key, "Deployment.apps_"+s.Namespace+"_")
			if !ours {
				continue
			}
			e, err := record.Decode(text)
			if err != nil {
				t.Fatalf("read the record of %s: %v", key, err)
			}
			entries[name] = e
		}
	}
	return entries
}

// awaitEvent waits for an event about an object that contains every text.
func (s *scene) awaitEvent(t *testing.T, object string, texts ...string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		events := s.Events(t, object)
		return slices.ContainsFunc(events, func(note string) bool { return containsAll(note, texts) }),
			fmt.Sprintf("no event of %s contains %q: %q", object, texts, events)
	})
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// awaitUsers waits until as many Deployments show the version.
func (s *scene) awaitUsers(t *testing.T, version string, want int) {
	t.Helper()
	s.await(t, func() (bool, string) {
		got := s.fleet.users(version)
		return len(got) >= want, fmt.Sprintf("%d workloads have %s, want %d: %q", len(got), version, want, got)
	})
}

// checkUsers waits until the controller has decided on everything so far, and fails when another
// number of Deployments shows the version.
func (s *scene) checkUsers(t *testing.T, why, version string, want int) {
	t.Helper()
	s.revive(t)
	s.witness.Pass(t)
	s.fleet.catchUp(t, s.World, s.Namespace)
	if got := s.fleet.users(version); len(got) != want {
		t.Errorf("%s: %d workloads have %s, want %d: %q", why, len(got), version, want, got)
	}
}

// lockstep runs a command about the scene's namespace.
func (s *scene) lockstep(t *testing.T, args ...string) string {
	t.Helper()
	args = append(args, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig())
	if args[0] != "hold" && args[0] != "release" { // these are about objects, and not about an installation
		args = append(args, "--controller-namespace", s.Own)
	}
	stdout, stderr, code := inprocess.Run(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr)
	}
	return stdout + stderr
}
