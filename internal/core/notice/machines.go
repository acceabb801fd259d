package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// mostAlerts limits the alerts of one request.
	mostAlerts = 100
	// alertFor is how long an alert fires. A change that waits for a user is reported every half
	// hour, so its alert goes on.
	alertFor = 45 * time.Minute
	// summaryLimit is PagerDuty's.
	summaryLimit = 1024
	// dedupLimit is PagerDuty's limit of a deduplication key.
	dedupLimit = 255
)

// alertsOf are the alerts of a message: one for a change, which concerns many objects, or else one
// for each object.
func alertsOf(m Message) []any {
	if m.Change != "" {
		labels := m.labels(m.Namespace)
		labels["change"] = m.Change
		return []any{alert(m, labels, m.Text())}
	}
	var alerts []any
	for _, n := range m.Notices {
		labels := m.labels(n.Namespace)
		labels["object"] = n.object()
		alerts = append(alerts, alert(m, labels, n.Text))
	}
	return alerts
}

func (m Message) labels(namespace string) map[string]string {
	labels := map[string]string{"alertname": "Lockstep" + string(m.Reason), "severity": string(m.Severity)}
	if namespace != "" {
		labels["namespace"] = namespace
	}
	return labels
}

func alert(m Message, labels map[string]string, description string) any {
	return map[string]any{
		"labels": labels, "annotations": map[string]string{"summary": m.Title(), "description": description},
		"startsAt": m.At.UTC().Format(time.RFC3339), "endsAt": m.At.Add(alertFor).UTC().Format(time.RFC3339),
	}
}

// incident is an event of PagerDuty's Events API v2.
func incident(t Target, m Message) any {
	subject := m.Change
	if subject == "" {
		subject = m.Namespace
		if len(m.Notices) == 1 {
			subject += "/" + m.Notices[0].object()
		}
	}
	source := m.Namespace
	if source == "" {
		source = "several namespaces"
	}
	return map[string]any{
		"routing_key": string(t.Key), "event_action": "trigger", "client": "Lockstep",
		"dedup_key": bounded("lockstep/" + string(m.Reason) + "/" + subject),
		"payload": map[string]any{
			"summary": cut(m.Title()+": "+m.Notices[0].Text, summaryLimit), "source": source, "severity": string(m.Severity),
			"timestamp": m.At.UTC().Format(time.RFC3339), "component": m.objects(), "group": m.Namespace, "class": string(m.Reason),
			"custom_details": map[string]any{"message": m.Text(), "change": m.Change, "count": m.Count()},
		},
	}
}

// bounded replaces a key that is too long by its digest.
func bounded(key string) string {
	if len(key) <= dedupLimit {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "lockstep/" + hex.EncodeToString(sum[:])
}

// document is a message as JSON.
func document(m Message, dropped int) any {
	objects := make([]any, len(m.Notices))
	for i, n := range m.Notices {
		objects[i] = map[string]string{"namespace": n.Namespace, "kind": n.Kind, "name": n.Name, "text": n.Text}
	}
	return map[string]any{
		"time": m.At.UTC().Format(time.RFC3339), "severity": string(m.Severity), "reason": string(m.Reason),
		"namespace": m.Namespace, "change": m.Change, "count": m.Count(), "message": m.Text(), "objects": objects, "dropped": dropped,
	}
}
