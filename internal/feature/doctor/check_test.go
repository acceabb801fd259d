package doctor_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/notice"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
)

// now is the time of all tests.
func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// workload is a followed Deployment that uses a ConfigMap, with further annotations.
func workload(annotations map[string]string, tools ...string) doctor.Workload {
	all := map[string]string{settings.Reload: "auto"}
	maps.Copy(all, annotations)
	words := settings.Native{}
	return doctor.Workload{
		Namespace: "shop", Name: "deployment/web", Tools: tools, Intent: words.Intent(all, nil),
		Review: review.Workload{Kind: "Deployment", Annotations: all, Words: words, Containers: []string{"web"}, Refs: []podrefs.Ref{{Source: input.ConfigMap("app"), Volume: true}}},
	}
}

// healthy is an installation to which nothing is to be said.
func healthy() doctor.Facts {
	return doctor.Facts{
		Namespace: "lockstep-system", Version: "1.2.3", Now: now(), Hints: doctor.Hints{Nearest: func(string, []string) []string { return nil }},
		ServerFacts: doctor.ServerFacts{
			Clock:      doctor.ClockFacts{Times: access.Times{Sent: now(), Answered: now(), Server: now()}},
			Kubernetes: doctor.KubernetesFacts{Version: "v1.36.1"},
		},
		Controller: doctor.ControllerFacts{
			Installation: doctor.Installation{
				Deployment: "lockstep", Account: access.Account{Namespace: "lockstep-system", Name: "lockstep"}, Wanted: 2, Ready: 2, Updated: 2, Lease: "lockstep", ReloadOn: true, ImagesOn: true, PodsOn: true,
				Pods: []doctor.Pod{{Name: "lockstep-a", Ready: true, Report: []string{"[+] deployments: followed", "[-] rollouts: not installed in this cluster"}}, {Name: "lockstep-b", Ready: true}},
			},
			Led: true, Leader: access.Leader{Name: "lockstep-a", Renewed: now().Add(-2 * time.Second), Expires: now().Add(13 * time.Second), WrittenAt: now().Add(-2 * time.Second)},
		},
		Permissions: doctor.PermissionFacts{Asked: 30}, Kinds: doctor.KindFacts{Served: []doctor.Served{{Name: "deployment", Here: true, BuiltIn: true}, {Name: "rollout"}}},
		Record: doctor.RecordFacts{Stored: ledger.Stored{
			Found: true, Version: "1.2.3", Entries: map[kube.Key]record.Entry{{Name: "web"}: {}},
			Used: []ledger.Used{{Name: "lockstep-state-07", All: 5 << 10, Namespaces: map[string]int{"shop": 5 << 10}}},
		}},
		Registries: map[string]error{"registry.example": nil},
		Workloads:  doctor.WorkloadFacts{All: []doctor.Workload{workload(map[string]string{settings.ImagePrefix + "web": "registry.example/web:1.*"})}},
		Sources:    doctor.SourceFacts{Exist: map[doctor.SourceKey]bool{{Namespace: "shop", ID: input.ConfigMap("app")}: true}},
	}
}

// stopVersion has a version fail, and another workload wait with a reason.
func stopVersion(f *doctor.Facts, reason input.Reason) {
	f.Record.Stored.Failures = map[input.Change]record.Failure{{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}: {On: []string{"Deployment.apps/shop/a"}}}
	f.Record.Stored.Entries[kube.Key{Namespace: "shop", Name: "web"}] = record.Entry{
		Inputs: map[input.ID]record.Delivered{input.ConfigMap("app"): {Due: "77ab01c9de"}}, Decision: record.Decision{Reason: reason},
	}
}

// notify has one target that shop may choose, and a namespace that chooses it.
func notify(f *doctor.Facts, chosenBy string) {
	f.Controller.Notices = doctor.NoticeFacts{
		File:    "/etc/lockstep/notifications/targets.yaml",
		Targets: notice.Config{Targets: map[string]notice.Target{"team": {Name: "team", Namespaces: []string{"shop"}}}},
		Chosen:  map[string]string{chosenBy: "team"},
	}
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
}

func TestDecideHealthy(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range doctor.Decide(healthy()) {
		if c.Result != doctor.OK || len(c.Details) > 0 || c.Do != "" {
			t.Errorf("%+v", c)
		}
		got = append(got, string(c.Name))
	}
	var want []string
	for _, e := range doctor.Explanations() {
		want = append(want, string(e.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the checks are not those of the table (-table +made):\n%s", diff)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*doctor.Facts)
		check  doctor.Name
		want   doctor.Result
		says   []string
	}{
		"OldKubernetes":    {"it isn't tested", func(f *doctor.Facts) { f.Kubernetes.Version = "v1.33.9" }, doctor.Kubernetes, doctor.Warning, []string{"Kubernetes 1.33.9 is untested: 1.34 is the oldest", "upgrade Kubernetes"}},
		"NewKubernetes":    {"it isn't tested", func(f *doctor.Facts) { f.Kubernetes.Version = "v1.37.0-rc.1" }, doctor.Kubernetes, doctor.Warning, []string{"Kubernetes 1.37.0 is untested: 1.36 is the newest"}},
		"OldestKubernetes": {"a vendor's patch release", func(f *doctor.Facts) { f.Kubernetes.Version = "v1.34.0+k3s1" }, doctor.Kubernetes, doctor.OK, []string{"Kubernetes 1.34.0"}},
		"NewestKubernetes": {"a later patch release", func(f *doctor.Facts) { f.Kubernetes.Version = "v1.36.12-gke.100200" }, doctor.Kubernetes, doctor.OK, []string{"Kubernetes 1.36.12"}},
		"NoRelease":        {"another API server", func(f *doctor.Facts) { f.Kubernetes.Version = "master" }, doctor.Kubernetes, doctor.Warning, []string{`the version "master"`, "tested with 1.34 and 1.36"}},
		"VersionHidden":    {"a proxy refuses it", func(f *doctor.Facts) { f.Kubernetes.Err = errors.New("status 403") }, doctor.Kubernetes, doctor.Unknown, []string{"status 403"}},

		"NoDeployment":   {"it may run elsewhere", func(f *doctor.Facts) { f.Controller.Installation = doctor.Installation{} }, doctor.Controller, doctor.Unknown, []string{"there is no Lockstep Deployment in namespace lockstep-system"}},
		"NoReplicas":     {"a person scaled it down", func(f *doctor.Facts) { f.Controller.Installation.Wanted = 0 }, doctor.Controller, doctor.Problem, []string{"no replicas", "on purpose", "kubectl -n lockstep-system edit deployment/lockstep"}},
		"NotUpdated":     {"an upgrade is stuck", func(f *doctor.Facts) { f.Controller.Installation.Updated = 0 }, doctor.Controller, doctor.Warning, []string{"0 of 2 pods run its newest template", "rollout status"}},
		"NotReady":       {"no pod works", func(f *doctor.Facts) { f.Controller.Installation.Ready = 0 }, doctor.Controller, doctor.Problem, []string{"none of 2 pods is ready"}},
		"HalfReady":      {"the other one works", func(f *doctor.Facts) { f.Controller.Installation.Ready = 1 }, doctor.Controller, doctor.Warning, []string{"1 of 2 pods are ready"}},
		"WrongArguments": {"it would not start", func(f *doctor.Facts) { f.Controller.Installation.Problem = "unknown flag" }, doctor.Controller, doctor.Problem, []string{"would not start: unknown flag"}},

		"NoElection":   {"one replica needs no leader", func(f *doctor.Facts) { f.Controller.Installation.Lease, f.Controller.Led = "", false }, doctor.Leader, doctor.OK, []string{"leader election is off"}},
		"NotInstalled": {"there is no log to look at", func(f *doctor.Facts) { f.Controller.Led, f.Controller.Installation = false, doctor.Installation{} }, doctor.Leader, doctor.Problem, []string{"install it"}},
		"NeverLed":     {"it never started", func(f *doctor.Facts) { f.Controller.Led = false }, doctor.Leader, doctor.Problem, []string{"no controller has ever led"}},
		"GivenUp":      {"it was stopped", func(f *doctor.Facts) { f.Controller.Leader.Name = "" }, doctor.Leader, doctor.Problem, []string{"released the Lease"}},
		"Expired":      {"it was killed", func(f *doctor.Facts) { f.Controller.Leader.Expires = now() }, doctor.Leader, doctor.Problem, []string{"hasn't renewed it since 2026-03-01T11:59:58Z"}},
		"LaptopBehind": {"the clock of this machine does not decide", func(f *doctor.Facts) { f.Clock.Times.Server = now().Add(time.Hour) }, doctor.Leader, doctor.Problem, []string{"hasn't renewed it"}},
		"LaptopAhead":  {"neither does it here", func(f *doctor.Facts) { f.Now = now().Add(time.Hour) }, doctor.Leader, doctor.OK, nil},
		"NoServerTime": {"then it has to", func(f *doctor.Facts) { f.Now, f.Clock.Err = now().Add(time.Hour), errors.New("no date") }, doctor.Leader, doctor.Problem, []string{"hasn't renewed it"}},
		"OtherVersion": {"two versions may mean different things", func(f *doctor.Facts) { f.Record.Stored.Version = "1.3.0" }, doctor.Leader, doctor.Warning, []string{"version 1.3.0, and this program is 1.2.3"}},
		"Terminal":     {"a person forgot to end it", func(f *doctor.Facts) { f.Controller.Leader.Name = "laptop_1f2e" }, doctor.Leader, doctor.Warning, []string{"laptop_1f2e leads, and isn't a pod of deployment/lockstep", "stop that process"}},
		"OnHost": {"its pods are called as their nodes", func(f *doctor.Facts) {
			f.Controller.Leader.Name, f.Controller.Installation.OnHost = "node-1_1f2e", true
		}, doctor.Leader, doctor.OK, nil},
		"HandedOn":    {"a pod is ready to take it", func(f *doctor.Facts) { f.Controller.Leader.Name = "" }, doctor.Leader, doctor.Problem, []string{"within seconds"}},
		"Rivals":      {"one of them always waits", func(f *doctor.Facts) { f.Controller.Rivals = []string{"deployment/twin"} }, doctor.Leader, doctor.Problem, []string{"only one of them works at a time", "deployment/twin", "a namespace of its own"}},
		"LeaseHidden": {"who asks may not read it", func(f *doctor.Facts) { f.Controller.LeaderErr = forbidden("leases") }, doctor.Leader, doctor.Unknown, []string{"leases", "as a user who has this permission"}},

		"Vital": {"nothing works without it", func(f *doctor.Facts) {
			f.Permissions.Missing = []access.Permission{{Verb: "patch", Use: "x", Vital: true}}
		}, doctor.Permissions, doctor.Problem, []string{"1 of 30 permissions", "needed for x", "system:serviceaccount:lockstep-system:lockstep"}},
		"AllOfThem": {"it follows nothing", func(f *doctor.Facts) {
			f.Permissions.Missing, f.Permissions.Main = []access.Permission{{Verb: "list", Use: "x", Main: true}, {Verb: "watch", Use: "x", Main: true}}, map[string]int{"x": 2, "y": 1}
		}, doctor.Permissions, doctor.Problem, nil},
		"SomeOfThem": {"it follows something", func(f *doctor.Facts) {
			f.Permissions.Missing, f.Permissions.Main = []access.Permission{{Verb: "list", Use: "x", Main: true}}, map[string]int{"x": 2}
		}, doctor.Permissions, doctor.Warning, nil},
		"NotVital":     {"something works without it", func(f *doctor.Facts) { f.Permissions.Missing = []access.Permission{{Verb: "list", Namespace: "shop"}} }, doctor.Permissions, doctor.Warning, []string{"list  in shop"}},
		"RightsHidden": {"who asks may not ask for others", func(f *doctor.Facts) { f.Permissions.Err = forbidden("subjectaccessreviews") }, doctor.Permissions, doctor.Unknown, []string{"/readyz?verbose"}},

		"CustomAbsent": {"a flag names a kind that is not there", func(f *doctor.Facts) {
			f.Kinds.Served = append(f.Kinds.Served, doctor.Served{Name: "worker.example.com", Custom: true})
		}, doctor.Kinds, doctor.Problem, []string{"worker.example.com is not installed"}},
		"Discovery": {"the API server does not say", func(f *doctor.Facts) { f.Kinds.Err = errors.New("timeout") }, doctor.Kinds, doctor.Unknown, []string{"timeout"}},

		"NoPods":      {"the Deployment controller has made none", func(f *doctor.Facts) { f.Controller.Installation.Pods = nil }, doctor.Caches, doctor.Problem, nil},
		"PodNotReady": {"it follows nothing yet", func(f *doctor.Facts) { f.Controller.Installation.Pods[1].Ready = false }, doctor.Caches, doctor.Problem, []string{"lockstep-b is not ready", "1 of 2"}},
		"NotFollowed": {"a permission is missing", func(f *doctor.Facts) {
			f.Controller.Installation.Pods[1].Report = []string{"[-] secrets: permission is missing: no role"}
		}, doctor.Caches, doctor.Warning, []string{"lockstep-b: secrets: permission is missing"}},
		"Silent": {"the proxy is not for everyone", func(f *doctor.Facts) { f.Controller.Installation.Pods[1].ReportErr = errors.New("403") }, doctor.Caches, doctor.OK, []string{"1 didn't report details"}},

		"Behind": {"this machine", func(f *doctor.Facts) { f.Clock.Times.Server = now().Add(time.Minute) }, doctor.Clock, doctor.Warning, []string{"this machine's clock is 1m0s behind the API server's"}},
		"Ahead":  {"this machine", func(f *doctor.Facts) { f.Clock.Times.Server = now().Add(-time.Minute) }, doctor.Clock, doctor.Warning, []string{"1m0s ahead of"}},
		"Slow": {"a slow answer is no wrong clock", func(f *doctor.Facts) {
			f.Clock.Times.Answered, f.Clock.Times.Server = now().Add(time.Minute), now().Add(time.Minute)
		}, doctor.Clock, doctor.OK, nil},
		"LeaderFast": {"the leader", func(f *doctor.Facts) { f.Controller.Leader.WrittenAt = now().Add(-time.Hour) }, doctor.Clock, doctor.Warning, []string{"the leader's clock is 59m58s ahead of"}},
		"LeaderSlow": {"a write takes less than the Lease lasts", func(f *doctor.Facts) {
			f.Controller.Leader.WrittenAt = f.Controller.Leader.Expires.Add(10 * time.Second)
		}, doctor.Clock, doctor.Warning, []string{"the leader's clock is 10s behind"}},

		"NoRecord":   {"nothing was followed", func(f *doctor.Facts) { f.Record.Stored.Found = false }, doctor.Record, doctor.Warning, []string{"no record"}},
		"NoneAsks":   {"nothing asks for it", func(f *doctor.Facts) { f.Record.Stored.Found, f.Workloads.All = false, nil }, doctor.Record, doctor.Warning, []string{"annotate a workload"}},
		"Asked":      {"nobody has looked", func(f *doctor.Facts) { f.Record.Stored.Found = false }, doctor.Record, doctor.Warning, []string{"see the check leader"}},
		"NearlyFull": {"a namespace has little room left", func(f *doctor.Facts) { f.Record.Stored.Used[0].Namespaces["shop"] = 60 << 10 }, doctor.Record, doctor.Warning, []string{"namespace shop in lockstep-state-07: 60 of 64 KiB", "93%"}},
		"Full":       {"a part is full", func(f *doctor.Facts) { f.Record.Stored.Used[0].All = 500 << 10 }, doctor.Record, doctor.Problem, []string{"lockstep-state-07: 500 of 500 KiB"}},
		"KeyUnused":  {"only ConfigMaps are followed", func(*doctor.Facts) {}, doctor.Key, doctor.OK, []string{"no Secret digest is on record"}},
		"KeyKept":    {"all were made with it", func(f *doctor.Facts) { f.Record.Key, f.Record.Keyed = "key", 2 }, doctor.Key, doctor.OK, []string{"(2 workloads) were made with the key in secret/key in namespace lockstep-system"}},
		"KeyReplaced": {"the leader has the old one in memory", func(f *doctor.Facts) {
			f.Record.Key, f.Record.Keyed, f.Record.OtherKey = "key", 1, []string{"deployment/web in namespace shop"}
		}, doctor.Key, doctor.Problem, []string{"secret/key in namespace lockstep-system was replaced", "of 1 of 1 workload were", "deployment/web in namespace shop", "if the leader has been running since before the replacement, delete the Secret"}},
		"KeyTaken": {"a start has taken the new one", func(f *doctor.Facts) {
			f.Record.Keyed, f.Record.OtherKey = 2, []string{"deployment/web in namespace shop"}
		}, doctor.Key, doctor.Warning, []string{"1 of 2 workloads", "it uses the new key: restart the listed", "if not, delete the Secret"}},
		"KeyGone": {"the leader has not looked yet, or there is none", func(f *doctor.Facts) {
			f.Record.Keyed, f.Record.KeyErr = 1, fmt.Errorf("read: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "key"))
		}, doctor.Key, doctor.Problem, []string{"does not exist", "check again in a minute"}},
		"KeyHidden": {"who asks may not read it", func(f *doctor.Facts) { f.Record.Keyed, f.Record.KeyErr = 1, forbidden("secrets") }, doctor.Key, doctor.Unknown, []string{"secrets", "as a user who has this permission"}},
		"KeyRecord": {"without the record there is nothing to compare", func(f *doctor.Facts) { f.Record.Err = forbidden("configmaps") }, doctor.Key, doctor.Unknown, []string{"configmaps"}},

		"TooNew": {"after a step back", func(f *doctor.Facts) {
			f.Record.Stored.Entries[kube.Key{Name: "new"}] = record.Entry{Unstored: record.Unstored{TooNew: true}}
		}, doctor.Record, doctor.Warning, []string{"1 workload on record in the format of a newer Lockstep version"}},

		"StoppedAll": {"an operator forgot it", func(f *doctor.Facts) { all := "incident 42"; f.Controller.Stop.All = &all }, doctor.Stops, doctor.Warning, []string{"an operator stopped", "every automatic change is stopped: incident 42", "lockstep resume"}},
		"StoppedOne": {"one namespace", func(f *doctor.Facts) { f.Controller.Stop.Namespaces = map[string]string{"shop": ""} }, doctor.Stops, doctor.Warning, []string{"every automatic change in namespace shop is stopped"}},
		"StopHidden": {"unknown is not healthy", func(f *doctor.Facts) { f.Controller.StopErr = forbidden("configmaps") }, doctor.Stops, doctor.Unknown, []string{"configmaps"}},
		"VersionStopped": {"others wait", func(f *doctor.Facts) { stopVersion(f, input.VersionStopped) }, doctor.Stops, doctor.Warning, []string{
			"a version failed", "configmap/app 77ab01c9de in namespace shop failed on deployment/a in namespace shop; waiting: 1 workload", "lockstep resume KIND/NAME",
		}},
		"VersionResumed": {"nobody waits because of it any more", func(f *doctor.Facts) { stopVersion(f, input.AwaitsTurn) }, doctor.Stops, doctor.OK, []string{"nothing is stopped"}},

		"Notified":       {"all is well", func(f *doctor.Facts) { notify(f, "shop") }, doctor.Notices, doctor.OK, []string{"1 target: team"}},
		"NotAllowed":     {"a namespace chooses the target of another", func(f *doctor.Facts) { notify(f, "blog") }, doctor.Notices, doctor.Warning, []string{"namespace/blog: annotation lockstep.dev/notify: ", `"team"`}},
		"NobodyNotified": {"a namespace expects messages", func(f *doctor.Facts) { f.Controller.Notices.Chosen = map[string]string{"shop": "team"} }, doctor.Notices, doctor.Warning, []string{"notifications are off", "namespace/shop"}},
		"TargetsWrong": {"the controller keeps those of before", func(f *doctor.Facts) {
			f.Controller.Notices.Err, f.Controller.Notices.Wrong = errors.New("line 3: no such key"), true
		}, doctor.Notices, doctor.Problem, []string{"line 3", "correct them"}},
		"TargetsHidden": {"unknown is not healthy", func(f *doctor.Facts) { f.Controller.Notices.Err = forbidden("secrets") }, doctor.Notices, doctor.Unknown, []string{"secrets"}},

		"AfterMissing": {"it is waited for in vain", func(f *doctor.Facts) { f.Workloads.All[0].After = []string{"deployment/db"} }, doctor.Settings, doctor.Warning, []string{"deployment/web in namespace shop: deployment/db, which the annotation lockstep.dev/after names, does not exist (MissingReference)"}},
		"AfterCycle":   {"it names itself", func(f *doctor.Facts) { f.Workloads.All[0].After = []string{"deployment/web"} }, doctor.Settings, doctor.Warning, []string{"deployment/web -> deployment/web is a cycle"}},
		"Window":       {"it can't be understood", func(f *doctor.Facts) { f.Workloads.All[0].Review.Annotations[settings.Window] = "nights" }, doctor.Settings, doctor.Problem, []string{"annotation lockstep.dev/window"}},

		"NoImages":    {"no registry is needed", func(f *doctor.Facts) { f.Registries = nil }, doctor.Registries, doctor.OK, []string{"no workload follows an image"}},
		"Unreachable": {"a registry does not answer", func(f *doctor.Facts) { f.Registries["registry.example"] = errors.New("no answer of registry.example") }, doctor.Registries, doctor.Problem, []string{"no answer of registry.example", "1 of 1 registries"}},
		"ImagesOff":   {"the controller does not look at images", func(f *doctor.Facts) { f.Controller.Installation.ImagesOn = false }, doctor.Registries, doctor.Warning, []string{"enable images"}},

		"NotNeeded": {"a registry that does not answer, while images are off", func(f *doctor.Facts) {
			f.Registries["registry.example"], f.Controller.Installation.ImagesOn = errors.New("no answer of registry.example"), false
		}, doctor.Registries, doctor.Warning, []string{"does not follow images"}},

		"ReloadOff": {"nothing is followed, whatever the annotations say", func(f *doctor.Facts) { f.Controller.Installation.ReloadOn = false }, doctor.Settings, doctor.Warning, []string{"ReloadOff", "enable reload", "request them: 1"}},
		"StrategyOff": {"it waits for a person", func(f *doctor.Facts) {
			f.Workloads.All[0], f.Controller.Installation.PodsOn = workload(map[string]string{settings.Reload: "auto", settings.Strategy: "evict"}), false
		}, doctor.Settings, doctor.Warning, []string{"StrategyOff", "request it: 1", "enable pod strategies"}},
		"StrategyOn": {"nothing is wrong with it", func(f *doctor.Facts) {
			f.Workloads.All[0] = workload(map[string]string{settings.Reload: "auto", settings.Strategy: "evict"})
		}, doctor.Settings, doctor.OK, nil},
		"KindOff":   {"nobody looks at them", func(f *doctor.Facts) { f.Kinds.Asking = []string{"cronjob/nightly in namespace shop"} }, doctor.Settings, doctor.Warning, []string{"cronjob/nightly in namespace shop (KindOff)", "enable the kind"}},
		"KindsOff":  {"it is meant", func(f *doctor.Facts) { f.Kinds.Off = []string{"cronjob", "rollout"} }, doctor.Kinds, doctor.OK, []string{"off: cronjob, rollout"}},
		"Beyond":    {"nobody looks at them", func(f *doctor.Facts) { f.Namespaces.Beyond = []string{"cart", "shop"} }, doctor.Settings, doctor.Warning, []string{"does not watch: cart, shop"}},
		"Unwatched": {"what a person asks about is not followed", func(f *doctor.Facts) { f.Namespaces.Unwatched = "shop" }, doctor.Settings, doctor.Warning, []string{"does not watch namespace shop"}},
		"Invalid": {"the controller leaves it alone", func(f *doctor.Facts) {
			f.Workloads.All = []doctor.Workload{workload(map[string]string{settings.Quiet: "soon"})}
		}, doctor.Settings, doctor.Problem, []string{"deployment/web in namespace shop: ", "InvalidValue"}},
		"Contradiction": {"it may be meant", func(f *doctor.Facts) {
			f.Workloads.All[0] = workload(map[string]string{settings.Reload: "never", settings.Quiet: "1s"})
		}, doctor.Settings, doctor.Warning, []string{"Contradiction"}},
		"Typo": {"nobody would look for it elsewhere", func(f *doctor.Facts) { f.Workloads.All, f.Namespaces.Absent = nil, []string{"shpo"} }, doctor.Settings, doctor.Problem, []string{"namespace shpo does not exist", "correct the name"}},
		"Metadata": {"of other objects than workloads", func(f *doctor.Facts) {
			f.Notes = []doctor.Note{{Object: "namespace/shop", Mistake: review.OfNamespace(map[string]string{settings.Reload: "maybe"}, nil, f.Hints.Nearest)[0]}}
		}, doctor.Settings, doctor.Problem, []string{"namespace/shop: annotation lockstep.dev/reload", "InvalidValue", "1 finding"}},
		"Written":      {"what Lockstep writes is no mistake in a cluster", func(f *doctor.Facts) { f.Workloads.All[0].Review.Annotations[settings.RolledOutBy] = "lockstep-system" }, doctor.Settings, doctor.OK, nil},
		"PartlyHidden": {"some kinds may not be listed", func(f *doctor.Facts) { f.Workloads.Errs = []error{forbidden("cronjobs")} }, doctor.Settings, doctor.Unknown, []string{"1 workload checked", "not checked: cronjobs"}},

		"Gone":     {"pods would not start", func(f *doctor.Facts) { f.Sources.Exist = nil }, doctor.References, doctor.Warning, []string{"1 of 1 reference", "deployment/web in namespace shop needs configmap/app"}},
		"Optional": {"pods start without it", func(f *doctor.Facts) { f.Sources.Exist, f.Workloads.All[0].Review.Refs[0].Optional = nil, true }, doctor.References, doctor.OK, nil},
		"Listed": {"an annotation names it", func(f *doctor.Facts) {
			f.Workloads.All[0] = workload(map[string]string{settings.Reload: "secret/db, secret/x-*"})
		}, doctor.References, doctor.Warning, []string{"lists secret/db"}},
		"Ignored": {"what is not followed is not our business", func(f *doctor.Facts) {
			f.Sources.Exist, f.Workloads.All[0] = nil, workload(map[string]string{settings.Reload: "never"})
		}, doctor.References, doctor.OK, nil},

		"Annotated": {"an annotation that is left over", func(f *doctor.Facts) { f.Workloads.All[0] = workload(nil, "Wave") }, doctor.Reloaders, doctor.Warning, []string{"shares 1 workload", "Wave annotations, but Wave doesn't seem to be running", "remove the annotations"}},
		"Both": {"both restart it", func(f *doctor.Facts) {
			f.Workloads.All[0], f.Others.Programs = workload(nil, "Wave"), []doctor.Program{{Tool: "Wave", Where: "deployment/wave in namespace tools"}}
		}, doctor.Reloaders, doctor.Problem, []string{"and Wave is running", "deployment/wave in namespace tools"}},
		"Beside": {"each has its own workloads", func(f *doctor.Facts) {
			f.Others.Programs = []doctor.Program{{Tool: "Wave", Where: "deployment/wave in namespace tools"}}
		}, doctor.Reloaders, doctor.OK, []string{"Wave runs"}},
		"All": {"it asks no annotation", func(f *doctor.Facts) {
			f.Others.Programs = []doctor.Program{{Tool: "Stakater Reloader", Where: "deployment/reloader in namespace tools", All: true}}
		}, doctor.Reloaders, doctor.Warning, []string{"Stakater Reloader runs for all workloads: deployment/reloader in namespace tools"}},
		"Twins": {"two controllers watch a namespace", func(f *doctor.Facts) { f.Others.Installations = []string{"deployment/lockstep in namespace other"} }, doctor.Reloaders, doctor.Problem, []string{"Lockstep runs too: deployment/lockstep in namespace other"}},
		"Elsewhere": {"the namespace that was asked about is not that of the controller", func(f *doctor.Facts) {
			*f = doctor.Facts{Namespace: "nope", Hints: doctor.Hints{Elsewhere: " (so)"}, Others: doctor.Others{Installations: []string{"deployment/lockstep in namespace other"}}}
		}, doctor.Controller, doctor.Unknown, []string{"there is no Lockstep Deployment in namespace nope; there is deployment/lockstep in namespace other", "name its namespace (so)"}},
		"ElsewhereTwin": {"and it is no second one", func(f *doctor.Facts) {
			*f = doctor.Facts{Namespace: "nope", Others: doctor.Others{Installations: []string{"deployment/lockstep in namespace other"}}}
		}, doctor.Reloaders, doctor.OK, nil},
		"TwoOfUs":  {"two installations", func(f *doctor.Facts) { f.Workloads.All[0].RolledOutBy = "other" }, doctor.Reloaders, doctor.Warning, []string{"installation in namespace other", "check whether that installation"}},
		"OneOfUs":  {"our own mark", func(f *doctor.Facts) { f.Workloads.All[0].RolledOutBy = "lockstep-system" }, doctor.Reloaders, doctor.OK, nil},
		"NoWorlds": {"who asks may list nothing", func(f *doctor.Facts) { f.Workloads.All, f.Workloads.Errs = nil, []error{forbidden("deployments")} }, doctor.Reloaders, doctor.Unknown, []string{"deployments"}},
		"AsRoot":   {"the value is named", func(f *doctor.Facts) { f.Workloads.AsRoot = []string{"pod/web-1 in namespace shop: container web"} }, doctor.Pods, doctor.Warning, []string{"1 container cannot start", "pod/web-1 in namespace shop: container web", "podSecurityContext and securityContext to null"}},
		"Unprobed": {"it is named, and counted among the followed", func(f *doctor.Facts) { f.Workloads.All[0].Unprobed = true }, doctor.Probes, doctor.Warning, []string{"1 of 1 followed workload without a readiness probe", "deployment/web in namespace shop", "add a readiness probe"}},
		"UnprobedLender": {"a Rollout uses the template of a Deployment that nobody follows", func(f *doctor.Facts) {
			lender, canary := workload(map[string]string{settings.Reload: "never"}), workload(map[string]string{settings.Reload: "auto"})
			lender.Unprobed, canary.Name, canary.Lender = true, "rollout/web", lender.String()
			f.Workloads.All = []doctor.Workload{lender, canary}
		}, doctor.Probes, doctor.Warning, []string{"1 of 1 followed workload without a readiness probe", "rollout/web in namespace shop"}},
		"UnprobedAside": {"nobody asks to follow it", func(f *doctor.Facts) {
			f.Workloads.All[0] = workload(map[string]string{settings.Reload: "never"})
			f.Workloads.All[0].Unprobed = true
		}, doctor.Probes, doctor.OK, []string{"0 followed workloads checked"}},
		"ManyUnprobed": {"a long list is cut", func(f *doctor.Facts) {
			for range 30 {
				w := workload(map[string]string{settings.Reload: "auto"})
				w.Unprobed = true
				f.Workloads.All = append(f.Workloads.All, w)
			}
		}, doctor.Probes, doctor.Warning, []string{"30 of 31 followed workloads", "and 10 more"}},
		"ProbesUnread": {"unknown is not healthy", func(f *doctor.Facts) { f.Workloads.All, f.Workloads.Errs = nil, []error{forbidden("deployments")} }, doctor.Probes, doctor.Unknown, []string{"deployments"}},
		"PodsUnread":   {"unknown is not healthy", func(f *doctor.Facts) { f.Workloads.PodsErr = forbidden("pods") }, doctor.Pods, doctor.Unknown, []string{"pods"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := healthy()
			tc.change(&facts)
			for _, c := range doctor.Decide(facts) {
				if c.Name != tc.check {
					continue
				}
				if c.Result != tc.want {
					t.Errorf("%s: %+v, want %s", tc.reason, c, tc.want)
				}
				if text := fmt.Sprintf("%s\n%s\n%s", c.Found, strings.Join(c.Details, "\n"), c.Do); !containsAll(text, tc.says) {
					t.Errorf("%s: it says\n%s\nwant %q", tc.reason, text, tc.says)
				}
				if c.Result != doctor.OK && c.Do == "" {
					t.Errorf("%s: it does not say what to do: %+v", tc.reason, c)
				}
			}
		})
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// TestManyDetails: one check does not fill the terminal.
func TestManyDetails(t *testing.T) {
	t.Parallel()
	facts := healthy()
	facts.Sources.Exist = nil
	for range 100 {
		facts.Workloads.All = append(facts.Workloads.All, workload(nil))
	}
	for _, c := range doctor.Decide(facts) {
		if c.Name == doctor.References && (len(c.Details) != 21 || c.Details[20] != "and 81 more") {
			t.Errorf("%d details, the last is %q", len(c.Details), c.Details[len(c.Details)-1])
		}
	}
}

func TestFailed(t *testing.T) {
	t.Parallel()
	problems, unknown := doctor.Failed([]doctor.Check{{Result: doctor.OK}, {Result: doctor.Warning}, {Result: doctor.Problem}, {Result: doctor.Unknown}, {Result: doctor.Unknown}})
	if problems != 1 || unknown != 2 {
		t.Errorf("%d problems, %d unknown", problems, unknown)
	}
}
