{{/*
The controller's permissions and their purposes. test/install runs the controller with exactly these
and compares them with the requests in the API server's audit log.
*/}}

{{/* lockstep.workloadVerbs: a feature that rolls out workloads patches them. */}}
{{- define "lockstep.workloadVerbs" -}}
{{- $v := .Values -}}
{{- if and (or $v.reload.enabled $v.images.enabled) (not $v.observe) -}}
[list, watch, patch]
{{- else -}}
[list, watch]
{{- end -}}
{{- end -}}

{{/* lockstep.followRules are the permissions in the followed namespaces. */}}
{{- define "lockstep.followRules" -}}
{{- $v := .Values -}}
{{- $moves := or $v.reload.enabled $v.images.enabled -}}
{{- if $v.reload.enabled }}
# The sources. Lockstep hashes their content on arrival and doesn't keep it.
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [list, watch]
{{- else if $v.revisions.enabled }}
# Metadata of the attached objects.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
{{- end }}
{{- if or $moves $v.revisions.enabled }}
{{- with include "lockstep.appsResources" $v }}
# The workloads. A rollout is one patch of the pod template.
- apiGroups: [apps]
  resources: [{{ . }}]
  verbs: {{ include "lockstep.workloadVerbs" $ }}
{{- end }}
{{- if has "rollout" $v.builtInKinds }}
# Without Argo Rollouts, this has no effect.
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: {{ include "lockstep.workloadVerbs" . }}
{{- end }}
{{- if has "cronjob" $v.builtInKinds }}
# The next Job reads new content by itself; Lockstep writes only a new image.
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch{{ if and $v.images.enabled (not $v.observe) }}, patch{{ end }}]
{{- end }}
{{- range $v.kinds }}
- apiGroups: [{{ include "lockstep.groupOf" .kind | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: {{ include "lockstep.workloadVerbs" $ }}
{{- end }}
{{- with include "lockstep.revisionResources" $v }}
# The revisions, which show the delivered versions{{ if $v.revisions.enabled }} and own the attached objects{{ end }}.
- apiGroups: [apps]
  resources: [{{ . }}]
  verbs: [list{{ if $v.revisions.enabled }}, watch{{ end }}]
{{- end }}
# The events that "kubectl describe" shows.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- if $v.revisions.enabled }}
{{- if has "cronjob" $v.builtInKinds }}
# Jobs are the revisions of CronJobs.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
{{- end }}
{{- if not $v.observe }}
# Lockstep writes only owner references. RBAC can't restrict a patch to them.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [patch]
{{- end }}
{{- end }}
{{- if $v.images.enabled }}
# The pull secrets of the pods.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets]
  {{- with $v.images.pullSecrets }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get]
{{- end }}
{{- $strategies := and $v.podStrategies.enabled (not $v.observe) }}
{{- $starts := and $v.reload.enabled (include "lockstep.revisionResources" $v) }}
{{- if or $strategies $starts }}
{{- if $starts }}
# When pods started shows which content another tool's rollout has loaded.
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list{{ if $strategies }}, patch{{ end }}]
{{- end }}
{{- if $strategies }}
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- end -}}

{{/* lockstep.appsResources are the resources of the followed built-in kinds in the group apps: "deployments, daemonsets". */}}
{{- define "lockstep.appsResources" -}}
{{- $resources := list -}}
{{- range list "deployment" "statefulset" "daemonset" -}}
{{- if has . $.builtInKinds -}}{{- $resources = append $resources (printf "%ss" .) -}}{{- end -}}
{{- end -}}
{{- join ", " $resources -}}
{{- end -}}

{{/* lockstep.revisionResources are the resources of their revisions. An additional kind may use either. */}}
{{- define "lockstep.revisionResources" -}}
{{- $resources := list -}}
{{- if or (has "deployment" .builtInKinds) (has "rollout" .builtInKinds) .kinds -}}{{- $resources = append $resources "replicasets" -}}{{- end -}}
{{- if or (has "statefulset" .builtInKinds) (has "daemonset" .builtInKinds) .kinds -}}{{- $resources = append $resources "controllerrevisions" -}}{{- end -}}
{{- join ", " $resources -}}
{{- end -}}

{{/* lockstep.groupOf is the group of group/version/Kind=path; version/Kind=path has none. */}}
{{- define "lockstep.groupOf" -}}
{{- $parts := splitList "/" (first (splitList "=" .)) -}}
{{- if eq (len $parts) 3 -}}{{- first $parts -}}{{- end -}}
{{- end -}}

{{/* lockstep.clusterRules are the permissions on cluster-scoped objects. */}}
{{- define "lockstep.clusterRules" -}}
{{- $v := .Values -}}
{{- if or $v.reload.enabled $v.images.enabled $v.revisions.enabled }}
# Namespace defaults for workloads.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}
{{- if and $v.images.enabled (not $v.images.platforms) (not $v.images.defaultPlatform) }}
# The platforms that an image must support.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
{{- end }}
{{- end -}}

{{/* lockstep.ownRules are the permissions in the release namespace. */}}
{{- define "lockstep.ownRules" -}}
{{- $moves := or .Values.reload.enabled .Values.images.enabled -}}
{{- $writes := or $moves .Values.revisions.enabled -}}
{{- if $moves }}
# The record of delivered versions, and the ConfigMap lockstep-stop. RBAC can't restrict a list to a label, or a create
# to a name.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, create]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames:
    [{{ include "lockstep.recordNames" . | wrap 110 | nindent 5 | trim }}]
  verbs: [get, patch]
{{- else if $writes }}
# The ConfigMap lockstep-stop, with which an operator stops every automatic change.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
{{- end }}
{{- if .Values.reload.enabled }}
# The key for Secret digests. The controller creates it at its first start.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [lockstep-installation-key]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- end }}
# Leader election.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [lockstep]
  verbs: [get, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# The client library's event "became leader"{{ if $writes }}, and the events about the record and lockstep-stop{{ end }}.
- apiGroups: [""{{ if $writes }}, events.k8s.io{{ end }}]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* lockstep.recordNames are the names of the ConfigMaps of the record. */}}
{{- define "lockstep.recordNames" -}}
{{- $names := list -}}
{{- range until 64 -}}
{{- $names = append $names (printf "lockstep-state-%02d" .) -}}
{{- end -}}
{{- join ", " $names -}}
{{- end -}}

{{/* lockstep.attachSecretsRules are the permissions in a namespace with attached Secrets. */}}
{{- define "lockstep.attachSecretsRules" -}}
{{- if not .Values.reload.enabled }}
# Metadata of the attached Secrets.
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
{{- end }}
{{- if not .Values.observe }}
# Lockstep writes only owner references. RBAC can't restrict a patch to them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* lockstep.role is a Role and its binding. */}}
{{- define "lockstep.role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name | quote }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- include "lockstep.labels" .root | nindent 4 }}
rules:
  {{- trim .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name | quote }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- include "lockstep.labels" .root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name | quote }}}
{{ include "lockstep.subjects" .root }}
{{- end -}}
