package monitoring_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile     = "../../charts/lockstep/files/alerts.yaml"
	dashboardFile = "../../charts/lockstep/files/dashboard.json"
	casesFile     = "alerts_test.yaml"
	guide         = "../../docs/reference/alerts.md"
)

// alert is one rule of the file.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t testing.TB) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(read(t, rulesFile), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

// dashboard is what is read of Grafana's file.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
			// AllValue is what stands for all values when all are selected, if it is set.
			AllValue string `json:"allValue"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func readDashboard(t testing.TB) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	return d
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// seriesIn names the series of a query. Prometheus tells them only since release 3, which
// Debian does not have; what is left after texts, selectors, numbers and lists of labels are
// taken away is a name, a function or a word of the language.
func seriesIn(query string) []string {
	for _, no := range []string{`"[^"]*"`, `\{[^}]*\}`, `\[[^\]]*\]`, `\b[0-9]\w*`, `\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)`} {
		query = regexp.MustCompile(no).ReplaceAllString(query, " ")
	}
	words := []string{"and", "or", "unless", "bool", "offset"}
	var names []string
	for _, found := range regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*( *\()?`).FindAllString(query, -1) {
		if !strings.HasSuffix(found, "(") && !slices.Contains(words, found) && !slices.Contains(names, found) {
			names = append(names, found)
		}
	}
	return names
}

func TestSeriesIn(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		`absent(up)`: {"up"},
		`sum by (job, le) (rate(a_bucket{x="y(z",q=~"b|c"}[5m])) > 0 and on (job) b_total offset 5m`: {"a_bucket", "b_total"},
		`histogram_quantile(0.9, sum by (le) (rate(a_bucket[$__rate_interval])))`:                    {"a_bucket"},
		`time() - min(a) or vector(0)`: {"a"},
		`a / ignoring (x) b unless a`:  {"a", "b"},
	} {
		if diff := cmp.Diff(want, seriesIn(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}
