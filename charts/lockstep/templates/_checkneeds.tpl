{{/* lockstep.checkNeeds rejects a value without effect, because its feature is off. Non-empty defaults pass. */}}
{{- define "lockstep.checkNeeds" -}}
{{- $all := .Values -}}
{{- $defaults := dict "images.cloudIdentityNamespaces" (list "*") "admissionPolicy.deniedNamespaces" (list "kube-system") -}}
{{- range $switch, $values := include "lockstep.needs" . | fromYaml -}}
{{- range $values -}}
{{- $value := include "lockstep.at" (dict "values" $all "path" .) | fromJsonArray | first -}}
{{- $on := include "lockstep.at" (dict "values" $all "path" $switch) | fromJsonArray | first -}}
{{- if and $value.value (not $on.value) (ne (toJson $value.value) (get $defaults . | toJson)) -}}
{{- $without := ternary (printf "%s=false" .) (printf "leave %s empty" .) (kindIs "bool" $value.value) -}}
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
