package monitoring_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// prometheusConfig has places for the rules, the addresses of the replicas and their namespace,
// and for those of other programs: one scrape configuration may be for all pods of a cluster, so
// that they have the job of the replicas, and they have a job of their own. The labels are those
// that a PodMonitor gives its targets.
const prometheusConfig = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: lockstep
    honor_labels: true
    static_configs:
      - {targets: %s, labels: {namespace: %q, pod: lockstep-0}}
      - {targets: %s, labels: {namespace: elsewhere, pod: other-0}}
  - job_name: other
    static_configs: [{targets: %[4]s, labels: {namespace: elsewhere, pod: other-0}}]
`

// prometheus is the real one, with the alerts, and what it scrapes: the replicas of a controller,
// other programs, and itself.
type prometheus struct {
	*labtest.Running
	address string
	// foreign are the addresses of the other programs, and its own.
	foreign []string
}

func startPrometheus(t testing.TB, namespace string, replicas []string, others ...string) *prometheus {
	t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	foreign := slices.Concat(others, []string{address})
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, rules, list(t, replicas), namespace, list(t, foreign)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheus{address: address, foreign: foreign, Running: labtest.StartCommand(t, labtest.Command{
		Path: labtest.Need(t, "prometheus"),
		Args: []string{
			"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + address, "--log.level=warn",
		},
	})}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		series, err := p.query(t, "up == 1")
		return err == nil && len(series) == len(replicas)+2*len(foreign), fmt.Sprintf("it scrapes %v, error %v\n%s", series, err, p.Stderr())
	})
	return p
}

// list is a list of strings in YAML.
func list(t testing.TB, all []string) []byte {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sample is one series of an answer, with its newest value.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (s sample) value() string { return fmt.Sprint(s.Value[1]) }

// query runs an instant query.
func (p *prometheus) query(t testing.TB, text string) ([]sample, error) {
	t.Helper()
	var answer struct {
		Result []sample `json:"result"`
	}
	err := p.get(t, "query", url.Values{"query": {text}}, &answer)
	return answer.Result, err
}

// values lists the values of a label, of all series or of those that are selected.
func (p *prometheus) values(t testing.TB, label string, selectors ...string) []string {
	t.Helper()
	var all []string
	if err := p.get(t, "label/"+label+"/values", url.Values{"match[]": selectors}, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// rule is an alert, as Prometheus evaluates it.
type rule struct {
	Name      string `json:"name"`
	Health    string `json:"health"`
	LastError string `json:"lastError"`
	State     string `json:"state"`
}

func (p *prometheus) rules(t testing.TB) []rule {
	t.Helper()
	var answer struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := p.get(t, "rules", nil, &answer); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range answer.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// get asks Prometheus's HTTP API.
func (p *prometheus) get(t testing.TB, path string, parameters url.Values, into any) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/api/v1/"+path+"?"+parameters.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %w: %s", response.Status, err, text)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}
