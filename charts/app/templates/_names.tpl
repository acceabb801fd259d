{{/* app.labels are the labels of every object that doesn't belong to a single revision. */}}
{{- define "app.labels" -}}
app: {{ .Values.appName }}
app.kubernetes.io/name: {{ .Values.appName }}
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
app.kind is the kind of the workload. Any of base-app's values about a Rollout is
enough to select one.
*/}}
{{- define "app.kind" -}}
{{- $named := .Values.rollout.preDefinedStrategy -}}
{{- if .Values.workload.kind -}}
{{- .Values.workload.kind -}}
{{- else if or .Values.rollout.strategy (and $named (ne (toString $named) "auto")) (regexMatch "configmap-attacher$" .Values.configmapAttacher.repository) (include "app.sharedAccount" .) (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1/Rollout") -}}
Rollout
{{- else -}}
Deployment
{{- end -}}
{{- end -}}

{{/* app.account is the service account of the pods; empty means the namespace's default. */}}
{{- define "app.account" -}}
{{- .Values.serviceAccount.name | default .Values.serviceAccountName | default (.Values.serviceAccount.create | ternary .Values.appName "") -}}
{{- end -}}

{{/* app.servicePort is the name, or the number, of the Service's first port. */}}
{{- define "app.servicePort" -}}
{{- $ports := .Values.service.ports | default .Values.ports -}}
{{- $first := first $ports -}}
{{- $first.port | default $first.containerPort -}}
{{- end -}}

{{/* app.needsService fails for objects that need a Service. */}}
{{- define "app.needsService" -}}
{{- if not .root.Values.service.enabled -}}
{{- fail (printf "\n\n%s.enabled is true, but the chart doesn't create a Service: set service.enabled=true" .what) -}}
{{- end -}}
{{- end -}}

{{/* app.kubeVersion is the Kubernetes version to render for. */}}
{{- define "app.kubeVersion" -}}
{{- .Values.kubeTargetVersionOverride | default .Capabilities.KubeVersion.Version -}}
{{- end -}}

{{/* app.image is the image of the application. */}}
{{- define "app.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%v" .Values.image.repository .Values.image.tag -}}
{{- end -}}
{{- end -}}

{{/* app.attachImage is the image of the attach Job. */}}
{{- define "app.attachImage" -}}
{{- printf "%s:%v" .Values.configmapAttacher.repository (.Values.configmapAttacher.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* app.attachJob is whether the chart creates an attach Job: "true" or empty. */}}
{{- define "app.attachJob" -}}
{{- if and (eq .Values.revisions.attach "job") (include "app.objects" .) -}}true{{- end -}}
{{- end -}}

{{/* app.attachRole is whether the chart creates the service account of the Job: "true" or empty. */}}
{{- define "app.attachRole" -}}
{{- if and (include "app.attachJob" .) .Values.rbac.enabled (not .Values.configmapAttacher.serviceAccountName) -}}true{{- end -}}
{{- end -}}

{{/*
app.sharedAccount is whether the attach Job uses the account that base-app's releases shared, because
this release neither creates nor names one: "true" or empty.
*/}}
{{- define "app.sharedAccount" -}}
{{- if and (include "app.attachJob" .) (not (or .Values.rbac.enabled .Values.configmapAttacher.serviceAccountName)) -}}true{{- end -}}
{{- end -}}

{{/*
app.attachAccount is the name of the attach Job's service account and Role. If the Job runs in another
namespace than the release, the hash keeps apart pairs of namespace and name that
are equal when joined.
*/}}
{{- define "app.attachAccount" -}}
{{- $name := printf "%s-attach" .Values.appName -}}
{{- if include "app.sharedAccount" . -}}
{{- $name = "configmap-attacher-job" -}}
{{- else if ne (include "app.attachNamespace" .) .Release.Namespace -}}
{{- $sum := printf "%s/%s" .Release.Namespace .Values.appName | sha256sum | trunc 10 -}}
{{- $name = printf "%s-%s-attach-%s" .Release.Namespace .Values.appName $sum -}}
{{- end -}}
{{- .Values.configmapAttacher.serviceAccountName | default $name -}}
{{- end -}}

{{/* app.attachNamespace is where the attach Job runs. */}}
{{- define "app.attachNamespace" -}}
{{- .Values.configmapAttacher.namespace | default (include "app.sharedAccount" . | empty | ternary .Release.Namespace "kube-system") -}}
{{- end -}}

{{/*
app.revisionedMeta marks an object whose name contains a hash of its content. Without the annotations, Helm and Argo
CD would remove it in the first deploy that doesn't contain it, while old pods still
need it. The garbage collector removes it with its last revision.
*/}}
{{- define "app.revisionedMeta" -}}
labels:
  app: {{ .Values.appName }}
  lockstep.dev/revisioned: "true"
annotations:
  helm.sh/resource-policy: keep
  argocd.argoproj.io/sync-options: Prune=false
  argocd.argoproj.io/compare-options: IgnoreExtraneous
{{- end -}}

{{/* app.objectNames are the names of the ConfigMaps, or the Secrets, as JSON. */}}
{{- define "app.objectNames" -}}
{{- $names := list -}}
{{- range $key, $_ := index .root.Values .group -}}
{{- $names = append $names (include "app.objectName" (dict "root" $.root "group" $.group "key" $key)) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}
