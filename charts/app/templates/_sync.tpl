{{/* app.sync is the agent beside the application, as a native sidecar. */}}
{{- define "app.sync" -}}
{{- $s := .Values.sync -}}
{{- if not (semverCompare ">=1.29.0-0" (include "app.kubeVersion" .)) -}}
{{- fail (printf "\n\nsync.enabled is true, but native sidecars need Kubernetes 1.29 or later, and the chart is rendered for %s" (include "app.kubeVersion" .)) -}}
{{- end -}}
{{- if not (or $s.configmaps $s.secrets) -}}
{{- fail "\n\nsync.enabled is true, but no sources are named: set sync.configmaps or sync.secrets" -}}
{{- end -}}
{{- if not (include "app.account" .) -}}
{{- fail "\n\nsync.enabled is true, but the pods don't have their own service account, which the agent needs to read ConfigMaps and Secrets:\nset serviceAccount.create=true, or serviceAccount.name" -}}
{{- end -}}
{{- if not .Values.automountServiceAccountToken -}}
{{- fail "\n\nsync.enabled is true, but automountServiceAccountToken is false: set it to true, because the agent needs the token" -}}
{{- end -}}
{{- if not $s.image -}}
{{- fail "\n\nsync.enabled is true, but sync.image is empty: no Lockstep image is published yet.\nBuild and push one with \"make push IMAGE=registry.example/team/lockstep\", and set sync.image to the reference of lockstep-sync that it prints" -}}
{{- end -}}
{{- $args := list (printf "--root=%s" $s.mountPath) (printf "--health-addr=:%v" $s.healthPort) -}}
{{- range $s.configmaps }}{{- $args = append $args (printf "--configmap=%s" .) }}{{- end -}}
{{- range $s.secrets }}{{- $args = append $args (printf "--secret=%s" .) }}{{- end -}}
- name: lockstep-sync
  image: {{ $s.image | quote }}
  imagePullPolicy: {{ $s.imagePullPolicy }}
  restartPolicy: Always
  args: {{ concat $args $s.args | toJson }}
  startupProbe:
    httpGet: {path: /startupz, port: {{ $s.healthPort }}}
    periodSeconds: 1
    failureThreshold: 120
  {{- with $s.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  volumeMounts:
    - {name: lockstep-sync, mountPath: {{ $s.mountPath }}}
{{- end -}}
