package notice

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fieldNames are the fields of a template, as {{reason}}.
func fieldNames() []string {
	return []string{"change", "count", "message", "namespace", "objects", "reason", "severity", "time", "title"}
}

func (m Message) field(name string) string {
	switch name {
	case "change":
		return m.Change
	case "count":
		return number(m.Count())
	case "message":
		return m.Text()
	case "namespace":
		return m.Namespace
	case "objects":
		return m.objects()
	case "reason":
		return string(m.Reason)
	case "severity":
		return string(m.Severity)
	case "time":
		return m.At.UTC().Format(time.RFC3339)
	default:
		return m.Title()
	}
}

func placeholders() *regexp.Regexp { return regexp.MustCompile(`\{\{([^{}]*)\}\}`) }

func unknownField(template string) bool {
	return slices.ContainsFunc(placeholders().FindAllStringSubmatch(template, -1), func(found []string) bool {
		return !slices.Contains(fieldNames(), strings.TrimSpace(found[1]))
	})
}

// fill replaces the fields of a template. In JSON they are escaped, for use between quotes.
func (m Message) fill(template string) string {
	isJSON := isJSONTemplate(template)
	return placeholders().ReplaceAllStringFunc(template, func(found string) string {
		value := m.field(strings.TrimSpace(strings.Trim(found, "{}")))
		if !isJSON {
			return value
		}
		quoted, _ := json.Marshal(value) // A text can always be encoded.
		return string(quoted[1 : len(quoted)-1])
	})
}

func isJSONTemplate(template string) bool {
	begin := strings.TrimSpace(template)
	return strings.HasPrefix(begin, "{") && !strings.HasPrefix(begin, "{{") || strings.HasPrefix(begin, "[")
}
