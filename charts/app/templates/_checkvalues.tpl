{{/*
app.checkKnown rejects a name that the chart doesn't know, with the known ones. Helm's own message about a nested name in a schema
doesn't contain them.
*/}}
{{- define "app.checkKnown" -}}
{{- $values := .Values -}}
{{- range $path, $names := include "app.known" . | fromYaml -}}
{{- range include "app.at" (dict "values" $values "path" $path) | fromJsonArray -}}
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

{{/* app.checkForms rejects texts of the wrong form, with an example. A schema could show only a regular expression. */}}
{{- define "app.checkForms" -}}
{{- $values := .Values -}}
{{- range $form := include "app.forms" . | fromYamlArray -}}
{{- range $path := $form.values -}}
{{- range include "app.at" (dict "values" $values "path" $path) | fromJsonArray -}}
{{- if and (kindIs "string" .value) (not (regexMatch $form.pattern .value)) -}}
{{- fail (printf "\n\n%s is %q: set %s%s" .path .value $form.want (regexMatch $form.pattern "" | ternary ", or leave it empty" "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
app.at lists the values at a path as JSON. A * stands for every part of a list or map: of the path kinds.*.kind, it is
[{"path": "kinds[0].kind", "value": "example.com/v1/Worker=spec.template"}].
*/}}
{{- define "app.at" -}}
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

{{/*
app.known lists the names that each map of values can contain. A test compares it with the schema. The maps of base-app accept
other names.
*/}}
{{- define "app.known" -}}
workload: [annotations, kind, revisionHistoryLimit]
deployment: [strategy]
secrets.*: [binaryData, kv_data, raw_data, templated, type, use]
mount: [clashes, defaultMode, layout]
revisions: [attach, immutable, naming, secretSalt]
service: [annotations, enabled, ports, type]
autoscaling: [behavior, enabled, maxReplicas, metrics, minReplicas, targetCPUUtilizationPercentage, targetMemoryUtilizationPercentage]
serviceAccount: [annotations, create, name]
podDisruptionBudget: [enabled, maxUnavailable, minAvailable]
ingress: [annotations, className, enabled, hosts, tls]
httpRoute: [annotations, enabled, hostnames, parentRefs, rules]
networkPolicy: [egress, enabled, ingress]
serviceMonitor: [enabled, interval, labels, path, port]
helmTest: [enabled, image, path]
sync: [args, configmaps, enabled, healthPort, image, imagePullPolicy, mountPath, resources, secrets]
{{- end -}}

{{/* app.forms lists the form of texts, in words with an example, and the values that have it. */}}
{{- define "app.forms" -}}
- want: an absolute path, such as /etc/config
  pattern: '^/'
  values: [configmapsMountPath, secretsMountPath]
- want: "a digest: sha256:, followed by 64 hexadecimal digits"
  pattern: '^(sha256:[0-9a-f]{64})?$'
  values: [image.digest]
- want: a whole number, such as 2
  pattern: '^[0-9]+$'
  values: [replicas]
- want: a duration, such as 30s or 5m
  pattern: '^([0-9]+(\.[0-9]+)?(h|m|s))+$'
  values: [configmapAttacher.timeout]
{{- end -}}
