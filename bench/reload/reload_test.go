package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

func TestCountAudit(t *testing.T) {
	t.Parallel()
	log := strings.Join([]string{
		`{"stage":"ResponseComplete","verb":"patch","requestURI":"/apis/apps/v1/namespaces/bench/deployments/a","objectRef":{"resource":"deployments"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"patch","requestURI":"/apis/apps/v1/namespaces/bench/deployments/a","objectRef":{"resource":"deployments"},"responseStatus":{"code":409}}`,
		`{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/secrets?watch=true","objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"watch","requestURI":"/api/v1/secrets?watch=true","objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/secrets?sendInitialEvents=true","objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"get","requestURI":"/apis","responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"patch","requestURI":"/x","objectRef":{"resource":"pods","subresource":"status"}}`,
		`{"stage":"ResponseComplete","verb":"li`,
	}, "\n")
	got, err := countAudit(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := requests{
		"patch deployments": 1, "patch deployments (409)": 1, "watch secrets": 1, "stream secrets": 1,
		"get discovery": 1, "patch pods/status": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.verb("patch") != 3 || got.discovery() != 1 || got.total() != 6 {
		t.Errorf("sums: patch %d, discovery %d, total %d", got.verb("patch"), got.discovery(), got.total())
	}
	if diff := cmp.Diff(requests{"watch secrets": 1}, got.minus(requests{
		"patch deployments": 1, "patch deployments (409)": 1, "stream secrets": 1, "get discovery": 1, "patch pods/status": 1,
	})); diff != "" {
		t.Errorf("minus: (-want +got)\n%s", diff)
	}
}

func TestParseCost(t *testing.T) {
	t.Parallel()
	stat := "123 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9"
	got, err := parseCost("Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t  2048 kB\n", stat)
	if err != nil {
		t.Fatal(err)
	}
	if want := (cost{peak: 2 << 20, cpu: 2 * time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := parseCost("Name:\tx\n", stat); err == nil {
		t.Error("a process that has ended has no memory, and that is no zero")
	}
}

// TestStale: what counts is the order in which the API server took the writes.
func TestStale(t *testing.T) {
	t.Parallel()
	older := &source{id: input.ConfigMap("older"), written: 10}
	newer := &source{id: input.Secret("newer"), written: 30}
	cases := []struct {
		reason string
		w      workload
		stale  bool
	}{
		{"template after the change", workload{kind: kindDeployment, sources: []*source{older}, written: 20}, false},
		{"template before the change", workload{kind: kindDeployment, sources: []*source{newer}, written: 20}, true},
		{"one of two sources is newer", workload{kind: kindDeployment, sources: []*source{older, newer}, written: 20}, true},
		{"a CronJob's next Job reads it", workload{kind: kindCronJob, sources: []*source{newer}, written: 20}, false},
		{"gone", workload{kind: kindDeployment, sources: []*source{newer}, written: 20, gone: true}, false},
	}
	for _, c := range cases {
		w := &world{workloads: map[string]*workload{"it": &c.w}}
		if got := len(w.stale()) == 1; got != c.stale {
			t.Errorf("%s: stale %v, want %v", c.reason, got, c.stale)
		}
	}
}

func TestContender(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]contender{
		"v1=./reloader --kubeconfig {kubeconfig}": {"v1", "./reloader --kubeconfig {kubeconfig}"},
		"/opt/reloader --a=b":                     {"reloader", "/opt/reloader --a=b"},
		"env A=b reloader":                        {"env", "env A=b reloader"},
	} {
		if got := newContender(line); got != want {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, wrong := range [][]string{
		{"--scenario", "bursts"},
		{"--fan-out", "0"},
		{"--bytes", "1k"},
		{"--objects", "10", "--workloads", "10"},
		{"--compare", "one.json"},
		{"--medians", "one.json", "two.json"},
		{"--repeat", "0"},
		{"--greedy", "0"},
		{"--unknown"},
	} {
		if _, err := parse(wrong, io.Discard); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
	o, err := parse([]string{"--scenario", "burst,fan-out", "--fan-out", "1,5"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range o.scenarios {
		names = append(names, s.name)
	}
	if diff := cmp.Diff([]string{"burst", "fan-out/1", "fan-out/5"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNamesOfScenarios: the help names every scenario.
func TestNamesOfScenarios(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios(sizes{fanOut: []int{1}, bytes: []int{1}}) {
		group, _, _ := strings.Cut(s.name, "/")
		if !strings.Contains(scenarioNames(), group) {
			t.Errorf("%s is not in %q", s.name, scenarioNames())
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason string
		r      result
		s      scenario
		faults int
	}{
		{"rollouts are no fault", result{loadCost: loadCost{Rollouts: 5}}, scenario{}, 0},
		{"unless nothing changed", result{loadCost: loadCost{Rollouts: 5}}, scenario{still: true}, 1},
		{"a version that is shown too old is no old content", result{loadCost: loadCost{Misshown: 1}}, scenario{}, 0},
		{"memory within the limit", result{loadCost: loadCost{PeakMiB: 200}}, scenario{peak: 200}, 0},
		{"memory beyond the limit", result{loadCost: loadCost{PeakMiB: 200.1}}, scenario{peak: 200}, 1},
		{"a genuine notification is refused", result{loadCost: loadCost{Refused: 1}}, scenario{}, 1},
		{"everything at once", result{loadCost: loadCost{Stale: 1, Jobs: 1}, startCost: startCost{StartRollouts: 1}}, scenario{}, 3},
	}
	for _, c := range cases {
		if got := c.r.judge(c.s); len(got) != c.faults {
			t.Errorf("%s: got %q, want %d faults", c.reason, got, c.faults)
		}
	}
}

func TestFigureApart(t *testing.T) {
	t.Parallel()
	cases := []struct {
		f    figure
		want bool
	}{
		{figure{a: 100, b: 81}, false},
		{figure{a: 100, b: 79}, true},
		{figure{a: 0.05, b: 0.1, least: 0.1}, false},
		{figure{a: 0, b: 0}, false},
	}
	for _, c := range cases {
		if got := c.f.apart() > 0.2; got != c.want {
			t.Errorf("%+v: apart %v, want %v", c.f, got, c.want)
		}
	}
}

func TestTableShowsFaults(t *testing.T) {
	t.Parallel()
	r := report{Programs: []string{"ours"}}
	r.add(result{Scenario: "burst", Program: "theirs", Faults: []string{"3 workloads stale"}})
	if err := r.faults(); err != nil {
		t.Errorf("another program's faults are not ours: %v", err)
	}
	r.add(result{Scenario: "burst", Program: "ours", loadCost: loadCost{LagSeconds: -1}, Faults: []string{"1 workloads stale"}})
	if r.faults() == nil {
		t.Error("our faults went unnoticed")
	}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"FAULT burst, theirs: 3 workloads stale", "never"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
