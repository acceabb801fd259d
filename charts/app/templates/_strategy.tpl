{{/* app.strategy is the strategy of the Rollout. */}}
{{- define "app.strategy" -}}
{{- $named := .Values.rollout.preDefinedStrategy -}}
{{- $custom := .Values.rollout.strategy -}}
{{- if and $custom $named (ne $named "auto") -}}
{{- fail (printf "\n\nrollout.strategy and rollout.preDefinedStrategy (%s) are both set; keep one" $named) -}}
{{- end -}}
{{- if $custom -}}
{{- toYaml $custom -}}
{{- else if or (eq (toString $named) "auto") (eq (toString $named) "manual-canary-1-pod") -}}
{{- include "app.manualCanary" (dict "first" 1 "onePod" true) -}}
{{- else if eq (toString $named) "manual-canary-20-pct" -}}
{{- include "app.manualCanary" (dict "first" 20) -}}
{{- else if not $named -}}
{{- fail "\n\na Rollout needs a strategy: set rollout.strategy, or set rollout.preDefinedStrategy to manual-canary-1-pod, manual-canary-20-pct or auto" -}}
{{- else -}}
{{- fail (printf "\n\nrollout.preDefinedStrategy %q is unknown: use manual-canary-1-pod, manual-canary-20-pct or auto" $named) -}}
{{- end -}}
{{- end -}}

{{/* app.manualCanary replaces the first pods and waits for a promotion. */}}
{{- define "app.manualCanary" -}}
canary:
  {{- if .onePod }}
  maxSurge: 0
  maxUnavailable: 1
  {{- end }}
  stableMetadata:
    labels: {role: stable, canary: "false"}
  canaryMetadata:
    labels: {role: canary, canary: "true"}
  steps:
    - setWeight: {{ .first }}
    - pause: {}
{{- end -}}
