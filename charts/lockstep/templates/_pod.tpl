{{/* lockstep.pod is the specification of the pods. */}}
{{- define "lockstep.pod" -}}
{{- $v := .Values -}}
serviceAccountName: {{ include "lockstep.account" . | quote }}
{{- with $v.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $v.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: lockstep
    {{- include "lockstep.container" . | nindent 4 }}
{{- with include "lockstep.volumes" . }}
volumes:
  {{- . | nindent 2 }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
{{- if $v.affinity }}
  {{- toYaml $v.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "lockstep.selector" . | nindent 14 }}
{{- end }}
{{- end -}}

{{/* lockstep.container is the controller, without its name. */}}
{{- define "lockstep.container" -}}
{{- $v := .Values -}}
image: {{ include "lockstep.image" . | quote }}
imagePullPolicy: {{ $v.image.pullPolicy }}
command: [/lockstep]
args:
  {{- include "lockstep.args" . | nindent 2 }}
env:
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- with $v.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: metrics, containerPort: 8080}
  - {name: probes, containerPort: 8081}
  {{- if $v.images.webhook.enabled }}
  - {name: webhook, containerPort: {{ $v.images.webhook.port }}}
  {{- end }}
livenessProbe:
  httpGet: {path: /healthz, port: probes}
readinessProbe:
  httpGet: {path: /readyz, port: probes}
{{- with $v.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "lockstep.mounts" . }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lockstep.volumes" -}}
{{- if .Values.images.webhook.enabled -}}
- name: lockstep-webhook
  secret: {secretName: {{ .Values.images.webhook.secretName | quote }}}
{{ end -}}
{{- with .Values.notifications.secretName -}}
- name: lockstep-notifications
  secret: {secretName: {{ . | quote }}, optional: true} # without it, Lockstep only skips notifications
{{ end -}}
{{- with .Values.extraVolumes -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{- define "lockstep.mounts" -}}
{{- if .Values.images.webhook.enabled -}}
- {name: lockstep-webhook, mountPath: /etc/lockstep/webhook, readOnly: true}
{{ end -}}
{{- if .Values.notifications.secretName -}}
- {name: lockstep-notifications, mountPath: /etc/lockstep/notifications, readOnly: true}
{{ end -}}
{{- with .Values.extraVolumeMounts -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}
