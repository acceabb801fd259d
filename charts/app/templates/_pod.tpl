{{/* app.podTemplate is the pod template of either kind of workload. */}}
{{- define "app.podTemplate" -}}
{{- $v := .Values -}}
metadata:
  labels:
    {{- toYaml (merge (dict "app" $v.appName) $v.podLabels) | nindent 4 }}
  annotations:
    checksum/config: {{ include "app.checksum" . }}
    {{- with $v.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "app.account" . }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- if not $v.automountServiceAccountToken }}
  automountServiceAccountToken: false
  {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
  {{- with $v.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or $v.sync.enabled $v.initContainers }}
  initContainers:
    {{- if $v.sync.enabled }}
    {{- include "app.sync" . | nindent 4 }}
    {{- end }}
    {{- with $v.initContainers }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    {{- include "app.container" . | nindent 4 }}
    {{- with $v.extraContainers }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
  {{- with include "app.volumes" . | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with $v.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{- toYaml (merge (dict) . (dict "labelSelector" (dict "matchLabels" (dict "app" $v.appName)))) | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- range $field := list "nodeSelector" "tolerations" "affinity" }}
  {{- with index $v $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end -}}

{{/* app.container is the application's container. */}}
{{- define "app.container" -}}
{{- $v := .Values -}}
- name: {{ $v.appName }}
  image: {{ include "app.image" . | quote }}
  imagePullPolicy: {{ $v.image.imagePullPolicy }}
  {{- range $field := list "command" "args" "ports" "livenessProbe" "readinessProbe" "startupProbe" "lifecycle" "resources" "securityContext" }}
  {{- with index $v $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $v.env }}
  env:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  {{- with include "app.envFrom" . | trim }}
  envFrom:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with include "app.volumeMounts" . | trim }}
  volumeMounts:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* app.used lists the keys of configmaps or secrets that are used in one of the given ways, as JSON. */}}
{{- define "app.used" -}}
{{- $found := list -}}
{{- range $key, $spec := index .root.Values .group -}}
{{- if has (($spec).use | default "files") $.ways -}}
{{- $found = append $found $key -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "app.envFrom" -}}
{{- $root := . -}}
{{- $ways := list "env" "both" -}}
{{- range $key := include "app.used" (dict "root" $root "group" "configmaps" "ways" $ways) | fromJsonArray }}
- configMapRef:
    name: {{ include "app.objectName" (dict "root" $root "group" "configmaps" "key" $key) }}
{{- end }}
{{- range $key := include "app.used" (dict "root" $root "group" "secrets" "ways" $ways) | fromJsonArray }}
- secretRef:
    name: {{ include "app.objectName" (dict "root" $root "group" "secrets" "key" $key) }}
{{- end }}
{{- with $root.Values.envFrom }}
{{ tpl (toYaml .) $root }}
{{- end }}
{{- end -}}

{{- define "app.volumeMounts" -}}
{{- $ways := list "files" "both" -}}
{{- if include "app.used" (dict "root" . "group" "configmaps" "ways" $ways) | fromJsonArray }}
- name: configmaps-volume
  mountPath: {{ .Values.configmapsMountPath }}
{{- end }}
{{- if include "app.used" (dict "root" . "group" "secrets" "ways" $ways) | fromJsonArray }}
- name: secrets-volume
  mountPath: {{ .Values.secretsMountPath }}
{{- end }}
{{- if .Values.sync.enabled }}
- {name: lockstep-sync, mountPath: {{ .Values.sync.mountPath }}, readOnly: true}
{{- end }}
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "app.volumes" -}}
{{- include "app.projected" (dict "root" . "group" "configmaps" "source" "configMap") }}
{{- include "app.projected" (dict "root" . "group" "secrets" "source" "secret") }}
{{- if .Values.sync.enabled }}
- {name: lockstep-sync, emptyDir: {}}
{{- end }}
{{- with .Values.volumes }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}

{{/* app.projected is the volume with all ConfigMaps, or all Secrets. */}}
{{- define "app.projected" -}}
{{- $root := .root -}}
{{- $group := .group -}}
{{- $source := .source -}}
{{- with include "app.used" (dict "root" $root "group" $group "ways" (list "files" "both")) | fromJsonArray }}
- name: {{ $group }}-volume
  projected:
    defaultMode: {{ $root.Values.mount.defaultMode }}
    sources:
      {{- range $key := . }}
      - {{ $source }}:
          name: {{ include "app.objectName" (dict "root" $root "group" $group "key" $key) }}
          {{- if eq $root.Values.mount.layout "directories" }}
          items:
            {{- range $file := include "app.files" (dict "root" $root "group" $group "key" $key) | fromJsonArray }}
            - {key: {{ $file | quote }}, path: {{ printf "%s/%s" $key $file | quote }}}
            {{- end }}
          {{- end }}
      {{- end }}
{{- end }}
{{- end -}}
