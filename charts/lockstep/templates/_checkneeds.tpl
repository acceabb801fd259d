{{/* lockstep.checkNeeds refuses a value that has no effect, because what it belongs to is switched off. */}}
{{- define "lockstep.checkNeeds" -}}
{{- $all := .Values -}}
{{- range $switch, $values := include "lockstep.needs" . | fromYaml -}}
{{- range $values -}}
{{- $value := include "lockstep.valueAt" (dict "values" $all "path" .) | fromJson -}}
{{- $on := include "lockstep.valueAt" (dict "values" $all "path" $switch) | fromJson -}}
{{- if and $value.is (not $on.is) -}}
{{- $without := ternary (printf "%s=false" .) (printf "leave %s empty" .) (kindIs "bool" $value.is) -}}
{{- fail (printf "\n\n%s needs %s: set %s=true, or %s" . $switch $switch $without) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.needs has the switches, and what has no effect without each. Labels and intervals of monitors are
not among them: one file of values may serve clusters with and without Prometheus.
*/}}
{{- define "lockstep.needs" -}}
reload.enabled: [reload.auto, podStrategies.enabled]
revisions.enabled: [revisions.secretNamespaces, revisions.grace]
images.enabled: [images.pullSecrets, images.platforms, images.defaultPlatform, images.interval, images.dockerConfigNamespaces, images.webhook.enabled]
images.webhook.enabled: [images.webhook.secretName, networkPolicy.webhookFrom]
networkPolicy.enabled: [networkPolicy.metricsFrom, networkPolicy.webhookFrom, networkPolicy.egress]
serviceAccount.create: [serviceAccount.annotations]
{{- end -}}

{{/* lockstep.valueAt is the value at a path such as images.webhook.enabled, as JSON: {"is": true}. */}}
{{- define "lockstep.valueAt" -}}
{{- $value := .values -}}
{{- range splitList "." .path -}}
{{- $value = get $value . -}}
{{- end -}}
{{- dict "is" $value | toJson -}}
{{- end -}}
