// Package expofmt knows the Prometheus text format as far as the agent needs
// it: writing its own few metrics and finding one sample of an application's.
// A library would cost every pod some megabytes for the same.
package expofmt

import (
	"cmp"
	"fmt"
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

// Append writes the metrics behind b, samples in the order of their labels.
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

// Condition compares one metric with a number, as in "up == 1".
type Condition struct {
	Metric   string
	Operator string
	Value    float64
}

// ParseCondition reads NAME OPERATOR NUMBER; the operator is one of
// == != >= <= > <.
func ParseCondition(s string) (Condition, error) {
	for _, op := range []string{"==", "!=", ">=", "<=", ">", "<"} {
		name, number, found := strings.Cut(s, op)
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		name = strings.TrimSpace(name)
		if err != nil || name == "" || strings.ContainsAny(name, " \t\n=!<>{}") {
			break
		}
		return Condition{Metric: name, Operator: op, Value: value}, nil
	}
	return Condition{}, fmt.Errorf("condition %q: want a metric, one of == != >= <= > <, and a number", s)
}

// Holds looks the metric up in a text exposition. found is false when it is
// not there; a metric with several samples holds when each of them does.
func (c Condition) Holds(exposition string) (holds, found bool) {
	holds = true
	for line := range strings.Lines(exposition) {
		value, ok := c.sample(strings.TrimSpace(line))
		if !ok {
			continue
		}
		found = true
		holds = holds && c.compare(value)
	}
	return holds && found, found
}

// sample reads a line of the condition's metric, whatever its labels are.
func (c Condition) sample(line string) (float64, bool) {
	rest, ok := strings.CutPrefix(line, c.Metric)
	if !ok {
		return 0, false
	}
	if strings.HasPrefix(rest, "{") {
		end := strings.LastIndex(rest, "}")
		if end < 0 {
			return 0, false
		}
		rest = rest[end+1:]
	}
	if rest == "" || (rest[0] != ' ' && rest[0] != '\t') {
		return 0, false
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return value, err == nil
}

func (c Condition) compare(value float64) bool {
	order := cmp.Compare(value, c.Value)
	switch c.Operator {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order < 0
	}
}
