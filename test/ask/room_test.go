package ask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// large is an annotation that asks for so many sources that two workloads do not fit into one
// ConfigMap of the record.
func large(configMap string) string {
	names := []string{"configmap/" + configMap}
	for i := range 100 {
		names = append(names, fmt.Sprintf("configmap/%s-%03d", strings.Repeat("n", 150), i))
	}
	return settings.Reload + ": '" + strings.Join(names, ",") + "'"
}

// roomScenes are a record that has no room for a workload.
func roomScenes() group {
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t)
		},
		scenes: []scene{
			{
				reason: input.RecordFull, where: inEvents, ref: "deployment/full", unseen: true,
				make: func(t testing.TB, s *stage, name string) {
					t.Helper()
					first := s.neighbour(name, true)
					s.make(t, configMap(name)+deployment(first, large(name), reads(name)))
				},
				bring: func(t testing.TB, s *stage, name string) {
					t.Helper()
					s.awaitOnRecord(t, "deployment/"+s.neighbour(name, true))
					s.make(t, deployment(name, large(name), reads(name)))
					s.awaitDecided(t, "deployment/"+name, string(input.RecordFull))
					s.AwaitEvent(t, name, string(input.RecordFull))
				},
				also: func(t testing.TB, s *stage, e explanation) string {
					t.Helper()
					want := s.awaitDecided(t, "deployment/full", string(input.RecordFull))
					if e.State.Reason != want.Reason || !strings.HasPrefix(e.State.Message, want.Message) || e.State.From != "event" {
						return "the controller says " + want.Message
					}
					return ""
				},
			},
			{
				// It was on record and asks for more than before.
				reason: input.RecordFull, where: inState, ref: "deployment/more", unseen: true,
				bring: func(t testing.TB, s *stage, name string) {
					t.Helper()
					s.make(t, configMap(name)+deployment(name, auto, reads(name)))
					s.awaitOnRecord(t, "deployment/"+name)
					first := s.neighbour(name, true)
					s.make(t, deployment(first, large(name), reads(name)))
					s.awaitOnRecord(t, "deployment/"+first)
					s.annotate(t, "deployment/"+name, settings.Reload, large(name)[len(settings.Reload+": '"):len(large(name))-1])
				},
			},
		},
	}
}

// unwritableScenes are a record that cannot be written. The ConfigMap in the way is there before
// the controller, which may have something else to keep in it.
func unwritableScenes() group {
	return group{
		open: func(t testing.TB, s *stage) {
			t.Helper()
			foreign := testkit.ConfigMap(s.shardName("recordunwritable"), "theirs", "1")
			foreign.Namespace = s.Own
			s.Create(t, foreign)
		},
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.runAs(t, s.Cluster.Kubeconfig())
		},
		scenes: []scene{
			{
				reason: input.RecordUnwritable, where: inInputs, unseen: true,
				bring: func(t testing.TB, s *stage, name string) {
					t.Helper()
					s.make(t, configMap(name)+deployment(name, auto, reads(name)))
				},
				also: func(t testing.TB, s *stage, e explanation) string {
					t.Helper()
					own := &testkit.World{Cluster: s.Cluster, Client: s.Client, Namespace: s.Own, Own: s.Own}
					want := own.AwaitEvent(t, s.shardName("recordunwritable"), string(input.RecordUnwritable))
					if len(e.Warnings) != 1 || want != "Warning "+e.Warnings[0].Reason+" "+e.Warnings[0].Note {
						return "the event on the record is " + want
					}
					return ""
				},
			},
		},
	}
}

// twoInstallations follow the same namespace.
func twoInstallations() group {
	return group{
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t)
			other := *s.World
			other.Own = labtest.Namespace(t, s.Cluster)
			inprocess.StartReady(t, &other, "--quiet", testkit.Quiet)
			second := &stage{World: &other}
			second.awaitOnRecord(t, "deployment/otherinstallation")
		},
		scenes: []scene{{reason: input.OtherInstallation, where: inWarnings, make: app(auto), bring: touched, also: isInStep}},
	}
}
