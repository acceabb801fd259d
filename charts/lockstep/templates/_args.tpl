{{/* lockstep.args are the arguments of the controller. Switches are always written, so that the manifest says what runs. */}}
{{- define "lockstep.args" -}}
{{- $v := .Values -}}
- controller
- --log-format={{ $v.logging.format }}
- --log-level={{ $v.logging.level }}
- --reload={{ $v.reload.enabled }}
- --revisions={{ $v.revisions.enabled }}
- --images={{ $v.images.enabled }}
{{- if $v.podStrategies.enabled }}
- --pod-strategies
{{- end }}
{{- if $v.reload.auto }}
- --auto
{{- end }}
{{- if $v.observe }}
- --observe
{{- end }}
{{- with $v.namespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- with $v.namespaceSelector }}
- {{ printf "--namespace-selector=%s" . | quote }}
{{- end }}
{{- range $v.kinds }}
- --kind={{ .kind }}
{{- end }}
{{- with $v.quiet }}
- --quiet={{ . }}
{{- end }}
{{- with $v.maxDelay }}
- --max-delay={{ . }}
{{- end }}
{{- if $v.revisions.enabled }}
- --revisions-secret-namespaces={{ join "," $v.revisions.secretNamespaces }}
{{- with $v.revisions.grace }}
- --revisions-grace={{ . }}
{{- end }}
{{- end }}
{{- if $v.images.enabled }}
{{- include "lockstep.imageArgs" $v.images }}
{{- end }}
{{- with $v.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockstep.imageArgs" -}}
{{- with .interval }}
- --image-interval={{ . }}
{{- end }}
{{- with .platforms }}
- --image-platforms={{ join "," . }}
{{- end }}
{{- with .pullSecrets }}
- --image-pull-secrets={{ join "," . }}
{{- end }}
{{- if .webhook.enabled }}
- --image-webhook-addr=:{{ .webhook.port }}
- --image-webhook-secret-file=/etc/lockstep/webhook/{{ .webhook.secretKey }}
{{- end }}
{{- end -}}
