package ask_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// deployment is the key of "shop/web".
func deployment(name string) kube.Key {
	namespace, name, _ := strings.Cut(name, "/")
	return kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: namespace, Name: name}
}

// fleet makes entries of texts such as "shop/a:proven shop/b:rolling shop/c:turn shop/d:held",
// which all use configmap/app.
func fleet(text string) map[kube.Key]record.Entry {
	all := map[kube.Key]record.Entry{}
	for field := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(field, ":")
		var given record.Delivered
		e := record.Entry{UID: name}
		switch state {
		case "proven":
			given.Stage = record.StageProven
		case "rolling", "failed":
			given.Shown = input.Tracked(map[string]string{"rolling": "0b1c2d3e4f", "failed": "77ab01c9de"}[state])
			given.Stage, e.Turn = record.StageRolling, spread.Turn{Template: "t", Healthy: true}
		case "freed":
			given.Stage, e.Turn = record.StageRolling, spread.Turn{Template: "t", Freed: true}
		case "has":
		default:
			given.Due, e.Decision = "77ab01c9de", record.Decision{Reason: map[string]input.Reason{
				"turn": input.AwaitsTurn, "first": input.AwaitsFirst, "quiet": input.QuietWindow, "held": input.Held, "stopped": input.VersionStopped, "window": input.AwaitsWindow,
			}[state]}
			if state == "first" {
				e.Decision.Message = "deployment/d in namespace shop goes first, and waits (QuietWindow): configmap/app 3fa9c1d2e4 -> 77ab01c9de"
			}
		}
		e.Inputs = map[input.ID]record.Delivered{input.ConfigMap("app"): given}
		all[deployment(name)] = e
	}
	return all
}

// TestExplainPlace: whose turn it is, and which place the workload has.
func TestExplainPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, fleet, of string
		first             string
		shared            bool
		want              *ask.Spreading
		ends              string
	}{
		"Waits": {
			"in one namespace the order is that of names", "shop/a:proven shop/b:rolling shop/c:turn shop/d:turn shop/e:held shop/f:has", "shop/d", "", false,
			&ask.Spreading{Input: "configmap/app", Users: 6, Healthy: 1, Rolling: 1, RollingNow: []string{"deployment/b"}, Waiting: 3, AtMost: 20, InLine: 2, Next: "deployment/c", Place: 2}, "its turn: 2nd of 2",
		},
		"First": {
			"the one that a user named goes first", "shop/a:turn shop/b:turn shop/c:turn shop/d:turn", "shop/a", "shop/d", false,
			&ask.Spreading{Input: "configmap/app", Users: 4, Waiting: 4, AtMost: 20, InLine: 4, Next: "deployment/d", Place: 2}, "its turn: 2nd of 4",
		},
		"Canary": {
			"the one that a user named goes first, and can't begin", "shop/a:first shop/b:first shop/c:proven shop/d:quiet", "shop/b", "shop/d", false,
			&ask.Spreading{Input: "configmap/app", Users: 4, Healthy: 1, Waiting: 3, AtMost: 20, InLine: 2, Next: "deployment/a", Place: 2, Awaits: "deployment/d in namespace shop goes first, and waits (QuietWindow)"},
			"the rollout of the workload with lockstep.dev/first",
		},
		"Rolls": {
			"it has its turn", "shop/a:rolling shop/b:turn", "shop/a", "", false,
			&ask.Spreading{Input: "configmap/app", Users: 2, Rolling: 1, RollingNow: []string{"deployment/a"}, Waiting: 1, AtMost: 20, InLine: 1, Next: "deployment/b"}, "",
		},
		"Freed":  {"a place that was given away doesn't count, and nobody waits", "shop/a:freed shop/b:has", "shop/a", "", false, nil, ""},
		"InStep": {"others wait, this one has it", "shop/a:proven shop/b:turn", "shop/a", "", false, nil, ""},
		"Alone":  {"nobody else uses it", "shop/a:turn", "shop/a", "", false, nil, "its turn, after the workloads before it are healthy"},
		"Namespaces": {
			"each namespace has its own change", "shop/a:turn shop/b:turn blog/a:turn blog/b:turn", "shop/b", "", false,
			&ask.Spreading{Input: "configmap/app", Users: 2, Waiting: 2, AtMost: 20, InLine: 2, Next: "deployment/a", Place: 2}, "its turn: 2nd of 2",
		},
		"Shared": {
			"one change, and the namespaces take turns", "shop/a:turn shop/b:turn blog/a:turn blog/b:turn", "shop/b", "", true,
			&ask.Spreading{Input: "configmap/app", Users: 4, Waiting: 4, AtMost: 20, InLine: 4, Next: "deployment/a in namespace blog", Place: 4}, "its turn: 4th of 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ask.Fleet{Entries: fleet(tc.fleet), First: map[kube.Key]bool{deployment(tc.first): true}}
			f.Kinds, f.AtMost = []kube.Kind{kube.Deployment()}, 20
			if tc.shared {
				f.Shared = []input.ID{input.ConfigMap("app")}
			}
			w := workload(kube.Deployment(), time.Time{})
			w.Key = deployment(tc.of)
			e := ask.Explain(ask.Situation{Workload: w, Fleet: f, Entry: f.Entries[w.Key], Recorded: true, Readable: true})
			var want []ask.Spreading
			if tc.want != nil {
				want = []ask.Spreading{*tc.want}
			}
			if diff := cmp.Diff(want, e.Spread); diff != "" || e.State.Ends != tc.ends {
				t.Errorf("%s: ends with %q, want %q (-want +got):\n%s", tc.reason, e.State.Ends, tc.ends, diff)
			}
		})
	}
}

// TestCanaryOfEachInput: a workload waits for one that goes first with a ConfigMap, and is due for Secrets, too. One of
// them waits for another workload, and one for none.
func TestCanaryOfEachInput(t *testing.T) {
	t.Parallel()
	f := ask.Fleet{Entries: fleet("shop/a:first shop/b:first shop/c:quiet shop/d:quiet"), First: map[kube.Key]bool{deployment("shop/d"): true, deployment("shop/c"): true}}
	f.Kinds = []kube.Kind{kube.Deployment()}
	due := f.Entries[deployment("shop/a")].Inputs[input.ConfigMap("app")]
	for _, name := range []string{"shop/a", "shop/b", "shop/c"} {
		f.Entries[deployment(name)].Inputs[input.Secret("db")] = due
	}
	for _, name := range []string{"shop/a", "shop/b"} {
		f.Entries[deployment(name)].Inputs[input.Secret("tls")] = due
	}
	delete(f.Entries[deployment("shop/c")].Inputs, input.ConfigMap("app"))
	w := workload(kube.Deployment(), time.Time{})
	w.Key = deployment("shop/a")
	got := map[string]string{}
	for _, s := range ask.Explain(ask.Situation{Workload: w, Fleet: f, Entry: f.Entries[w.Key], Recorded: true, Readable: true}).Spread {
		got[s.Input] = s.Awaits
	}
	want := map[string]string{
		"configmap/app": "deployment/d in namespace shop goes first, and waits (QuietWindow)", "secret/db": "deployment/c in namespace shop goes first", "secret/tls": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the inputs wait for (-want +got):\n%s", diff)
	}
}

// TestStoppedVersions: what was stopped by what, for the workload, the source and the list.
func TestStoppedVersions(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := map[input.Change]record.Failure{{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}: {On: []string{"Deployment.apps/shop/a"}, Since: since}}
	stop := []ask.VersionStop{{Input: "configmap/app", Version: "77ab01c9de", FailedOn: []string{"deployment/a"}, Since: &since, Waiting: 2}}
	for name, tc := range map[string]struct {
		reason, fleet string
		failures      map[input.Change]record.Failure
		want          []ask.VersionStop
	}{
		"Waiting":   {"others keep the earlier version", "shop/a:failed shop/b:stopped shop/c:stopped", failed, stop},
		"Only":      {"nobody else has to wait", "shop/a:failed", failed, []ask.VersionStop{{Input: "configmap/app", Version: "77ab01c9de", FailedOn: []string{"deployment/a"}, Since: &since}}},
		"NewAgain":  {"a newer version is on its way", "shop/a:turn shop/b:turn shop/c:held", failed, nil},
		"Resumed":   {"a user resumed it, and others wait for their turn", "shop/a:failed shop/b:turn shop/c:turn", failed, nil},
		"Mended":    {"a newer version is healthy", "shop/a:proven shop/b:proven", failed, nil},
		"Corrected": {"the one that failed gets a newer version", "shop/a:rolling", failed, nil},
		"Nowhere":   {"it failed nowhere", "shop/a:held shop/b:stopped", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ask.Fleet{Entries: fleet(tc.fleet), Failures: tc.failures}
			f.Kinds = []kube.Kind{kube.Deployment()}
			w := workload(kube.Deployment(), time.Time{})
			w.Key = deployment("shop/b")
			if _, found := f.Entries[w.Key]; !found {
				w.Key = deployment("shop/a")
			}
			e := ask.Explain(ask.Situation{Workload: w, Fleet: f, Entry: f.Entries[w.Key], Recorded: true, Readable: true})
			if diff := cmp.Diff(tc.want, e.StoppedVersions); diff != "" {
				t.Errorf("%s: the workload (-want +got):\n%s", tc.reason, diff)
			}
			source := ask.ExplainSource(ask.Source{ID: input.ConfigMap("app"), Namespace: "shop", Fleet: f, Kinds: f.Kinds})
			if diff := cmp.Diff(tc.want, source.StoppedVersions); diff != "" {
				t.Errorf("%s: the source (-want +got):\n%s", tc.reason, diff)
			}
			for _, row := range ask.StatusOf(ask.Known{Workloads: headers(f.Entries), Entries: f.Entries, Failures: f.Failures}) {
				if stopped := row.State.Reason == string(input.VersionStopped) && len(tc.want) > 0; stopped != (row.State.Ends == "another version, or lockstep resume configmap/app -n shop") {
					t.Errorf("%s: %s ends with %q", tc.reason, row.Workload, row.State.Ends)
				}
			}
		})
	}
}

func headers(entries map[kube.Key]record.Entry) []cluster.Header {
	var all []cluster.Header
	for key, e := range entries {
		all = append(all, cluster.Header{Key: key, Kind: kube.Deployment(), UID: e.UID})
	}
	return all
}

// TestStoppedImage: an image is the same for containers of other names, and is resumed through
// the workload.
func TestStoppedImage(t *testing.T) {
	t.Parallel()
	image := func(container, due, stage string) map[input.ID]record.Delivered {
		return map[input.ID]record.Delivered{input.Image(container): {Due: due, Stage: stage}}
	}
	entries := map[kube.Key]record.Entry{
		deployment("shop/a"): {UID: "shop/a", Inputs: image("web", "77ab01c9de", ""), Decision: record.Decision{Reason: input.VersionStopped}},
		deployment("shop/b"): {UID: "shop/b", Inputs: image("app", "77ab01c9de", ""), Decision: record.Decision{Reason: input.VersionStopped}},
		deployment("shop/c"): {UID: "shop/c", Inputs: image("app", "0123456789", ""), Decision: record.Decision{Reason: input.Held}},
	}
	failures := map[input.Change]record.Failure{{Namespace: "shop", ID: input.Image("registry.example/web"), Version: "77ab01c9de"}: {On: []string{"Deployment.apps/shop/x"}}}
	got := map[string]string{}
	for _, row := range ask.StatusOf(ask.Known{Workloads: headers(entries), Entries: entries, Failures: failures, Serves: ask.Serves{Kinds: []kube.Kind{kube.Deployment()}}}) {
		got[row.Workload] = row.State.Ends
	}
	want := map[string]string{
		"deployment/a": "another version, or lockstep resume deployment/a -n shop",
		"deployment/b": "another version, or lockstep resume deployment/b -n shop",
		"deployment/c": input.Ends(input.Held),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatusWaits: the list has the place in line, and when the window opens.
func TestStatusWaits(t *testing.T) {
	t.Parallel()
	opens := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	entries := fleet("shop/w:window")
	for i := range 23 {
		entries[deployment(fmt.Sprintf("shop/m%02d", i))] = fleet("shop/x:turn")[deployment("shop/x")]
	}
	w := entries[deployment("shop/w")]
	w.Decision.Next = opens
	entries[deployment("shop/w")] = w
	for key, e := range entries {
		e.UID = key.Namespace + "/" + key.Name
		entries[key] = e
	}
	workloads := headers(entries)
	for i := range workloads {
		if workloads[i].Key.Name == "m22" {
			workloads[i].Annotations = map[string]string{settings.First: "true"}
		}
	}
	ends := map[string]string{}
	for _, row := range ask.StatusOf(ask.Known{Workloads: workloads, Entries: entries, Serves: ask.Serves{Pace: installation.Pace{AtMost: 20}}}) {
		ends[strings.TrimPrefix(row.Workload, "deployment/")] = row.State.Ends
	}
	for name, want := range map[string]string{
		"w": "the maintenance window to open at 2026-03-02 02:00 UTC", "m22": "its turn: 1st of 23", "m00": "its turn: 2nd of 23", "m01": "its turn: 3rd of 23",
		"m02": "its turn: 4th of 23", "m09": "its turn: 11th of 23", "m10": "its turn: 12th of 23", "m19": "its turn: 21st of 23", "m20": "its turn: 22nd of 23",
	} {
		if ends[name] != want {
			t.Errorf("%s ends with %q, want %q", name, ends[name], want)
		}
	}
}

// TestStopsIn: a stop of everything hides those of namespaces, which would end nothing.
func TestStopsIn(t *testing.T) {
	t.Parallel()
	all := "incident 42"
	for name, tc := range map[string]struct {
		stop      settings.Stop
		namespace string
		want      []ask.Stop
	}{
		"None":       {settings.Stop{}, "shop", nil},
		"All":        {settings.Stop{All: &all, Namespaces: map[string]string{"shop": "x"}}, "shop", []ask.Stop{{Reason: "incident 42"}}},
		"This":       {settings.Stop{Namespaces: map[string]string{"shop": "x", "blog": "y"}}, "shop", []ask.Stop{{Namespace: "shop", Reason: "x"}}},
		"Other":      {settings.Stop{Namespaces: map[string]string{"blog": "y"}}, "shop", nil},
		"Everywhere": {settings.Stop{Namespaces: map[string]string{"shop": "x", "blog": "y"}}, "", []ask.Stop{{Namespace: "blog", Reason: "y"}, {Namespace: "shop", Reason: "x"}}},
	} {
		if diff := cmp.Diff(tc.want, (&ask.Heard{Stop: tc.stop}).StopsIn(tc.namespace)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
