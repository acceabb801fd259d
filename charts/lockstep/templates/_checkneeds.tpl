{{/* lockstep.checkNeeds rejects a value without effect, because its feature is off. Non-empty defaults pass. */}}
{{- define "lockstep.checkNeeds" -}}
{{- $all := .Values -}}
{{- $defaults := dict "images.cloudIdentityNamespaces" (list "*") "admissionPolicy.deniedNamespaces" (list "kube-system") -}}
{{- range $switch, $values := include "lockstep.needs" . | fromYaml -}}
{{- range $values -}}
{{- $value := include "lockstep.valueAt" (dict "values" $all "path" .) | fromJson -}}
{{- $on := include "lockstep.valueAt" (dict "values" $all "path" $switch) | fromJson -}}
{{- if and $value.is (not $on.is) (ne (toJson $value.is) (get $defaults . | toJson)) -}}
{{- $without := ternary (printf "%s=false" .) (printf "leave %s empty" .) (kindIs "bool" $value.is) -}}
{{- fail (printf "\n\n%s needs %s: set %s=true, or %s" . $switch $switch $without) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.needs lists the switches and the values without effect when they are off. Labels and intervals of monitors
aren't among them: one values file can serve clusters with and without Prometheus.
*/}}
{{- define "lockstep.needs" -}}
reload.enabled: [reload.auto, podStrategies.enabled]
revisions.enabled: [revisions.secretNamespaces, revisions.grace]
images.enabled: [images.pullSecrets, images.platforms, images.defaultPlatform, images.interval, images.dockerConfigNamespaces, images.cloudIdentityNamespaces, images.webhook.enabled]
images.webhook.enabled: [images.webhook.secretName, networkPolicy.webhookFrom]
networkPolicy.enabled: [networkPolicy.metricsFrom, networkPolicy.webhookFrom, networkPolicy.egress]
admissionPolicy.enabled: [admissionPolicy.deniedNamespaces]
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
