package reloader_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// installation is what the original's chart renders from a set of values.
type installation struct {
	// set are the values.
	set    string
	values values
	args   []string
	env    []string
	// keys are the annotations of a workload that is reloaded, auto unless they are given.
	keys map[string]string
	// selects is true when the arguments choose by the label team=$RELEASE, so other namespaces
	// aren't touched.
	selects bool
	// shows checks what this set of values is about, after a reload.
	shows func(t *testing.T, r *room, p *program)
}

// installations are the chart's defaults and sets of values, all of which watch all namespaces. Two
// others are in TestChartInNamespaces. $RELEASE is the namespace of the release.
func installations() map[string]installation {
	return map[string]installation{
		"Defaults":      {set: "", shows: describesItself},
		"AutoReloadAll": {set: "autoReloadAll=true", args: []string{"--auto-reload-all=true"}, keys: map[string]string{}},
		"ArgoRollouts":  {set: "isArgoRollouts=true", values: values{isArgoRollouts: true}, args: []string{"--is-Argo-Rollouts=true"}, shows: reloadsRollouts},
		"Annotations": {
			set:  "reloadStrategy=annotations,reloadOnCreate=true,reloadOnDelete=true",
			args: []string{"--reload-on-create=true", "--reload-on-delete=true", "--reload-strategy=annotations"}, shows: followsCreateAndDelete,
		},
		"IgnoreSecrets": {
			set: "ignoreSecrets=true,reloadOnCreate=true", values: values{ignoreSecrets: true},
			args: []string{"--resources-to-ignore=secrets", "--reload-on-create=true"}, shows: followsCreate,
		},
		"IgnoreJobs": {
			set: "ignoreJobs=true,ignoreCronJobs=true", values: values{ignoreJobs: true, ignoreCronJobs: true},
			args: []string{"--ignored-workload-types=jobs,cronjobs"}, shows: leavesJobs,
		},
		"Selectors": {
			set: "namespaceSelector=team=a,ignoreNamespaces=kube-system", values: values{namespaceSelector: true}, selects: true,
			args: []string{"--namespaces-to-ignore=kube-system", "--namespace-selector=team=$RELEASE"}, shows: leavesOtherNamespaces,
		},
		"HighAvailability": {
			set: "enableHA=true,deployment.replicas=2", values: values{enableHA: true},
			args: []string{"--enable-ha=true"}, env: []string{"POD_NAME=reloader-0", "POD_NAMESPACE=$RELEASE"}, shows: handsOver,
		},
		"CSI": {set: "enableCSIIntegration=true", values: values{enableCSI: true}, args: []string{"--enable-csi-integration=true"}, shows: driverLater},
		"Names": {
			set:  "custom_annotations.*,resourceLabelSelector=team=a,logFormat=json,logLevel=debug,enableMetricsByNamespace=true",
			args: []string{"--configmap-annotation=example.com/configmaps", "--auto-annotation=example.com/auto", "--resource-label-selector=team=$RELEASE", "--log-format=json", "--log-level=debug"},
			env:  []string{"METRICS_COUNT_BY_NAMESPACE=enabled"}, keys: notes("example.com/configmaps", "c"), selects: true, shows: countsByNamespace,
		},
	}
}

// TestChart runs the program with exactly the arguments, the environment and the roles that the
// chart renders, but for the quiet window. Those that affect all namespaces have a control plane of
// their own and run one after the other.
func TestChart(t *testing.T) {
	t.Parallel()
	labtest.Story(t, "TestDefaults")
	for name, i := range installations() {
		if i.selects {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				i.play(t, newSiteOn(t, labtest.Shared(t)))
			})
		}
	}
	t.Run("Everywhere", func(t *testing.T) {
		t.Parallel()
		cluster := labtest.Private(t, labtest.Options{})
		for name, i := range installations() {
			if !i.selects {
				t.Run(name, func(t *testing.T) { i.play(t, newSiteOn(t, cluster)) })
			}
		}
	})
}

// play installs the program and lets it reload a workload.
func (i installation) play(t *testing.T, s *site) {
	t.Helper()
	if i.values.isArgoRollouts {
		labtest.In(t, labtest.TierAll)
		if err := s.cluster.Add(t.Context(), labtest.ArgoRollouts); err != nil {
			t.Fatal(err)
		}
	}
	s.grant(t, i.values, s.release)
	r := s.namespaceWith(t, "app", map[string]string{"team": s.release})
	p := s.start(t, s.filled(i.env), append(s.filled(i.args), quick)...)
	p.awaitWorking(t)
	i.reload(t, r, p)
	if i.shows != nil {
		i.shows(t, r, p)
	}
	p.mustBeWell(t)
}

// filled are texts with the namespace of the release.
func (s *site) filled(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, strings.ReplaceAll(text, "$RELEASE", s.release))
	}
	return all
}

// reload changes a source, which must reload a workload.
func (i installation) reload(t *testing.T, r *room, p *program) {
	t.Helper()
	if i.keys == nil {
		i.keys = notes(auto, "true")
	}
	source := &corev1.ConfigMap{ObjectMeta: metaOf("c"), Data: map[string]string{"key": "0"}}
	source.Namespace, source.Labels = r.name, map[string]string{"team": r.release}
	o := r.add(t, app{name: "web", notes: i.keys})
	r.create(t, source)
	r.set(t, source, "1")
	r.awaitLastHashAny(t, o, sum("1"))
	r.awaitEvent(t, o, "Normal Reloaded reloader-configmaps ")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text, _ := p.get(t, "/metrics")
		return strings.Contains(text, `reloader_reload_executed_total{success="true"} `) && !strings.Contains(text, `reloader_reload_executed_total{success="true"} 0`),
			"no reload is counted:\n" + text
	})
}

// awaitLastHashAny waits until a workload shows a hash.
func (r *room) awaitLastHashAny(t *testing.T, o *unstructured.Unstructured, hash string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := r.marksOf(t, o)
		return strings.Contains(strings.Join(got, " "), hash), fmt.Sprintf("%s/%s shows %q, want %s", r.name, o.GetName(), got, hash)
	})
}

// mustBeWell checks the probes of the chart, and that the roles are enough.
func (p *program) mustBeWell(t *testing.T) {
	t.Helper()
	p.awaitReady(t)
	if text, code := p.get(t, "/live"); code != http.StatusOK || text != "alive" {
		t.Errorf("/live answers %d and %q", code, text)
	}
	if text, code := p.get(t, "/metrics"); code != http.StatusOK {
		t.Errorf("/metrics answers %d and %q", code, text)
	}
	if _, code := p.get(t, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("/debug/pprof/ answers %d", code)
	}
	if strings.Contains(p.log(), "forbidden") {
		t.Errorf("the role isn't enough:\n%s", p.log())
	}
}

// describesItself checks the meta-info ConfigMap.
func describesItself(t *testing.T, r *room, _ *program) {
	t.Helper()
	o := &corev1.ConfigMap{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: r.release, Name: "reloader-meta-info"}, o); err != nil {
		t.Fatal(err)
	}
	if o.Labels["reloader.stakater.com/meta-info"] != "reloader" {
		t.Errorf("the labels are %v", o.Labels)
	}
	for key, want := range map[string]string{"buildInfo": `"edition":"oss"`, "deploymentInfo": `"name":"reloader-reloader"`, "reloaderOptions": `"reloadStrategy":"env-vars"`} {
		if !json.Valid([]byte(o.Data[key])) || !strings.Contains(o.Data[key], want) {
			t.Errorf("%s is %s, want %s in it", key, o.Data[key], want)
		}
	}
}

// reloadsRollouts: Rollouts are reloaded too.
func reloadsRollouts(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "r", "0")
	o := r.add(t, app{kind: "Rollout", notes: notes(auto, "true"), pod: uses("configmap/r")})
	r.set(t, source, "1")
	r.awaitReloads(t, o, 1, mark("configmap/r", "1"))
}

// followsCreateAndDelete: so are sources that are created and deleted.
func followsCreateAndDelete(t *testing.T, r *room, p *program) {
	t.Helper()
	followsCreate(t, r, p)
	o := r.add(t, app{name: "deleted", notes: notes(auto, "true"), pod: uses("configmap/d")})
	source := r.configMap(t, "d", "1")
	r.awaitLastHashAny(t, o, sum("1"))
	r.remove(t, source)
	r.awaitLastHashAny(t, o, deletedHash)
}

// followsCreate: so are sources that are created, even if one type of them is ignored.
func followsCreate(t *testing.T, r *room, _ *program) {
	t.Helper()
	o := r.add(t, app{name: "created", notes: notes(auto, "true"), pod: uses("configmap/new")})
	r.configMap(t, "new", "1")
	r.awaitLastHashAny(t, o, sum("1"))
}

// leavesJobs: Jobs and CronJobs aren't touched.
func leavesJobs(t *testing.T, r *room, _ *program) {
	t.Helper()
	source := r.configMap(t, "j", "0")
	job := r.add(t, app{kind: "Job", name: "job", notes: notes(auto, "true"), pod: uses("configmap/j")})
	r.add(t, app{kind: "CronJob", name: "cron", notes: notes(auto, "true"), pod: uses("configmap/j")})
	r.set(t, source, "1")
	r.fence(t).pass(t)
	r.mustBeUntouched(t, job)
	r.awaitJobs(t, 1)
}

// leavesOtherNamespaces: a namespace without the label isn't watched.
func leavesOtherNamespaces(t *testing.T, r *room, _ *program) {
	t.Helper()
	other := r.namespaceWith(t, "other", nil)
	source, o := other.configMap(t, "c", "0"), other.add(t, app{notes: notes(auto, "true")})
	other.set(t, source, "1")
	r.fence(t).pass(t)
	other.mustBeUntouched(t, o)
}

// handsOver: a second replica is ready, and takes over from one that ends.
func handsOver(t *testing.T, r *room, p *program) {
	t.Helper()
	second := r.start(t, []string{"POD_NAME=reloader-1", "POD_NAMESPACE=" + r.release}, p.flags...)
	second.awaitReady(t, "[+] configmaps")
	lease := &coordinationv1.Lease{}
	holder := func() string {
		if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: r.release, Name: "stakater-reloader-lock"}, lease); err != nil {
			t.Fatal(err)
		}
		if lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	if got := holder(); got != "reloader-0" {
		t.Errorf("the lease is held by %q", got)
	}
	source, o := r.configMap(t, "ha", "0"), r.add(t, app{name: "ha", notes: notes(auto, "true"), pod: uses("configmap/ha")})
	p.stop(t)
	if got := holder(); got == "reloader-0" {
		t.Error("the lease isn't released")
	}
	r.set(t, source, "1")
	r.awaitReloads(t, o, 1, mark("configmap/ha", "1"))
	if got := holder(); got != "reloader-1" {
		t.Errorf("the lease is held by %q", got)
	}
	second.mustBeWell(t)
	*p = *second
}

// countsByNamespace: reloads are counted by namespace, only labelled sources are followed, the keys
// have the names that the flags give them, and every line of the log is JSON.
func countsByNamespace(t *testing.T, r *room, p *program) {
	t.Helper()
	unlabelled, o := r.configMap(t, "u", "0"), r.add(t, app{name: "unlabelled", notes: notes("example.com/auto", "true"), pod: uses("configmap/u")})
	old := r.add(t, app{name: "old", notes: notes(auto, "true")})
	r.set(t, unlabelled, "1")
	labelled := &corev1.ConfigMap{ObjectMeta: metaOf("l"), Data: map[string]string{"key": "0"}}
	labelled.Namespace, labelled.Labels = r.name, map[string]string{"team": r.release}
	r.create(t, labelled)
	follows := r.add(t, app{name: "follows", notes: notes("example.com/auto", "true"), pod: uses("configmap/l")})
	for _, value := range []string{"1", "2"} {
		r.set(t, labelled, value)
		r.awaitLastHashAny(t, follows, sum(value))
	}
	r.mustBeUntouched(t, o)
	r.mustBeUntouched(t, old)
	want := fmt.Sprintf(`reloader_reload_executed_total_by_namespace{namespace=%q,success="true"} 3`, r.name)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text, _ := p.get(t, "/metrics")
		return strings.Contains(text, want), want + " isn't in\n" + text
	})
	for line := range strings.Lines(p.log()) {
		var fields struct{ Level, Msg, Time string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Level == "" || fields.Msg == "" || fields.Time == "" {
			t.Errorf("%q isn't a JSON line with level, msg and time", line)
		}
	}
}

// TestChartInNamespaces: with watchGlobally=false there are Roles instead of a ClusterRole, in the
// namespace of the release or in a list of them. Sources that exist aren't created by a start.
func TestChartInNamespaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ listed bool }{"Release": {false}, "List": {true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSiteOn(t, labtest.Shared(t))
			other, outside := s.namespaceWith(t, "other", nil), s.namespaceWith(t, "outside", nil)
			in := []*room{{site: s, name: s.release}}
			flags, env := []string{quick, "--reload-on-create=true"}, []string{"KUBERNETES_NAMESPACE=" + s.release}
			if tc.listed {
				in = append(in, other)
				flags = append(flags, "--namespaces="+other.name+","+s.release)
			}
			var names []string
			workloads := map[*room]*unstructured.Unstructured{}
			for _, r := range append(slices.Clone(in), outside) {
				names = append(names, r.name)
				r.configMap(t, "c", "0")
				workloads[r] = r.add(t, app{notes: notes(auto, "true")})
			}
			s.grant(t, values{scoped: true}, names[:len(in)]...)
			p := s.start(t, env, flags...)
			p.awaitWorking(t)
			r := outside
			r.set(t, &corev1.ConfigMap{ObjectMeta: withName(r.name, "c")}, "1")
			for _, r := range in {
				r.fence(t).pass(t)
				r.mustBeUntouched(t, workloads[r])
				r.set(t, &corev1.ConfigMap{ObjectMeta: withName(r.name, "c")}, "1")
				r.awaitReloads(t, workloads[r], 1, mark("configmap/c", "1"))
				r.awaitEvent(t, workloads[r], "Normal Reloaded ")
			}
			outside.mustBeUntouched(t, workloads[outside])
			p.mustBeWell(t)
		})
	}
}
