{{/* lockstep.args are the arguments of the controller. It always includes the switches, so the manifest shows which features run. */}}
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
- {{ printf "--namespaces=%s" (join "," .) | quote }}
{{- end }}
{{- with $v.namespaceSelector }}
- {{ printf "--namespace-selector=%s" . | quote }}
{{- end }}
{{- if ne (len $v.builtInKinds) 5 }}
- {{ printf "--built-in-kinds=%s" (join "," $v.builtInKinds) | quote }}
{{- end }}
{{- range $v.kinds }}
- {{ printf "--kind=%s" .kind | quote }}
{{- end }}
{{- with $v.quiet }}
- {{ printf "--quiet=%s" . | quote }}
{{- end }}
{{- with $v.maxDelay }}
- {{ printf "--max-delay=%s" . | quote }}
{{- end }}
{{- include "lockstep.rolloutArgs" $v.rollouts }}
{{- if $v.revisions.enabled }}
- {{ printf "--revisions-secret-namespaces=%s" (join "," $v.revisions.secretNamespaces) | quote }}
{{- with $v.revisions.grace }}
- {{ printf "--revisions-grace=%s" . | quote }}
{{- end }}
{{- end }}
{{- if $v.images.enabled }}
{{- include "lockstep.imageArgs" $v.images }}
{{- end }}
{{- if $v.notifications.secretName }}
- {{ printf "--notify-file=/etc/lockstep/notifications/%s" $v.notifications.secretKey | quote }}
{{- end }}
{{- with $v.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockstep.rolloutArgs" }}
- --ramp={{ .ramp }}
- --max-rolling={{ int .maxRolling }}
- --stop-after={{ int .stopAfter }}
{{- $rollouts := . }}
{{- range $value, $flag := dict "settle" "settle" "timeout" "rollout-timeout" "pauseGrace" "pause-grace" "window" "window" "damping" "damping" "maxDamping" "max-damping" }}
{{- with get $rollouts $value }}
- {{ printf "--%s=%s" $flag . | quote }}
{{- end }}
{{- end }}
{{- range .shared }}
- {{ printf "--shared=%s" . | quote }}
{{- end }}
{{- end -}}

{{- define "lockstep.imageArgs" -}}
{{- with .interval }}
- {{ printf "--image-interval=%s" . | quote }}
{{- end }}
{{- with .platforms }}
- {{ printf "--image-platforms=%s" (join "," .) | quote }}
{{- end }}
{{- with .defaultPlatform }}
- {{ printf "--image-default-platform=%s" . | quote }}
{{- end }}
{{- with .pullSecrets }}
- {{ printf "--image-pull-secrets=%s" (join "," .) | quote }}
{{- end }}
{{- with .dockerConfigNamespaces }}
- {{ printf "--docker-config-namespaces=%s" (join "," .) | quote }}
{{- end }}
- {{ printf "--cloud-identity-namespaces=%s" (join "," .cloudIdentityNamespaces) | quote }}
{{- if .webhook.enabled }}
- --image-webhook-addr=:{{ .webhook.port }}
- {{ printf "--image-webhook-secret-file=/etc/lockstep/webhook/%s" .webhook.secretKey | quote }}
{{- end }}
{{- end -}}
