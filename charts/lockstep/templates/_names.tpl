{{/* lockstep.name is the name of the objects. */}}
{{- define "lockstep.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{/*
lockstep.selector are the labels that select the pods. A namespace contains at most one installation,
because the record, the key and the Lease have fixed names. So the labels don't include the release, and
Helm can adopt an installation that was made in another way.
*/}}
{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep
{{- end -}}

{{/* lockstep.labels are the labels of every object. */}}
{{- define "lockstep.labels" -}}
{{ toYaml (merge (include "lockstep.ownLabels" . | fromYaml) .Values.labels) }}
{{- end -}}

{{/* lockstep.componentLabels are the labels of a Service: monitors select it by component. */}}
{{- define "lockstep.componentLabels" -}}
{{ toYaml (merge (dict "app.kubernetes.io/component" .component) (include "lockstep.labels" .root | fromYaml)) }}
{{- end -}}

{{- define "lockstep.ownLabels" -}}
{{ include "lockstep.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{/* lockstep.account is the service account of the controller. */}}
{{- define "lockstep.account" -}}
{{- .Values.serviceAccount.name | default (include "lockstep.name" .) -}}
{{- end -}}

{{/* lockstep.image is the image of the controller. */}}
{{- define "lockstep.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* lockstep.subjects are the subjects of the role bindings. */}}
{{- define "lockstep.subjects" -}}
subjects:
  - {kind: ServiceAccount, name: {{ include "lockstep.account" . | quote }}, namespace: {{ .Release.Namespace | quote }}}
{{- end -}}
