package ask_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// statefulSet has one pod, and says how that is replaced.
func statefulSet(name, annotations, more string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %s, annotations: {%s}}
spec: {replicas: 1, serviceName: none, %s selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {terminationGracePeriodSeconds: 0, %s}}}
`, name, annotations, more, name, name, reads(name))
}

// podScenes are the strategies that work on pods, on a fake node.
func podScenes() group {
	strategy := func(name string) string { return auto + ", " + settings.Strategy + ": " + name }
	return group{
		needs: []labtest.Component{labtest.KWOK},
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t, "--pod-strategies")
		},
		scenes: []scene{
			{reason: input.AwaitsPods, where: inState, ref: "statefulset/hand", bring: touchedOnce, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+statefulSet(name, auto, "updateStrategy: {type: OnDelete},"))
				s.awaitPod(t, name)
			}},
			{reason: input.Evicting, where: inState, ref: "statefulset/budget", bring: touchedOnce, also: looksAgain, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+statefulSet(name, strategy("evict"), "")+fmt.Sprintf(`
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: {minAvailable: 1, selector: {matchLabels: {app: %s}}}}
`, name, name))
				s.awaitPod(t, name)
			}},
			{reason: input.Evicted, where: inEvents, make: app(strategy("evict")), bring: touched, also: isInStep},
			{reason: input.NotRefreshable, where: inEvents, inOtherWords: true, make: app(strategy("refresh")), bring: touched, also: isInStep},
			{reason: input.Refreshed, where: inEvents, bring: touched, also: isInStep, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+deployment(name, strategy("refresh"), fmt.Sprintf(
					"containers: [{name: app, image: app, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, configMap: {name: %s}}]", name)))
			}},
		},
	}
}

// touchedOnce changes the ConfigMap and waits until the StatefulSet's own controller has seen
// what became of that.
func touchedOnce(t testing.TB, s *stage, name string) {
	t.Helper()
	s.touch(t, name)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		log := s.log(t, "statefulset/"+name)
		return len(log) > 1, fmt.Sprintf("the log shows the decisions %+v, want another one for the change", log)
	})
	s.awaitObserved(t, "statefulset/"+name)
}

// awaitPod waits until the pod of a StatefulSet is ready.
func (s *stage) awaitPod(t testing.TB, name string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &corev1.PodList{}
		if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": name}); err != nil {
			t.Fatal(err)
		}
		ready := func(p corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		}
		return slices.ContainsFunc(list.Items, ready), "no pod of " + name + " is ready"
	})
}

// downScenes are what a controller finds when it starts again. The entry of a newer program is
// made up: there is none yet.
func downScenes() group {
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t)
		},
		scenes: []scene{
			{reason: input.DeliveredBefore, where: inStep, make: app(auto), down: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.awaitObserved(t, "deployment/"+name)
				before := s.shards(t)
				s.run(t)
				s.touch(t, name)
				s.AwaitRollout(t, name, "")
				s.awaitObserved(t, "deployment/"+name)
				if code := s.controller.Stop(t); code != 0 {
					t.Fatalf("the controller ended with %d", code)
				}
				for _, shard := range before { // as if it had ended between patch and record
					shard.ResourceVersion = ""
					if err := s.Client.Update(t.Context(), &shard); err != nil {
						t.Fatal(err)
					}
				}
			}},
			{
				reason: input.RecordTooNew, where: inEvents, make: app(auto),
				down: func(t testing.TB, s *stage, name string) {
					t.Helper()
					key := fmt.Sprintf("Deployment.apps_%s_%s", s.Namespace, name)
					for _, shard := range s.shards(t) {
						if _, here := shard.Data[key]; here {
							shard.Data[key] = `{"v":3,"id":"Deployment.apps/shop/web","shape":["unknown"]}`
							if err := s.Client.Update(t.Context(), &shard); err != nil {
								t.Fatal(err)
							}
						}
					}
				},
				also: func(t testing.TB, s *stage, e explanation) string {
					t.Helper()
					want := s.awaitDecided(t, "deployment/recordtoonew", string(input.RecordTooNew))
					if e.State.Reason != want.Reason || e.State.Message != want.Message || e.State.From != "record" || e.State.Ends == "" {
						return "the controller says " + want.Message
					}
					return ""
				},
			},
		},
	}
}

// offScenes are a controller that follows images only.
func offScenes() group {
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t, "--reload=false", "--images")
		},
		scenes: []scene{{reason: input.ReloadOff, where: inWarnings, make: app(auto), unseen: true, inOtherWords: true}},
	}
}

// kindScenes are a controller that does not follow Deployments, as its own Deployment says.
func kindScenes() group {
	const flag = "--built-in-kinds=cronjob"
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.MakeDeployed(t, "lockstep", flag)
			s.run(t, flag)
		},
		scenes: []scene{{reason: input.KindOff, where: inFlags, make: app(auto), unseen: true}},
	}
}

// rightsScenes are a controller that may neither read Secrets nor change StatefulSets.
func rightsScenes() group {
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			account := labtest.NewAccount(t, s.Cluster, s.Own)
			rules := testkit.FollowRules()
			rules[1] = labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: []string{"list", "watch"}}
			account.AllowEverywhere(t, rules...)
			account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
			s.AwaitRecordPermission(t, account, true)
			s.runAs(t, account.Kubeconfig)
		},
		scenes: []scene{
			{reason: input.ReloadFailed, where: inState, make: app(auto), bring: touched},
			{
				reason: input.Unreadable, where: inInputs,
				make: func(t testing.TB, s *stage, name string) {
					t.Helper()
					s.Create(t, testkit.Secret(name, "key", "one"))
					s.make(t, configMap(name)+deployment(name, auto, fmt.Sprintf("containers: [{name: app, image: app, envFrom: [{configMapRef: {name: %s}}, {secretRef: {name: %s}}]}]", name, name)))
				},
				also: func(_ testing.TB, _ *stage, e explanation) string {
					got := e.input("secret/unreadable")
					if e.State.Reason != string(input.InStep) || !got.Followed || got.Delivered != "" || !strings.Contains(got.Note, "not on record") {
						return "the controller may not read the Secret, and has not said what it was given"
					}
					return ""
				},
			},
		},
	}
}

// shardName is the ConfigMap that a Deployment's entry belongs into.
func (s *stage) shardName(name string) string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "Deployment.apps_%s_%s", s.Namespace, name)
	return fmt.Sprintf("lockstep-state-%02d", h.Sum32()%64)
}

// neighbour is a Deployment whose entry belongs into the same ConfigMap of the record as
// another's, or into a different one.
func (s *stage) neighbour(name string, same bool) string {
	for i := 0; ; i++ {
		if other := fmt.Sprint(name, "-", i); (s.shardName(other) == s.shardName(name)) == same {
			return other
		}
	}
}
