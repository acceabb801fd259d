package monitoring_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// selectAll does with the variables of the dashboard what Grafana does when everything is
// selected, as it is at first: the text that stands for all, or else what the variable's query
// finds, as alternatives of a regular expression.
func selectAll(t testing.TB, p *prometheus, d dashboard) *strings.Replacer {
	t.Helper()
	form := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	pairs := []string{"$__rate_interval", "5m"}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		found := form.FindStringSubmatch(v.Definition)
		if found == nil {
			t.Fatalf("%s asks for %s: want label_values(SERIES, LABEL)", v.Name, v.Definition)
		}
		values := p.values(t, found[2], strings.NewReplacer(pairs...).Replace(found[1]))
		if len(values) == 0 {
			t.Errorf("there is nothing to select for %s: %s", v.Name, v.Definition)
		}
		all := v.AllValue
		if all == "" {
			for i, value := range values {
				values[i] = strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`) // it is put between quotes
			}
			all = "(" + strings.Join(values, "|") + ")"
		}
		pairs = append(pairs, "$"+v.Name, all)
	}
	return strings.NewReplacer(pairs...)
}

// foreign is the value of every label of another program's series.
const foreign = "foreign"

// startForeign serves the metrics of another program, and returns its address. It has all that the
// dashboard names and that is not Lockstep's own, as any other controller may have. Prometheus
// itself has only those of its process.
func startForeign(t testing.TB, d dashboard) string {
	t.Helper()
	labels := fmt.Sprintf(`{name=%[1]q,controller=%[1]q,method=%[1]q,code=%[1]q,le="+Inf"}`, foreign)
	var page strings.Builder
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			for _, name := range seriesIn(target.Expr) {
				if series := name + labels + " 1\n"; !strings.HasPrefix(name, "lockstep_") && !strings.Contains(page.String(), series) {
					page.WriteString(series)
				}
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page.String()) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// isForeign reports whether a series of an answer is from another program than Lockstep.
func (p *prometheus) isForeign(s sample) bool {
	for _, value := range s.Metric {
		if value == foreign || slices.Contains(p.foreign, value) {
			return true
		}
	}
	return false
}
