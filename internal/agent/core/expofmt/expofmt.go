// Package expofmt knows the Prometheus text format as far as the agent needs it: writing its
// own few metrics and finding one of the application's samples. A library would add some
// megabytes to every pod.
package expofmt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is the kind of a metric.
type Type string

// The types that the agent uses.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
)

// Sample is one value of a metric.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Metric is a family of samples with one name.
type Metric struct {
	Name, Help string
	Type       Type
	Samples    []Sample
}

// Append appends the metrics to b, with samples ordered by their labels.
func Append(b []byte, metrics ...Metric) []byte {
	for _, m := range metrics {
		b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Type)
		lines := make([]string, 0, len(m.Samples))
		for _, s := range m.Samples {
			lines = append(lines, m.Name+formatLabels(s.Labels)+" "+strconv.FormatFloat(s.Value, 'g', -1, 64)+"\n")
		}
		slices.Sort(lines)
		b = append(b, strings.Join(lines, "")...)
	}
	return b
}

func formatLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	pairs := make([]string, 0, len(labels))
	for name, value := range labels {
		pairs = append(pairs, name+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)+`"`)
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

// Condition compares one metric with a number, as in "up == 1", or with its earlier value,
// as in "reloads_total > before".
type Condition struct {
	Metric   string
	Operator string
	Value    float64
	// Before means that the metric is compared with its own earlier value.
	Before bool
}

// before is the word for a metric's own earlier value.
const before = "before"

// String returns the condition without the metric.
func (c Condition) String() string {
	if c.Before {
		return c.Operator + " " + before
	}
	return c.Operator + " " + strconv.FormatFloat(c.Value, 'g', -1, 64)
}

// ParseCondition parses NAME OPERATOR NUMBER. The operator is one of == != >= <= > <, and
// the word before may replace the number.
func ParseCondition(s string) (Condition, error) {
	for _, op := range []string{"==", "!=", ">=", "<=", ">", "<"} {
		name, number, found := strings.Cut(s, op)
		if !found {
			continue
		}
		name, number = strings.TrimSpace(name), strings.TrimSpace(number)
		c := Condition{Metric: name, Operator: op, Before: number == before}
		var err error
		if !c.Before {
			c.Value, err = strconv.ParseFloat(number, 64)
		}
		if err != nil || name == "" || strings.ContainsAny(name, " \t\n=!<>{}") {
			break
		}
		return c, nil
	}
	return Condition{}, fmt.Errorf("condition %q: want a metric, one of == != >= <= > <, and a number or the word before", s)
}

// Excerpt writes samples in the form that Samples parses.
func (c Condition) Excerpt(samples map[string]float64) string {
	var text strings.Builder
	for _, labels := range slices.Sorted(maps.Keys(samples)) {
		fmt.Fprintf(&text, "%s%s %g\n", c.Metric, labels, samples[labels])
	}
	return text.String()
}

// Samples finds the metric in a text exposition, by labels.
func (c Condition) Samples(exposition string) map[string]float64 {
	samples := map[string]float64{}
	for line := range strings.Lines(exposition) {
		if labels, value, ok := c.sample(strings.TrimSpace(line)); ok {
			samples[labels] = value
		}
	}
	return samples
}

// Holds reports whether the condition holds for each sample, and there is at least one. A
// sample that is new, or was NaN because the application hadn't set it yet, counts as 0 before,
// like a new counter.
func (c Condition) Holds(now, earlier map[string]float64) bool {
	for labels, value := range now {
		against := c.Value
		if c.Before {
			against = earlier[labels]
			if math.IsNaN(against) {
				against = 0
			}
		}
		if !c.compare(value, against) {
			return false
		}
	}
	return len(now) > 0
}

// sample parses a line of the condition's metric, with any labels.
func (c Condition) sample(line string) (labels string, value float64, ok bool) {
	rest, ok := strings.CutPrefix(line, c.Metric)
	if !ok {
		return "", 0, false
	}
	if strings.HasPrefix(rest, "{") {
		end := strings.LastIndex(rest, "}") + 1
		labels, rest = rest[:end], rest[end:]
	}
	if rest == "" || (rest[0] != ' ' && rest[0] != '\t') {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return labels, value, err == nil
}

// compare compares as Prometheus does: with NaN, only != is true.
func (c Condition) compare(value, against float64) bool {
	switch c.Operator {
	case "==":
		return value == against
	case "!=":
		return value != against
	case ">=":
		return value >= against
	case "<=":
		return value <= against
	case ">":
		return value > against
	default:
		return value < against
	}
}
