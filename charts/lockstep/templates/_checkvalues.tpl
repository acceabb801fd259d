{{/*
lockstep.checkKnown rejects a name that the chart doesn't know, with the known ones. Helm's own message about a nested name in a schema
doesn't contain them.
*/}}
{{- define "lockstep.checkKnown" -}}
{{- $values := .Values -}}
{{- range $path, $names := include "lockstep.known" . | fromYaml -}}
{{- range include "lockstep.at" (dict "values" $values "path" $path) | fromJsonArray -}}
{{- $map := . -}}
{{- range $name := $map.value | default dict | keys | sortAlpha -}}
{{- if not (has $name $names) -}}
{{- $whole := printf "%s.%s" $map.path $name | trimPrefix "." -}}
{{- fail (printf "\n\n%s is not a value of this chart: use %s" $whole (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* lockstep.checkForms rejects texts of the wrong form, with an example. A schema could show only a regular expression. */}}
{{- define "lockstep.checkForms" -}}
{{- $values := .Values -}}
{{- range $form := include "lockstep.forms" . | fromYamlArray -}}
{{- range $path := $form.values -}}
{{- range include "lockstep.at" (dict "values" $values "path" $path) | fromJsonArray -}}
{{- if and (kindIs "string" .value) (not (regexMatch $form.pattern .value)) -}}
{{- fail (printf "\n\n%s is %q: set %s%s" .path .value $form.want (regexMatch $form.pattern "" | ternary ", or leave it empty" "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
lockstep.at lists the values at a path as JSON. A * stands for every part of a list or map: of the path kinds.*.kind, it is
[{"path": "kinds[0].kind", "value": "example.com/v1/Worker=spec.template"}].
*/}}
{{- define "lockstep.at" -}}
{{- $found := list (dict "path" "" "value" .values) -}}
{{- range $step := splitList "." .path | compact -}}
{{- $next := list -}}
{{- range $parent := $found -}}
{{- if ne $step "*" -}}
{{- $next = append $next (dict "path" (printf "%s.%s" $parent.path $step | trimPrefix ".") "value" (get ($parent.value | default dict) $step)) -}}
{{- else -}}
{{- range $key, $value := $parent.value -}}
{{- $next = append $next (dict "path" (printf (kindIs "map" $parent.value | ternary "%s.%v" "%s[%v]") $parent.path $key) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found = $next -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* lockstep.known lists the names that each map of values can contain. A test compares it with the schema. */}}
{{- define "lockstep.known" -}}
"": [admissionPolicy, affinity, builtInKinds, dashboard, enabled, extraArgs, extraEnv, extraVolumeMounts, extraVolumes, fullnameOverride,
  global, image, imagePullSecrets, images, kinds, labels, logging, maxDelay, namespaceSelector, namespaces, networkPolicy, nodeSelector,
  notifications, observe, podAnnotations, podDisruptionBudget, podLabels, podMonitor, podSecurityContext, podStrategies, priorityClassName,
  prometheusRule, quiet, rbac, reload, replicas, resources, revisions, rollouts, securityContext, serviceAccount, serviceMonitor, tags,
  tolerations, topologySpreadConstraints]
image: [digest, pullPolicy, repository, tag]
imagePullSecrets.*: [name]
reload: [auto, enabled]
revisions: [enabled, grace, secretNamespaces]
images: [cloudIdentityNamespaces, defaultPlatform, dockerConfigNamespaces, enabled, interval, platforms, pullSecrets, webhook]
images.webhook: [enabled, port, secretKey, secretName]
podStrategies: [enabled]
kinds.*: [kind, resource]
rollouts: [damping, maxDamping, maxRolling, pauseGrace, ramp, settle, shared, stopAfter, timeout, window]
notifications: [secretKey, secretName]
logging: [format, level]
serviceAccount: [annotations, create, name]
rbac: [create]
admissionPolicy: [deniedNamespaces, enabled]
podDisruptionBudget: [enabled, maxUnavailable, minAvailable]
networkPolicy: [egress, enabled, metricsFrom, webhookFrom]
podMonitor: [enabled, interval, labels]
serviceMonitor: [enabled, interval, labels]
prometheusRule: [enabled, labels]
dashboard: [annotations, enabled, labels]
{{- end -}}

{{/* lockstep.forms lists the form of texts, in words with an example, and the values that have it. */}}
{{- define "lockstep.forms" -}}
- want: a duration, such as 30s, 5m or 1h30m
  pattern: '^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$'
  values: [quiet, maxDelay, revisions.grace, images.interval, rollouts.settle, rollouts.timeout, rollouts.pauseGrace, rollouts.damping,
    rollouts.maxDamping, podMonitor.interval, serviceMonitor.interval]
- want: the name of a namespace, such as shop (lowercase letters, digits and dashes)
  pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'
  values: [namespaces.*, revisions.secretNamespaces.*, admissionPolicy.deniedNamespaces.*]
- want: the name of a namespace, such as shop, or * for all
  pattern: '^(\*|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$'
  values: [images.dockerConfigNamespaces.*, images.cloudIdentityNamespaces.*]
- want: the name of a Secret, such as registry-login (lowercase letters, digits, dashes and dots)
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
  values: [imagePullSecrets.*.name, images.pullSecrets.*]
- want: the name of an existing object, such as lockstep-a (lowercase letters, digits, dashes and dots)
  pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$'
  values: [images.webhook.secretName, notifications.secretName, serviceAccount.name, priorityClassName]
- want: a key of the Secret, such as targets.yaml (letters, digits, dashes, underscores and dots)
  pattern: '^[-._A-Za-z0-9]+$'
  values: [images.webhook.secretKey, notifications.secretKey]
- want: a name, such as lockstep-a (lowercase letters, digits and dashes)
  pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$'
  values: [fullnameOverride]
- want: a tag, such as v0.1.0 (a digest belongs in image.digest)
  pattern: '^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?$'
  values: [image.tag]
- want: "a digest: sha256:, followed by 64 hexadecimal digits"
  pattern: '^(sha256:[0-9a-f]{64})?$'
  values: [image.digest]
- want: a platform, such as linux/amd64 or linux/arm/v7
  pattern: '^[a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?$'
  values: [images.platforms.*]
- want: a platform, such as linux/amd64 or linux/arm/v7
  pattern: '^([a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?)?$'
  values: [images.defaultPlatform]
- want: group/version/Kind=path.to.template, such as example.com/v1/Worker=spec.template
  pattern: '^([a-z0-9][-.a-z0-9]*/)?[a-z0-9]+/[A-Za-z][A-Za-z0-9]*=[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$'
  values: [kinds.*.kind]
- want: the plural name in the API, such as workers
  pattern: '^[a-z0-9]+$'
  values: [kinds.*.resource]
- want: a source, such as configmap/ca-bundle or secret/ca
  pattern: '^(configmap|secret)/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$'
  values: [rollouts.shared.*]
- want: a number of pods or a percentage, such as 1 or 50%
  pattern: '^([0-9]+%?)?$'
  values: [podDisruptionBudget.minAvailable, podDisruptionBudget.maxUnavailable]
{{- end -}}
