{{/*
The admission policies restrict the controller's account to what the controller writes. test/install plays the controller
and a stolen token against them on a real API server.
*/}}

{{/*
lockstep.policy is a policy and its binding, made from a short form. A resource is updated unless it lists other
operations. A validation has an expression, or "same": what the new and the old object must have in common, as an
expression about OBJECT.
*/}}
{{- define "lockstep.policy" }}
{{- $account := printf "system:serviceaccount:%s:%s" .root.Release.Namespace (include "lockstep.account" .root) }}
{{- $spec := include (printf "lockstep.%sPolicy" .of) (merge (dict "account" $account) .) | fromYaml }}
{{- $name := printf "%s-%s" (include "lockstep.name" .root) (.name | default .of) }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name | quote }}
  labels:
    {{- include "lockstep.labels" .root | nindent 4 }}
spec:
  failurePolicy: {{ $spec.failurePolicy | default "Fail" }}
  matchConstraints:
    {{- with $spec.namespaces }}
    namespaceSelector:
      matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}]
    {{- end }}
    resourceRules:
      {{- range $spec.resources }}
      - {apiGroups: [{{ .group | quote }}], apiVersions: ["*"], resources: [{{ .resource | quote }}], operations: {{ .operations | default (list "UPDATE") | toJson }}}
      {{- end }}
  matchConditions:
    - name: {{ $spec.when | default "by-lockstep" }}
      expression: {{ $spec.condition | default (printf "request.userInfo.username == '%s'" $account) | quote }}
  variables:
    - {name: object, expression: dyn(object)}
    - {name: old, expression: dyn(oldObject)}
    {{- range $spec.variables }}
    - name: {{ .name }}
      expression: >-
        {{ .expression }}
    {{- end }}
  validations:
    {{- range $spec.validations }}
    - expression: >-
        {{- if .same }}
        {{ replace "OBJECT" "variables.object" .same }}
        == {{ replace "OBJECT" "variables.old" .same }}
        {{- else }}
        {{ .expression }}
        {{- end }}
      message: {{ .message | quote }}
      reason: Forbidden
    {{- end }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name | quote }}
  labels:
    {{- include "lockstep.labels" .root | nindent 4 }}
spec:
  policyName: {{ $name | quote }}
  validationActions: [{{ $spec.action | default "Deny" }}]
{{- end -}}

{{/* lockstep.templates lists the resources with a pod template, by its path. */}}
{{- define "lockstep.templates" -}}
{{- $paths := dict "spec.jobTemplate.spec.template" (list (dict "group" "batch" "resource" "cronjobs")) "spec.template" (list
      (dict "group" "apps" "resource" "deployments") (dict "group" "apps" "resource" "statefulsets") (dict "group" "apps" "resource" "daemonsets")
      (dict "group" "argoproj.io" "resource" "rollouts")) -}}
{{- range .Values.kinds -}}
{{- $path := splitList "=" .kind | last -}}
{{- $_ := set $paths $path (append (get $paths $path | default list) (dict "group" (include "lockstep.groupOf" .kind) "resource" .resource)) -}}
{{- end -}}
{{- toYaml $paths -}}
{{- end -}}

{{/* lockstep.field selects a field in an expression. */}}
{{- define "lockstep.field" -}}
{{- ternary (printf ".%s" .) (printf "['%s']" .) (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" .) -}}
{{- end -}}

{{/*
lockstep.otherWords is an expression for: the annotation k of OBJECT requests an image in kube-image-deployer's syntax, as
--read-annotations reads it. It is empty if the flag doesn't name that tool. A variable whose value isn't in the values may name it.
*/}}
{{- define "lockstep.otherWords" -}}
{{- $read := regexMatch "(^| )--read-annotations[= ][^ ]*kube-image-deployer" (join " " .Values.extraArgs) -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "LOCKSTEP_READ_ANNOTATIONS" -}}
{{- $read = or $read (not .value) (contains "kube-image-deployer" (toString .value)) -}}
{{- end -}}
{{- end -}}
{{- if $read -}}
k.startsWith('kube-image-deployer/') && OBJECT.metadata.?labels[?'kube-image-deployer'].orValue('false') != 'false'
{{- end -}}
{{- end -}}

{{/* lockstep.templatePolicy is about the workloads whose pod template is at one path. */}}
{{- define "lockstep.templatePolicy" -}}
{{- $template := "OBJECT" -}}
{{- range splitList "." .path }}{{ $template = printf "%s%s" $template (include "lockstep.field" .) }}{{ end -}}
resources: {{ toJson .resources }}
variables:
  {{- range $name, $object := dict "containers" "variables.object" "oldContainers" "variables.old" }}
  {{- $spec := replace "OBJECT" $object $template }}
  - name: {{ $name }}
    expression: {{ $spec }}.spec.containers + {{ $spec }}.spec.?initContainers.orValue([])
  {{- end }}
  # The annotation image.lockstep.dev/web: registry.example:5000/web:^1 becomes {web: registry.example:5000/web}.
  # A kube-image-deployer key counts only for a container without Lockstep's own: a map can't contain a key twice.
  - name: repositories
    expression: >-
      variables.old.metadata.?annotations.orValue({}).transformMapEntry(k, v, k.startsWith('image.lockstep.dev/')
      {{- with include "lockstep.otherWords" .root }}
      || {{ replace "OBJECT" "variables.old" . }} && !(k.replace('kube-image-deployer/', 'image.lockstep.dev/') in variables.old.metadata.annotations)
      {{- end }},
      {k.substring(k.indexOf('/') + 1): v.trim().find('^([^/:]+(:[0-9]+)?/)?[^:]+')})
validations:
  - same: OBJECT.metadata.transformMap(k, v, !(k in ['annotations', 'generation', 'managedFields', 'resourceVersion']), v)
    message: Lockstep can't change a workload's metadata, except its own annotation
  # The API server counts the templates of a DaemonSet in an annotation.
  - same: OBJECT.metadata.?annotations.orValue({}).transformMap(k, v, !(k in ['lockstep.dev/moved-by', 'deprecated.daemonset.template.generation']), v)
    message: Lockstep can't change a workload's annotations, except lockstep.dev/moved-by
  {{- $at := "OBJECT" }}
  {{- range $i, $field := splitList "." .path }}
  - same: {{ $at }}.transformMap(k, v, !(k in [{{ if not $i }}'metadata', {{ end }}'{{ $field }}']), v)
    message: Lockstep can't change a workload's fields outside of its pod template
  {{- $at = printf "%s%s" $at (include "lockstep.field" $field) }}
  {{- end }}
  - same: {{ $template }}.transformMap(k, v, !(k in ['metadata', 'spec']), v)
    message: Lockstep can't change fields of a pod template, except metadata and spec
  - same: {{ $template }}.?metadata.orValue({}).transformMap(k, v, k != 'annotations', v)
    message: Lockstep can't change a pod template's metadata, except its own annotation
  - same: {{ $template }}.?metadata.?annotations.orValue({}).transformMap(k, v, k != 'lockstep.dev/inputs', v)
    message: Lockstep can't change a pod template's annotations, except lockstep.dev/inputs
  - same: {{ $template }}.spec.transformMap(k, v, !(k in ['containers', 'initContainers']), v)
    message: Lockstep can't change a pod template's spec, except in its containers
  - same: {{ $template }}.spec.containers.map(c, c.transformMap(k, v, !(k in ['env', 'image']), v))
    message: Lockstep can't add or remove containers, or change fields of one, except its image and its own variable
  - same: {{ $template }}.spec.containers.map(c, c.?env.orValue([]).filter(e, e.name != 'LOCKSTEP_INPUTS' || has(e.valueFrom)))
    message: Lockstep can't change environment variables, except LOCKSTEP_INPUTS
  - same: {{ $template }}.spec.?initContainers.orValue([]).map(c, c.transformMap(k, v, k != 'image', v))
    message: Lockstep can't add or remove init containers, or change fields of one, except its image
  {{- if .root.Values.images.enabled }}
  - expression: >-
      variables.containers.all(i, c, c.?image == variables.oldContainers[i].?image
      || c.name in variables.repositories && c.image.startsWith(variables.repositories[c.name])
      && c.image.substring(variables.repositories[c.name].size()).matches('^(:[A-Za-z0-9_.-]+)?@sha256:[0-9a-f]{64}$'))
    message: Lockstep can't change a container's image, except to a digest from the repository in the workload's annotation image.lockstep.dev/CONTAINER{{ if include "lockstep.otherWords" .root }} or kube-image-deployer/CONTAINER{{ end }}
  {{- else }}
  - expression: variables.containers.all(i, c, c.?image == variables.oldContainers[i].?image)
    message: Lockstep can't change a container's image, because images.enabled is off
  {{- end }}
{{- end -}}

{{/* lockstep.objectsPolicy is about ConfigMaps, Secrets and Leases. */}}
{{- define "lockstep.objectsPolicy" -}}
{{- $own := .root.Release.Namespace -}}
resources:
  - {group: "", resource: configmaps, operations: [CREATE, UPDATE]}
  - {group: "", resource: secrets, operations: [CREATE, UPDATE]}
  - {group: coordination.k8s.io, resource: leases, operations: [CREATE, UPDATE]}
variables:
  - name: own
    expression: >-
      request.namespace == '{{ $own }}' && (
      request.resource.resource == 'configmaps' && variables.object.metadata.name.matches('^lockstep-state-[0-9]{2}$')
      || request.resource.resource == 'secrets' && variables.object.metadata.name == 'lockstep-installation-key' && variables.object.type == 'Opaque'
      || request.resource.resource == 'leases' && variables.object.metadata.name == 'lockstep')
validations:
  - expression: variables.own || request.operation == 'UPDATE'
    message: Lockstep can't create ConfigMaps, Secrets and Leases, except its record, its key and its Lease in namespace {{ $own }}
  - expression: variables.own || request.operation == 'CREATE' || variables.old.metadata.?labels[?'lockstep.dev/revisioned'] == optional.of('true')
    message: Lockstep can't change ConfigMaps and Secrets without the label lockstep.dev/revisioned=true
  {{- $content := "OBJECT.transformMap(k, v, k != 'metadata', v)" }}
  - expression: >-
      variables.own || request.operation == 'CREATE'
      || {{ replace "OBJECT" "variables.object" $content }} == {{ replace "OBJECT" "variables.old" $content }}
    message: Lockstep can't change the content of ConfigMaps and Secrets
  {{- $metadata := "OBJECT.metadata.transformMap(k, v, !(k in ['managedFields', 'ownerReferences', 'resourceVersion']), v)" }}
  - expression: >-
      variables.own || request.operation == 'CREATE'
      || {{ replace "OBJECT" "variables.object" $metadata }} == {{ replace "OBJECT" "variables.old" $metadata }}
    message: Lockstep can't change the metadata of ConfigMaps and Secrets, except owner references
  - expression: >-
      variables.own || request.operation == 'CREATE'
      || variables.old.metadata.?ownerReferences.orValue([]).all(o, o in variables.object.metadata.?ownerReferences.orValue([]))
    message: Lockstep can't remove owner references
{{- end -}}

{{/* lockstep.podsPolicy is about pods, which the strategy refresh touches. */}}
{{- define "lockstep.podsPolicy" -}}
resources: [{group: "", resource: pods}]
validations:
  - same: OBJECT.transformMap(k, v, k != 'metadata', v)
    message: Lockstep can't change a pod's fields, except its own annotation
  - same: OBJECT.metadata.transformMap(k, v, !(k in ['annotations', 'generation', 'managedFields', 'resourceVersion']), v)
    message: Lockstep can't change a pod's metadata, except its own annotation
  - same: OBJECT.metadata.?annotations.orValue({}).transformMap(k, v, k != 'lockstep.dev/inputs', v)
    message: Lockstep can't change a pod's annotations, except lockstep.dev/inputs
{{- end -}}

{{/* lockstep.namespacesPolicy denies the controller's writes in some namespaces, except events and its own objects. */}}
{{- define "lockstep.namespacesPolicy" -}}
namespaces: {{ toJson .root.Values.admissionPolicy.deniedNamespaces }}
resources:
  {{- range include "lockstep.templates" .root | fromYaml }}
  {{- range . }}
  - {{ toJson . }}
  {{- end }}
  {{- end }}
  - {group: "", resource: configmaps}
  - {group: "", resource: secrets}
  - {group: "", resource: pods}
  - {group: "", resource: pods/eviction, operations: [CREATE]}
validations:
  - expression: request.namespace == '{{ .root.Release.Namespace }}' && request.resource.resource in ['configmaps', 'secrets']
    message: "Lockstep can't write in this namespace: remove it from the chart value admissionPolicy.deniedNamespaces, or remove Lockstep's annotations and labels"
{{- end -}}

{{/* lockstep.warningPolicy warns a user who annotates such a namespace or a workload in it. It doesn't deny requests. */}}
{{- define "lockstep.warningPolicy" -}}
failurePolicy: Ignore
action: Warn
namespaces: {{ toJson .root.Values.admissionPolicy.deniedNamespaces }}
resources:
  - {group: "", resource: namespaces, operations: [CREATE, UPDATE]}
  {{- range include "lockstep.templates" .root | fromYaml }}
  {{- range . }}
  - {{ merge (dict "operations" (list "CREATE" "UPDATE")) . | toJson }}
  {{- end }}
  {{- end }}
when: asks-for-lockstep
condition: >-
  request.userInfo.username != '{{ .account }}' && object.metadata.?annotations.orValue({}).exists(k,
  k.startsWith('image.lockstep.dev/') || k == 'lockstep.dev/reload' && object.metadata.annotations[k] != 'never'
  {{- with include "lockstep.otherWords" .root }}
  || {{ replace "OBJECT" "object" . }}
  {{- end }})
validations:
  - expression: "false"
    message: "Lockstep can't roll out workloads in this namespace, because the chart value admissionPolicy.deniedNamespaces lists it"
{{- end -}}
